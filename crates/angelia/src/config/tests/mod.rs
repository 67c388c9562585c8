mod bots;
mod media;
mod names;
mod store;
mod tables;

use super::*;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A file that is gone when the test is over.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        // Tests run side by side, and some write the same thing.
        static WRITTEN: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("angelia-config-{process}-{number}-{name}.toml"));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn load(name: &str, text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let file = File::new(name, text);
    from(Some(&file.0), env)
}

fn from(path: Option<&Path>, env: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Config::load(path, env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

/// What was reported, without the temporary directory.
fn faults(result: Result<Config, ConfigErrors>) -> Vec<String> {
    let errors = result.unwrap_err();
    let short = |line: String| line.rsplit_once(".toml").map_or(line.clone(), |(_, rest)| rest.to_owned());
    errors.faults().iter().map(|fault| short(fault.to_string())).collect()
}

#[test]
fn the_default_file_is_the_default() {
    assert_eq!(load("default", &default_file(), &[]).unwrap(), Config::default());
    assert_eq!(from(None, &[]).unwrap(), Config::default());
    let url = Config::default().server.public_url(Config::default().server.listen);
    assert_eq!(url, "http://127.0.0.1:8787");
    assert!(default_file().contains(&format!("# public_url = {url:?}")));
}

#[test]
fn the_default_file_is_put_together_without_a_seam() {
    let (made, whole) = (default_file(), include_str!("../default.toml"));
    let seam = made.lines().zip(whole.lines()).find(|(made, whole)| made != whole);
    assert_eq!(seam, None, "change template.toml or a platform's part, and default.toml with it");
    assert_eq!(made, whole);
}

#[test]
fn the_default_file_documents_every_key() {
    let mut section = String::new();
    let mut documented = Vec::new();
    for line in default_file().lines() {
        let line = line.trim_start_matches("# ");
        let named = |line: &str| line.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
        if let Some(name) = named(line).filter(|name| !name.contains(' ')) {
            section = name.trim_matches(['[', ']']).to_owned();
        } else if let Some((name, table)) = line.split_once(" = { ") {
            let inner = table.split(", ").filter_map(|pair| pair.split_once(" = "));
            documented.extend(inner.map(|(key, _)| format!("{section}.{name}.{key}")));
            documented.push(format!("{section}.{name}"));
        } else if let Some((name, _)) = line.split_once(" = ") {
            documented.push(format!("{section}.{name}"));
        }
    }
    for list in LISTS {
        for path in list.paths() {
            assert!(documented.contains(&path), "{path} is not in default.toml");
        }
    }
    for key in keys() {
        assert!(documented.contains(&key.path()), "{} is not in default.toml", key.path());
    }
}

#[test]
fn a_file_sets_what_it_names() {
    let text = r#"
        [server]
        listen = "[::1]:9000"
        public_url = "https://relay.example.org/x/"
        hosts = ["relay.internal", "192.0.2.7", "2001:db8::7"]
        data_dir = "/var/lib/angelia"
        drain = "0s"
        [relay]
        turn_limit = "90m"
        [keys]
        master = { file = "/run/key" }
        [inbox]
        max_age = "1d12h"
        max_entries = 5_000
        max_bytes = "1GiB"
        [limits]
        connections_per_address = 12
        gateways_per_tenant = 7
        new_gateways_per_minute = 3
        memory = "256MiB"
        tenant_memory = "64MiB"
        tenant_disk = "2GiB"
        sockets_per_gateway = 2
        [wake]
        allow = ["10.1.0.0/16", "192.0.2.7"]
        [webchat]
        enabled = false
        posts_burst = 5
        posts_per_minute = 600
        [log]
        level = "info,angelia_core=debug"
    "#;
    let config = load("sets", text, &[]).unwrap();
    assert_eq!(config.server.listen, "[::1]:9000".parse().unwrap());
    assert_eq!(config.server.public_url.as_deref(), Some("https://relay.example.org/x"));
    assert_eq!(config.server.hosts, ["relay.internal", "192.0.2.7", "[2001:db8::7]"]);
    assert_eq!(config.keys.master, Some(SecretRef::File("/run/key".into())));
    assert_eq!((config.built_in.webchat.pace.burst, config.built_in.webchat.pace.calls), (5, 600));
    assert_eq!(config.inbox.age, Duration::from_secs(36 * 3600));
    assert_eq!(config.inbox.bytes, 1 << 30);
    assert_eq!(config.limits.connections_per_address, 12);
    assert_eq!((config.limits.memory, config.limits.tenant_memory), (256 << 20, 64 << 20));
    assert_eq!((config.limits.tenant_disk, config.limits.sockets_per_gateway), (Some(2 << 30), 2));
    assert_eq!(config.wake.allow[1].to_string(), "192.0.2.7/32");
    assert!(!config.built_in.webchat.enabled);
    assert_eq!(config.server.drain, Duration::ZERO, "to wait for nobody is a choice");
    assert_eq!(config.relay, Relay { turn_limit: Duration::from_secs(90 * 60), ..Relay::default() });
    let GatewayLimits { per_tenant, pace } = config.limits.gateways;
    assert_eq!((per_tenant, pace.burst, pace.calls), (7, 20, 3));
    let one = |text: &str| faults(load("limits", text, &[])).join("\n");
    assert!(one("[limits]\ngateways_per_tenant = 10001").contains("must be at most 10000"));
    assert!(one("[limits]\nnew_gateways_at_once = 0").contains("must be between 1 and"));
}

#[test]
fn how_long_agents_are_waited_for_is_bounded() {
    let config = load("waits", "", &[]).unwrap();
    assert_eq!((config.server.drain.as_secs(), config.relay.turn_limit.as_secs()), (30, 3600));
    for (line, fault) in [
        ("[server]\ndrain = \"61m\"", "`server.drain` must be at most 1h"),
        ("[server]\ndrain = 30", "`server.drain`"),
        ("[relay]\nturn_limit = \"0s\"", "`relay.turn_limit` must be at least 1s"),
        ("[relay]\nturn_limit = \"25h\"", "`relay.turn_limit` must be at most 1d"),
        ("[relay]\nturn_limit = \"long\"", "`relay.turn_limit` is not a time"),
    ] {
        let told = faults(load("waits", line, &[])).join("\n");
        assert!(told.contains(fault), "{line}: {told}");
    }
}

/// What the unit says has to hold where nothing else is set.
#[test]
fn the_unit_gives_a_stop_the_time_it_takes() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/systemd/angelia.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let timeout = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    let timeout = crate::config::parse_duration(timeout).unwrap();
    assert!(timeout >= crate::supervisor::stop_takes(Config::default().server.drain, false), "{timeout:?}");
}

#[test]
fn the_environment_wins() {
    let text = "[server]\nlisten = \"127.0.0.1:1\"\nadmin_listen = \"127.0.0.1:2\"\n[wake]\nallow = [\"10.0.0.0/8\"]";
    let env = [
        ("ANGELIA_SERVER__LISTEN", "127.0.0.1:3"),
        ("ANGELIA_SERVER__BEHIND_PROXY", "true"),
        ("ANGELIA_INBOX__MAX_ENTRIES", "12"),
        ("ANGELIA_WAKE__ALLOW", "10.1.0.0/16, fd00::/8"),
        ("ANGELIA_KEYS__MASTER__ENV", "ANGELIA_KEYSMASTER"),
        ("ANGELIA_KEYSMASTER", "hunter2"),
        ("ANGELIA_LOG", "debug"),
        ("ANGELIA_FAIL", "anything"),
        ("ANGELIA_SERVICE_HOST", "10.0.0.1"),
        ("ANGELIA_PORT_8787_TCP", "tcp://10.0.0.1:8787"),
        ("SERVER__LISTEN", "not ours"),
    ];
    let config = load("env", text, &env).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.server.admin_listen.port(), 2);
    assert!(config.server.behind_proxy);
    assert_eq!(config.inbox.entries, 12);
    assert_eq!(config.wake.allow.len(), 2);
    assert_eq!(config.keys.master, Some(SecretRef::Env("ANGELIA_KEYSMASTER".into())));
    assert_eq!(config.log.level, "info");
}

#[test]
fn the_pace_of_people_is_not_nothing() {
    for line in
        ["posts_burst = 0", "posts_per_minute = 0", "posts_burst = 5000000000", "posts_burst = \"many\""]
    {
        assert!(load("pace", &format!("[webchat]\n{line}"), &[]).is_err(), "{line}");
    }
}

#[test]
fn the_environment_names_the_file() {
    let file = File::new("named", "[log]\nlevel = \"warn\"");
    let other = File::new("other", "[log]\nlevel = \"error\"");
    let named = [("ANGELIA_CONFIG", file.0.to_str().unwrap())];
    assert_eq!(from(None, &named).unwrap().log.level, "warn");
    assert_eq!(from(Some(&other.0), &named).unwrap().log.level, "error");
}

#[test]
fn unknown_names_come_with_a_suggestion() {
    let one = |text: &str| faults(load("unknown", text, &[])).join("\n");
    assert_eq!(
        one("[server]\n\nlisen = \"x\""),
        ":3: there is no setting `server.lisen`; did you mean `server.listen`?"
    );
    assert_eq!(one("[sever]\nlisten = 1"), ":1: there is no section `sever`; did you mean `server`?");
    assert_eq!(
        one("listen = \"127.0.0.1:1\""),
        ":1: there is no setting `listen`; did you mean `server.listen`?"
    );
    assert_eq!(
        one("[server]\nmax_age = \"7d\""),
        ":2: there is no setting `server.max_age`; did you mean `inbox.max_age`?"
    );
    assert_eq!(
        one("[[robots]]\nplatform = \"discord\""),
        ":1: there is no section `robots`; did you mean `bots`?"
    );
    assert_eq!(
        one("[[slack]]\ntoken = 1"),
        ":1: there is no section `slack`; `angelia config print` lists them all"
    );
    assert_eq!(one("server = 1"), ":1: `server` is a section; write [server] and its keys below");
    let env = |name: &str| faults(from(None, &[(name, "x")])).join("\n");
    assert_eq!(
        env("ANGELIA_SERVER__LISTN"),
        "environment variable ANGELIA_SERVER__LISTN: there is no setting `ANGELIA_SERVER__LISTN`; \
         did you mean `ANGELIA_SERVER__LISTEN`?"
    );
    assert!(env("ANGELIA_SERVER_LISTEN").ends_with("did you mean `ANGELIA_SERVER__LISTEN`?"));
}

#[test]
fn all_faults_are_reported_together() {
    let text = r#"[server]
listen = "localhost:8787"
admin_listen = "0.0.0.0:8788"
behind_proxy = "yes"
hosts = ["https://relay.example.org"]
[store]
url = "postgres://u:hunter2@db:x/y"
[bus]
url = "amqp://u:hunter2@x"
[inbox]
max_age = "a week"
max_entries = 0
max_bytes = "1KiB"
[wake]
allow = ["10.1.2.3/8"]
[limits]
connections_per_address = 0
[lgo]
level = "info"
"#;
    let env = [("ANGELIA_LOG__LEVEL", "loud"), ("ANGELIA_WAKE__ALLOW_HTTP", "1")];
    let errors = load("all", text, &env).unwrap_err();
    let told = errors.to_string();
    assert_eq!(errors.faults().len(), 14, "{told}");
    assert!(told.starts_with("the configuration has 14 faults:\n"), "{told}");
    for (line, words) in [
        (2, "`server.listen` is not an IP address and a port: \"localhost:8787\""),
        (3, "`server.admin_listen` must be a loopback address, not 0.0.0.0:8788"),
        (4, "`server.behind_proxy` needs true or false, not a text"),
        (5, "`server.hosts` holds something else than the name or address of a host"),
        (7, "`store.url` is not a URL of PostgreSQL (invalid value for option `port`)"),
        (9, "`bus.url` can be \"local\", which is one node, or a URL of Redis"),
        (11, "`inbox.max_age` is not a time: \"a week\""),
        (12, "`inbox.max_entries` must be at least 1"),
        (13, "`inbox.max_bytes` must be at least 1MiB"),
        (17, "`limits.connections_per_address` must be at least 1"),
        (18, "there is no section `lgo`; did you mean `log`?"),
        (15, "write \"10.0.0.0/8\" for the whole range or \"10.1.2.3\" for one address"),
    ] {
        assert!(
            told.lines().any(|told| told.contains(&format!(":{line}: ")) && told.contains(words)),
            "{told}"
        );
    }
    assert!(
        told.contains("environment variable ANGELIA_LOG__LEVEL: `log.level` is not a log level"),
        "{told}"
    );
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_broken_file_is_told_with_its_line() {
    let told = faults(load("broken", "[server]\nlisten = \n[keys]\nmaster = \"hunter2\nx", &[])).join("\n");
    assert!(told.starts_with(":2: this is not TOML: "), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    let told = faults(load("twice", "[log]\nlevel = \"info\"\nlevel = \"warn\"", &[])).join("\n");
    assert!(told.starts_with(":3: this is not TOML: duplicate key"), "{told}");
    let missing = from(Some(Path::new("/nonexistent/angelia.toml")), &[]).unwrap_err().to_string();
    assert!(missing.contains("/nonexistent/angelia.toml: the file cannot be read"), "{missing}");
}

#[test]
fn a_secret_given_openly_is_refused_and_not_repeated() {
    for text in [
        "master = \"hunter2\"",
        "master = { text = \"hunter2\" }",
        "master = { env = \"A\", file = \"hunter2\" }",
        "master = { file = \"\" }",
        "master = [\"hunter2\"]",
    ] {
        let told = faults(load("secret", &format!("[keys]\n{text}"), &[])).join("\n");
        assert!(told.starts_with(":2: `keys.master` is a secret and must be a reference"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    for text in ["\"vault hunter2\"", "[]", "[7]", "[\"\"]"] {
        let told =
            faults(load("secret", &format!("[keys]\nmaster = {{ command = {text} }}"), &[])).join("\n");
        assert!(told.starts_with(":2: `keys.master` needs a command as a list of its words"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    let config = load("secret", "[keys]\nmaster = { command = [\"vault\", \"read\"] }", &[]).unwrap();
    assert_eq!(config.keys.master, Some(SecretRef::Command(vec!["vault".into(), "read".into()])));
    let told = faults(load("secret", "[store]\npassword = { command = [\"vault\"] }", &[])).join("\n");
    assert!(told.contains("write { env = \"NAME\" } or"), "only what is read once: {told}");
    let told = faults(from(None, &[("ANGELIA_KEYS__MASTER", "hunter2")])).join("\n");
    assert!(told.contains("must be a reference") && !told.contains("hunter2"), "{told}");
}

#[test]
fn strangers_are_let_in_only_deliberately() {
    let with = |listen: &str, behind_proxy: bool| {
        let mut config = Config::default();
        config.server.listen = listen.parse().unwrap();
        config.server.behind_proxy = behind_proxy;
        config
    };
    for listen in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(with(listen, false).check_exposure(false).is_ok(), "{listen}");
    }
    for listen in ["0.0.0.0:1", "[::]:1", "192.168.1.5:1", "[fe80::1]:1"] {
        let told = with(listen, false).check_exposure(false).unwrap_err().to_string();
        assert!(told.contains(listen) && told.contains("--insecure"), "{told}");
        assert!(with(listen, true).check_exposure(false).is_ok());
        assert!(with(listen, false).check_exposure(true).is_ok());
    }
    let mut config = with("0.0.0.0:1", false);
    config.server.tls = Some(Tls { cert: "c.pem".into(), key: "k.pem".into() });
    assert!(config.check_exposure(false).is_ok());
    let told = faults(from(None, &[("ANGELIA_SERVER__LISTEN", "127.0.0.1:8788")])).join("\n");
    assert!(told.contains("is the same address as `server.listen`"), "{told}");
}

#[test]
fn a_server_that_others_reach_by_a_name_is_told_to_say_which() {
    let warned = |text: &str| load("named", text, &[]).unwrap().warning().is_some();
    assert!(warned("[server]\nbehind_proxy = true"));
    assert!(warned("[server]\ntls = { cert = \"c.pem\", key = \"k.pem\" }"));
    assert!(!warned(""), "on this machine there is a name for it");
    assert!(!warned("[server]\nbehind_proxy = true\npublic_url = \"https://relay.example.org\""));
    assert!(!warned("[server]\nbehind_proxy = true\nhosts = [\"relay.internal\"]"));
}

#[test]
fn the_public_url_follows_the_listener() {
    let server = Server::default();
    assert_eq!(server.public_url("0.0.0.0:99".parse().unwrap()), "http://127.0.0.1:99");
    assert_eq!(server.public_url("[::]:99".parse().unwrap()), "http://[::1]:99");
    let server = Server { tls: Some(Tls::default()), ..server };
    assert_eq!(server.public_url("0.0.0.0:99".parse().unwrap()), "https://127.0.0.1:99");
    for bad in ["relay.example.org", "ftp://x", "https://u:p@x", "https://x/?a", "https://x/#a"] {
        let told = faults(from(None, &[("ANGELIA_SERVER__PUBLIC_URL", bad)])).join("\n");
        assert!(told.contains("is not a base URL"), "{told}");
    }
}

#[test]
fn what_is_printed_is_what_is_in_force() {
    let text = "[keys]\nmaster = { env = \"KEY\" }\n[wake]\nallow = [\"10.1.0.0/16\"]\n[inbox]\nmax_bytes = \"64MB\"";
    let printed = load("print", text, &[("KEY", "hunter2")]).unwrap().print();
    assert!(printed.contains("\nmaster = { env = \"KEY\" }\n"), "{printed}");
    assert!(printed.contains("\nallow = [\"10.1.0.0/16\"]\n"), "{printed}");
    assert!(printed.contains("\nmax_bytes = \"64MB\"\n"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    assert_eq!(load("printed", &printed, &[]).unwrap().print(), printed);
    assert!(Config::default().print().contains("\n# master is not set: "));
}
