//! Every setting there is: how it is read, how it is shown.

use super::human::{format_duration, format_size};
use super::notices::{away, away_word, hint, notice_text};
use super::values::{
    address, at_least_one, connections, directory, duration, endpoint, file, gateways, hosts, inbox_bytes,
    log_level, loopback, only, pace, public_url, ranges, size_at_least,
};
use super::{Config, Tls};
use angelia_platforms::section_keys;
use angelia_platforms::settings::{BadValue, Given, SectionKey, Shown};

/// Below this not even the largest frame of one gateway would fit.
const MEMORY_FLOOR: u64 = 16 * 1024 * 1024;

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

const KEYS: &[OwnKey] = &[
    OwnKey {
        section: "server",
        name: "listen",
        read: |config, given| address(given).map(|it| config.server.listen = it),
        show: |config| Shown::quoted(config.server.listen),
    },
    OwnKey {
        section: "server",
        name: "public_url",
        read: |config, given| public_url(given).map(|it| config.server.public_url = Some(it)),
        show: |config| Shown::quoted(config.server.public_url(config.server.listen)),
    },
    OwnKey {
        section: "server",
        name: "hosts",
        read: |config, given| hosts(given).map(|it| config.server.hosts = it),
        show: |config| Shown::listed(&config.server.hosts),
    },
    OwnKey {
        section: "server",
        name: "admin_listen",
        read: |config, given| loopback(given).map(|it| config.server.admin_listen = it),
        show: |config| Shown::quoted(config.server.admin_listen),
    },
    OwnKey {
        section: "server",
        name: "data_dir",
        read: |config, given| directory(given).map(|it| config.server.data_dir = it),
        show: |config| Shown::quoted(config.server.data_dir.display()),
    },
    OwnKey {
        section: "server",
        name: "behind_proxy",
        read: |config, given| given.flag().map(|it| config.server.behind_proxy = it),
        show: |config| Shown::bare(config.server.behind_proxy),
    },
    OwnKey {
        section: "server",
        name: "tls.cert",
        read: |config, given| file(given).map(|it| tls(config).cert = it),
        show: |config| {
            let given = config.server.tls.as_ref().map(|tls| Shown::quoted(tls.cert.display()));
            given.unwrap_or(Shown::unset("the server itself does no TLS"))
        },
    },
    OwnKey {
        section: "server",
        name: "tls.key",
        read: |config, given| file(given).map(|it| tls(config).key = it),
        show: |config| {
            let given = config.server.tls.as_ref().map(|tls| Shown::quoted(tls.key.display()));
            given.unwrap_or(Shown::unset("the server itself does no TLS"))
        },
    },
    OwnKey {
        section: "keys",
        name: "master",
        read: |config, given| given.secret().map(|it| config.keys.master = Some(it)),
        show: |config| {
            let unset = Shown::unset("the key file in data_dir is used");
            config.keys.master.as_ref().map_or(unset, Shown::bare)
        },
    },
    OwnKey {
        section: "relay",
        name: "source_flags",
        read: |config, given| given.flag().map(|it| config.relay.source_flags = it),
        show: |config| Shown::bare(config.relay.source_flags),
    },
    OwnKey {
        section: "store",
        name: "url",
        read: |_, given| only(given, "sqlite", "a SQLite file in data_dir"),
        show: |_| Shown::quoted("sqlite"),
    },
    OwnKey {
        section: "bus",
        name: "url",
        read: |_, given| only(given, "local", "a bus inside one process"),
        show: |_| Shown::quoted("local"),
    },
    OwnKey {
        section: "identity",
        name: "builtin",
        read: |config, given| given.flag().map(|it| config.identity.builtin = it),
        show: |config| Shown::bare(config.identity.builtin),
    },
    OwnKey {
        section: "identity",
        name: "portal.account_url",
        read: |config, given| endpoint(given).map(|it| config.identity.portal = Some(it)),
        show: |config| {
            let unset = Shown::unset("no portal is asked whose token a caller holds");
            config.identity.portal.as_ref().map_or(unset, Shown::quoted)
        },
    },
    OwnKey {
        section: "notices",
        name: "away",
        read: |config, given| away(given).map(|it| config.notices.away = it),
        show: |config| Shown::quoted(away_word(config.notices.away)),
    },
    OwnKey {
        section: "notices",
        name: "away_after",
        read: |config, given| duration(given).map(|it| config.notices.away_after = it),
        show: |config| Shown::quoted(format_duration(config.notices.away_after)),
    },
    OwnKey {
        section: "notices",
        name: "away_text",
        read: |config, given| notice_text(given).map(|it| config.notices.away_text = it),
        show: |config| Shown::quoted(&config.notices.away_text),
    },
    OwnKey {
        section: "notices",
        name: "unanswered_text",
        read: |config, given| notice_text(given).map(|it| config.notices.unanswered_text = it),
        show: |config| Shown::quoted(&config.notices.unanswered_text),
    },
    OwnKey {
        section: "notices",
        name: "lost_text",
        read: |config, given| notice_text(given).map(|it| config.notices.lost_text = it),
        show: |config| Shown::quoted(&config.notices.lost_text),
    },
    OwnKey {
        section: "notices",
        name: "hint",
        read: |config, given| hint(given).map(|it| config.notices.hint = it),
        show: |config| Shown::quoted(&config.notices.hint),
    },
    OwnKey {
        section: "inbox",
        name: "max_age",
        read: |config, given| duration(given).map(|it| config.inbox.max_age = it),
        show: |config| Shown::quoted(format_duration(config.inbox.max_age)),
    },
    OwnKey {
        section: "inbox",
        name: "max_entries",
        read: |config, given| at_least_one(given).map(|it| config.inbox.max_entries = it),
        show: |config| Shown::bare(config.inbox.max_entries),
    },
    OwnKey {
        section: "inbox",
        name: "max_bytes",
        read: |config, given| inbox_bytes(given).map(|it| config.inbox.max_bytes = it),
        show: |config| Shown::quoted(format_size(config.inbox.max_bytes)),
    },
    OwnKey {
        section: "limits",
        name: "memory",
        read: |config, given| size_at_least(given, MEMORY_FLOOR).map(|it| config.limits.memory = it),
        show: |config| Shown::quoted(format_size(config.limits.memory)),
    },
    OwnKey {
        section: "limits",
        name: "tenant_memory",
        read: |config, given| size_at_least(given, MEMORY_FLOOR).map(|it| config.limits.tenant_memory = it),
        show: |config| Shown::quoted(format_size(config.limits.tenant_memory)),
    },
    OwnKey {
        section: "limits",
        name: "tenant_disk",
        read: |config, given| {
            size_at_least(given, MEMORY_FLOOR).map(|it| config.limits.tenant_disk = Some(it))
        },
        show: |config| {
            let unset = Shown::unset("1GiB, or an eighth of the disk if that is less");
            config.limits.tenant_disk.map_or(unset, |bytes| Shown::quoted(format_size(bytes)))
        },
    },
    OwnKey {
        section: "limits",
        name: "sockets_per_gateway",
        read: |config, given| at_least_one(given).map(|it| config.limits.sockets_per_gateway = it),
        show: |config| Shown::bare(config.limits.sockets_per_gateway),
    },
    OwnKey {
        section: "limits",
        name: "gateways_per_tenant",
        read: |config, given| gateways(given).map(|it| config.limits.gateways.per_tenant = it),
        show: |config| Shown::bare(config.limits.gateways.per_tenant),
    },
    OwnKey {
        section: "limits",
        name: "new_gateways_at_once",
        read: |config, given| pace(given).map(|it| config.limits.gateways.pace.burst = it),
        show: |config| Shown::bare(config.limits.gateways.pace.burst),
    },
    OwnKey {
        section: "limits",
        name: "new_gateways_per_minute",
        read: |config, given| pace(given).map(|it| config.limits.gateways.pace.calls = it),
        show: |config| Shown::bare(config.limits.gateways.pace.calls),
    },
    OwnKey {
        section: "limits",
        name: "connections_per_address",
        read: |config, given| connections(given).map(|it| config.limits.connections_per_address = it),
        show: |config| Shown::bare(config.limits.connections_per_address),
    },
    OwnKey {
        section: "wake",
        name: "allow_http",
        read: |config, given| given.flag().map(|it| config.wake.allow_http = it),
        show: |config| Shown::bare(config.wake.allow_http),
    },
    OwnKey {
        section: "wake",
        name: "allow",
        read: |config, given| ranges(given).map(|it| config.wake.allow = it),
        show: |config| Shown::listed(&config.wake.allow),
    },
];

/// What comes after the sections of platforms.
const LAST_KEYS: &[OwnKey] = &[OwnKey {
    section: "log",
    name: "level",
    read: |config, given| log_level(given).map(|it| config.log.level = it),
    show: |config| Shown::quoted(&config.log.level),
}];

/// The TLS setting in the making; that both halves were given is checked at the end.
fn tls(config: &mut Config) -> &mut Tls {
    config.server.tls.get_or_insert_default()
}
