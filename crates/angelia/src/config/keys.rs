//! Every setting there is: how it is read, how it is shown.

use super::human::{format_duration, format_size};
use super::notices::{ambiguous, away, hint, notice_text, shown_ambiguous, shown_away, shown_hint};
use super::values::{
    address, at_least_one, connections, directory, drain, duration, endpoint, file, gateways, hosts,
    inbox_bytes, log_format, log_level, loopback, memory, pace, public_url, ranges, shown_log_format,
    turn_limit,
};
use super::{Config, Tls, bus_url as bus, media, store};
use angelia_platforms::section_keys;
use angelia_platforms::settings::{BadValue, Given, SectionKey, Shown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One setting.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Own(&'static OwnKey),
    /// What a platform adds.
    OfPlatform(&'static SectionKey),
}

/// A setting of the server itself.
pub(super) struct OwnKey {
    section: &'static str,
    /// Has a dot where it stands in a table of its own.
    name: &'static str,
    /// Reads a value into the configuration.
    read: fn(&mut Config, &Given<'_>) -> Result<(), BadValue>,
    /// The value in force as TOML, or what holds instead.
    show: fn(&Config) -> Shown,
}

impl Key {
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Own(key) => key.section,
            Self::OfPlatform(key) => key.section,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own(key) => key.name,
            Self::OfPlatform(key) => key.name,
        }
    }

    /// `section.name`.
    pub(super) fn path(self) -> String {
        format!("{}.{}", self.section(), self.name())
    }

    pub(super) fn read(self, config: &mut Config, given: &Given<'_>) -> Result<(), BadValue> {
        match self {
            Self::Own(key) => (key.read)(config, given),
            Self::OfPlatform(key) => (key.read)(&mut config.built_in, given),
        }
    }

    pub(super) fn show(self, config: &Config) -> Shown {
        match self {
            Self::Own(key) => (key.show)(config),
            Self::OfPlatform(key) => (key.show)(&config.built_in),
        }
    }
}

/// All settings, in the order in which they are shown.
pub(super) fn keys() -> impl Iterator<Item = Key> + Clone {
    let own = KEYS.iter().map(Key::Own);
    own.chain(section_keys().map(Key::OfPlatform)).chain(LAST_KEYS.iter().map(Key::Own))
}

/// A setting that is a field of the configuration: where it stands in the file, which field it
/// is, how it is read and how it is shown; and what holds instead where it need not be set.
macro_rules! setting {
    ($section:literal, $name:literal, $($field:ident).+, $read:path, $show:path) => {
        OwnKey {
            section: $section,
            name: $name,
            read: |config, given| $read(given).map(|it| config.$($field).+ = it),
            show: |config| $show(&config.$($field).+),
        }
    };
    ($section:literal, $name:literal, $($field:ident).+, $read:path, $show:path, or $instead:literal) => {
        OwnKey {
            section: $section,
            name: $name,
            read: |config, given| $read(given).map(|it| config.$($field).+ = Some(it)),
            show: |config| config.$($field).+.as_ref().map_or_else(|| Shown::unset($instead), $show),
        }
    };
}

const KEYS: &[OwnKey] = &[
    setting!("server", "listen", server.listen, address, Shown::quoted),
    OwnKey {
        section: "server",
        name: "public_url",
        read: |config, given| public_url(given).map(|it| config.server.public_url = Some(it)),
        show: |config| Shown::quoted(config.server.public_url(config.server.listen)),
    },
    setting!("server", "hosts", server.hosts, hosts, Shown::listed),
    setting!("server", "admin_listen", server.admin_listen, loopback, Shown::quoted),
    setting!("server", "data_dir", server.data_dir, directory, path),
    setting!("server", "behind_proxy", server.behind_proxy, Given::flag, Shown::bare),
    setting!("server", "drain", server.drain, drain, time),
    OwnKey {
        section: "server",
        name: "tls.cert",
        read: |config, given| file(given).map(|it| tls(config).cert = it),
        show: |config| half_of_tls(config, |tls| &tls.cert),
    },
    OwnKey {
        section: "server",
        name: "tls.key",
        read: |config, given| file(given).map(|it| tls(config).key = it),
        show: |config| half_of_tls(config, |tls| &tls.key),
    },
    setting!("keys", "master", keys.master, Given::secret_or_command, Shown::bare, or "the key file in data_dir is used"),
    setting!("relay", "source_flags", relay.source_flags, Given::flag, Shown::bare),
    setting!("relay", "turn_limit", relay.turn_limit, turn_limit, time),
    setting!("store", "url", store.url, store::url, store::shown_url),
    OwnKey {
        section: "store",
        name: "password",
        read: |config, given| given.secret().map(|it| config.store.password = Some(it)),
        show: |config| store::shown_password(&config.store),
    },
    setting!("store", "unsafe_fsync_off", store.unsafe_fsync_off, Given::flag, Shown::bare),
    setting!("bus", "url", bus.url, bus::url, bus::shown_url),
    OwnKey {
        section: "bus",
        name: "password",
        read: |config, given| given.secret().map(|it| config.bus.password = Some(it)),
        show: |config| bus::shown_password(&config.bus),
    },
    OwnKey {
        section: "bus",
        name: "ca",
        read: |config, given| file(given).map(|it| config.bus.ca = Some(it)),
        show: |config| match &config.bus.ca {
            Some(ca) => path(ca),
            None => Shown::unset("what the system trusts is trusted"),
        },
    },
    setting!("cluster", "bots", cluster.bots, Given::flag, Shown::bare),
    setting!("media", "url", media.url, media::url, Shown::quoted, or "files rest in data_dir; with PostgreSQL none are taken"),
    setting!("media", "endpoint", media.endpoint, media::endpoint, Shown::quoted, or "Amazon's server of the region is asked"),
    setting!("media", "region", media.region, media::word, Shown::quoted),
    setting!("media", "access_key_id", media.access_key_id, media::word, Shown::quoted, or "no bucket is asked"),
    setting!("media", "secret_access_key", media.secret_access_key, Given::secret, Shown::bare, or "no bucket is asked"),
    setting!("media", "tenant_bytes", media.tenant_bytes, media::tenant_bytes, size),
    setting!("media", "source_networks", media.source_networks, ranges, Shown::listed),
    setting!("identity", "builtin", identity.builtin, Given::flag, Shown::bare),
    setting!("identity", "portal.account_url", identity.portal, endpoint, Shown::quoted, or
        "no portal is asked whose token a caller holds"),
    setting!("notices", "away", notices.away, away, shown_away),
    setting!("notices", "away_after", notices.away_after, duration, time),
    setting!("notices", "away_text", notices.away_text, notice_text, Shown::quoted, or "it is said in the reader's language"),
    setting!("notices", "no_agent_text", notices.no_agent_text, notice_text, Shown::quoted, or "it is said in the reader's language"),
    setting!("notices", "unanswered_text", notices.unanswered_text, notice_text, Shown::quoted, or "it is said in the reader's language"),
    setting!("notices", "lost_text", notices.lost_text, notice_text, Shown::quoted, or "it is said in the reader's language"),
    setting!("notices", "ambiguous", notices.ambiguous, ambiguous, shown_ambiguous),
    setting!("notices", "ambiguous_text", notices.ambiguous_text, notice_text, Shown::quoted, or "it is said in the reader's language"),
    setting!("notices", "repeat_mark", notices.repeat_mark, notice_text, Shown::quoted, or "it is said in the reader's language"),
    setting!("notices", "hint", notices.hint, hint, shown_hint),
    setting!("inbox", "max_age", inbox.age, duration, time),
    setting!("inbox", "max_entries", inbox.entries, at_least_one, Shown::bare),
    setting!("inbox", "max_bytes", inbox.bytes, inbox_bytes, size),
    setting!("limits", "memory", limits.memory, memory, size),
    setting!("limits", "tenant_memory", limits.tenant_memory, memory, size),
    setting!("limits", "tenant_disk", limits.tenant_disk, memory, size, or
        "1GiB, or an eighth of the disk if that is less"),
    setting!("limits", "sockets_per_gateway", limits.sockets_per_gateway, at_least_one, Shown::bare),
    setting!("limits", "gateways_per_tenant", limits.gateways.per_tenant, gateways, Shown::bare),
    setting!("limits", "new_gateways_at_once", limits.gateways.pace.burst, pace, Shown::bare),
    setting!("limits", "new_gateways_per_minute", limits.gateways.pace.calls, pace, Shown::bare),
    setting!("limits", "connections_per_address", limits.connections_per_address, connections, Shown::bare),
    setting!("wake", "allow_http", wake.allow_http, Given::flag, Shown::bare),
    setting!("wake", "allow", wake.allow, ranges, Shown::listed),
];

/// What comes after the sections of platforms.
const LAST_KEYS: &[OwnKey] = &[
    setting!("log", "level", log.level, log_level, Shown::quoted),
    setting!("log", "format", log.format, log_format, shown_log_format),
];

fn path(path: &Path) -> Shown {
    Shown::quoted(path.display())
}

fn time(time: &Duration) -> Shown {
    Shown::quoted(format_duration(*time))
}

fn size(bytes: &u64) -> Shown {
    Shown::quoted(format_size(*bytes))
}

fn half_of_tls(config: &Config, half: fn(&Tls) -> &PathBuf) -> Shown {
    let given = config.server.tls.as_ref().map(|tls| path(half(tls)));
    given.unwrap_or_else(|| Shown::unset("the server itself does no TLS"))
}

/// The TLS setting in the making; that both halves were given is checked at the end.
fn tls(config: &mut Config) -> &mut Tls {
    config.server.tls.get_or_insert_default()
}
