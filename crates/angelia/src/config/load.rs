//! Reading the file and the environment, collecting faults on the way.

use super::Config;
use super::bots::check_webhooks;
use super::fault::{ConfigErrors, Fault, Origin, Problem};
use super::keys::{Key, keys};
use super::lists::{LISTS, List};
use angelia_core::did_you_mean::alike;
use angelia_platforms::settings::{BadValue, Given, Raw, SecretRef};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::{DeArray, DeTable, DeValue};

/// The file that is read if it is there and no other is named.
const FILE: &str = "angelia.toml";
/// How the variables begin that are ours.
const PREFIX: &str = "ANGELIA_";
/// Names the file.
const FILE_VARIABLE: &str = "ANGELIA_CONFIG";

/// This process's variables, as [`Config::load`] takes them.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
}

impl Config {
    /// Reads the configuration, or reports everything that is wrong with it.
    ///
    /// `path` is the file of `--config`. Without it `ANGELIA_CONFIG` names the
    /// file; without either `angelia.toml` is read if it is there.
    pub fn load(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigErrors> {
        let Loader { config, faults } = Loader::read_all(path, env);
        ConfigErrors::check(faults)?;
        Ok(config)
    }

    /// The same, with [`Config::check_exposure`] among what is reported.
    pub fn check(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigErrors> {
        let Loader { config, mut faults } = Loader::read_all(path, env);
        faults.extend(config.exposure(false));
        ConfigErrors::check(faults)?;
        Ok(config)
    }
}

#[derive(Default)]
pub(super) struct Loader {
    pub(super) config: Config,
    pub(super) faults: Vec<Fault>,
}

impl Loader {
    fn read_all(path: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Self {
        let env: BTreeMap<_, _> = env.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        let mut loader = Self::default();
        let named = path.map(Path::to_owned);
        let named =
            named.or_else(|| env.get(FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from));
        if let Some(path) = named.or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.exists())) {
            loader.read_file(&path);
        }
        loader.read_environment(&env);
        loader.check_together();
        loader
    }

    fn read_file(&mut self, path: &Path) {
        match std::fs::read_to_string(path) {
            Ok(text) => self.read_text(path, &text),
            Err(error) => {
                let origin = Origin::File { path: path.to_owned(), line: None };
                self.fault(origin, Problem::Unreadable(error));
            }
        }
    }

    pub(super) fn read_text(&mut self, path: &Path, text: &str) {
        let at = |offset: usize| Origin::File { path: path.to_owned(), line: Some(line_of(text, offset)) };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            // Only the message: the library's long form repeats the line, which may hold a secret.
            let offset = error.span().map_or(0, |span| span.start);
            self.fault(at(offset), Problem::Syntax(error.message().to_owned()));
        }
        if errors.is_empty() {
            self.read_table(table.get_ref(), &at);
        }
        // Tables come in the order of their names; people read from top to bottom.
        self.faults.sort_by_key(|fault| match &fault.origin {
            Origin::File { line, .. } => *line,
            _ => None,
        });
    }

    fn read_table(&mut self, table: &DeTable<'_>, at: &impl Fn(usize) -> Origin) {
        for (section, value) in table {
            let (name, origin) = (section.get_ref().as_ref(), at(section.span().start));
            let known = keys().any(|key| key.section() == name);
            match (value.get_ref(), find_list(name)) {
                (DeValue::Array(entries), Some(list)) => self.read_list(list, entries, at),
                (_, Some(list)) => self.fault(origin, not_a_list(list)),
                (DeValue::Table(keys), None) if known => self.read_section(name, keys, at),
                (DeValue::Table(_) | DeValue::Array(_), None) => self.unknown_section(origin, name),
                (other, None) if known => {
                    let given = Given { key: name.to_owned(), raw: Raw::Toml(other) };
                    self.fault(origin, given.bad(format!("is a section; write [{name}] and its keys below")));
                }
                _ => self.unknown_key(origin, name),
            }
        }
    }

    /// Reads a section, or a table in it: `prefix` is the way to it.
    fn read_section(&mut self, prefix: &str, keys: &DeTable<'_>, at: &impl Fn(usize) -> Origin) {
        for (name, value) in keys {
            let path = format!("{prefix}.{}", name.get_ref());
            match (value.get_ref(), find_list(&path)) {
                (DeValue::Table(inner), _) if is_group(&path) => self.read_section(&path, inner, at),
                (DeValue::Array(entries), Some(list)) => self.read_list(list, entries, at),
                (other, _) => self.read(at(name.span().start), path, Raw::Toml(other)),
            }
        }
    }

    fn read_list(&mut self, list: &'static List, entries: &DeArray<'_>, at: &impl Fn(usize) -> Origin) {
        for entry in entries {
            let origin = || at(entry.span().start);
            let DeValue::Table(keys) = entry.get_ref() else {
                let problem = not_a_list(list);
                self.fault(origin(), problem);
                continue;
            };
            (list.begin)(&mut self.config);
            let before = self.faults.len();
            self.read_entry(list, keys, at);
            for field in (list.fields)() {
                if let Some(why) = field.required()
                    && !keys.keys().any(|name| name.get_ref() == field.name())
                {
                    let key = format!("{}.{}", list.path(), field.name());
                    let message = format!("is missing: {why}");
                    self.fault(origin(), BadValue { key, message });
                }
            }
            if self.faults.len() == before
                && let Err(problem) = (list.check)(&self.config)
            {
                self.fault(origin(), problem);
            }
        }
    }

    fn read_entry(&mut self, list: &'static List, keys: &DeTable<'_>, at: &impl Fn(usize) -> Origin) {
        for (name, value) in keys {
            let (key, origin) = (format!("{}.{}", list.path(), name.get_ref()), at(name.span().start));
            let Some(field) = (list.fields)().into_iter().find(|field| field.name() == name.get_ref()) else {
                let suggestion = alike(&key, list.paths());
                self.fault(origin, Problem::UnknownKey { name: key, suggestion });
                continue;
            };
            let given = Given { key, raw: Raw::Toml(value.get_ref()) };
            if let Err(problem) = field.read(&mut self.config, &given) {
                self.fault(origin, problem);
            }
        }
    }

    fn read_environment(&mut self, env: &BTreeMap<String, String>) {
        let origin = |name: &String| Origin::Env { name: name.clone() };
        let (settings, others): (Vec<_>, Vec<_>) = env
            .iter()
            .map(|(name, value)| (name, name[PREFIX.len()..].to_lowercase().replace("__", "."), value))
            .partition(|(_, path, _)| path.contains('.'));
        for (name, path, value) in settings {
            self.read_variable(origin(name), path, value);
        }
        // Others may use the prefix, as orchestrators do for a service of our name.
        // Only what differs from a setting by its underscores is surely meant for us.
        for (name, joined, _) in others {
            let meant = keys().find(|key| squeezed(&key.path()) == squeezed(&joined));
            if let Some(key) = meant.filter(|_| !self.refers_to(name)) {
                let suggestion = Some(variable(key));
                self.fault(origin(name), Problem::UnknownKey { name: name.clone(), suggestion });
            }
        }
    }

    fn read_variable(&mut self, origin: Origin, path: String, value: &str) {
        let reference = path
            .rsplit_once('.')
            .filter(|(key, _)| find(key).is_some())
            .and_then(|(key, place)| Some((key.to_owned(), SecretRef::of(place, value)?)));
        match reference {
            Some((key, reference)) => self.read(origin, key, Raw::Ref(reference)),
            None => self.read(origin, path, Raw::Text(value)),
        }
    }

    /// Whether a secret is kept in that variable, so that it is not a setting.
    fn refers_to(&self, variable: &str) -> bool {
        let of_bots = self.config.bots.iter().flat_map(|bot| bot.secrets());
        let own = self
            .config
            .keys
            .master
            .iter()
            .chain(&self.config.store.password)
            .chain(&self.config.bus.password)
            .chain(&self.config.media.secret_access_key);
        let mut secrets = own.chain(of_bots);
        secrets.any(|secret| matches!(secret, SecretRef::Env(name) if name == variable))
    }

    fn read(&mut self, origin: Origin, path: String, raw: Raw<'_>) {
        match (find(&path), find_list(&path)) {
            (None, Some(list)) => self.fault(origin, not_a_list(list)),
            (None, None) if is_group(&path) => self.fault(origin, not_a_group(&path)),
            (None, None) => self.unknown_key(origin, &path),
            (Some(key), _) => {
                if let Err(problem) = key.read(&mut self.config, &Given { key: path, raw }) {
                    self.fault(origin, problem);
                }
            }
        }
    }

    pub(super) fn check_together(&mut self) {
        let server = &self.config.server;
        if server.listen == server.admin_listen && server.listen.port() != 0 {
            let key = "server.admin_listen".to_owned();
            let message =
                format!("is the same address as `server.listen`, {}; give it another port", server.listen);
            self.fault(Origin::Whole, BadValue { key, message });
        }
        let half = self.config.server.tls.as_ref().and_then(|tls| {
            let missing = |path: &Path| path.as_os_str().is_empty();
            let halves = [("cert", missing(&tls.cert)), ("key", missing(&tls.key))];
            halves.into_iter().find_map(|(name, missing)| missing.then_some(name))
        });
        if let Some(name) = half {
            let key = format!("server.tls.{name}");
            let message =
                "is missing: TLS needs a certificate and its key, cert = \"FILE\" and key = \"FILE\"";
            self.fault(Origin::Whole, BadValue { key, message: message.into() });
        }
        if let Some(problem) = self.config.store.fault() {
            self.fault(Origin::Whole, problem);
        }
        if let Some(problem) = self.config.bus.fault(self.config.store.is_shared()) {
            self.fault(Origin::Whole, problem);
        }
        if let Some(problem) = self.config.media.fault() {
            self.fault(Origin::Whole, problem);
        }
        if let Err(problem) = check_webhooks(&self.config.bots, &self.config.server) {
            self.fault(Origin::Whole, problem);
        }
    }

    fn unknown_section(&mut self, origin: Origin, name: &str) {
        let alone = LISTS.iter().filter(|list| list.section.is_empty()).map(|list| list.name);
        let known = keys().map(|key| key.section()).chain(alone);
        let suggestion = alike(name, known.map(str::to_owned));
        self.fault(origin, Problem::UnknownSection { name: name.to_owned(), suggestion });
    }

    fn unknown_key(&mut self, origin: Origin, path: &str) {
        let last = path.rsplit('.').next().unwrap_or(path);
        // A right name in the wrong section is closer than a like one in the right section.
        let moved = known_paths().find(|known| known.rsplit('.').next() == Some(last));
        let alike = || alike(path, known_paths());
        let suggestion = moved.or_else(alike).map(|path| match &origin {
            Origin::Env { .. } => find(&path).map_or(path, variable),
            _ => path,
        });
        let name = match &origin {
            Origin::Env { name } => name.clone(),
            _ => path.to_owned(),
        };
        self.fault(origin, Problem::UnknownKey { name, suggestion });
    }

    fn fault(&mut self, origin: Origin, problem: impl Into<Problem>) {
        self.faults.push(Fault { origin, problem: problem.into() });
    }
}

/// Every name a setting, a table of settings or a list goes by.
fn known_paths() -> impl Iterator<Item = String> {
    let groups = keys().filter_map(|key| key.path().rsplit_once('.').map(|(group, _)| group.to_owned()));
    let groups = groups.filter(|group| group.contains('.'));
    let fields = LISTS.iter().flat_map(List::paths);
    keys().map(Key::path).chain(LISTS.iter().map(List::path)).chain(groups).chain(fields)
}

/// Whether there are settings below this name.
fn is_group(path: &str) -> bool {
    keys().any(|key| key.path().strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

fn not_a_group(path: &str) -> BadValue {
    let inner = keys().filter_map(|key| Some(key.path().strip_prefix(path)?.strip_prefix('.')?.to_owned()));
    let inner: Vec<String> = inner.map(|name| format!("{name} = …")).collect();
    let message = format!("is a table; write {{ {} }}", inner.join(", "));
    BadValue { key: path.to_owned(), message }
}

fn find_list(path: &str) -> Option<&'static List> {
    LISTS.iter().find(|list| list.path() == path)
}

fn not_a_list(list: &List) -> BadValue {
    let path = list.path();
    let message = format!("is a list of tables; write [[{path}]] in the file, with its keys below");
    BadValue { key: path, message }
}

fn find(path: &str) -> Option<Key> {
    let (section, name) = path.split_once('.')?;
    keys().find(|key| key.section() == section && key.name() == name)
}

/// The variable that overrides a setting.
fn variable(key: Key) -> String {
    format!("{PREFIX}{}", key.path().to_uppercase().replace('.', "__"))
}

fn squeezed(name: &str) -> String {
    name.replace(['.', '_'], "")
}

/// The line an offset is on, counted from one.
fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}
