//! Every setting there is: how it is read, how it is shown.

use super::bots::{away, away_word, hint, notice_text};
use super::fault::Problem;
use super::human::{format_duration, format_size};
use super::raw::Given;
use super::values::{
    address, at_least_one, connections, directory, duration, endpoint, file, gateways, hosts, inbox_bytes,
    log_level, loopback, only, pace, public_url, ranges, rooms, size_at_least, some,
};
use super::{Config, Tls};

/// Below this not even the largest frame of one gateway would fit.
const MEMORY_FLOOR: u64 = 16 * 1024 * 1024;

/// One setting.
pub(super) struct Key {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    /// Reads a value into the configuration.
    pub(super) read: fn(&mut Config, &Given<'_>) -> Result<(), Problem>,
    /// The value in force as TOML, or what holds instead.
    pub(super) show: fn(&Config) -> Shown,
}

/// How a setting appears in `angelia config print`.
pub(super) enum Shown {
    Value(String),
    Unset(&'static str),
}

impl Key {
    /// `section.name`; the name itself has a dot where it stands in a table of its own.
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }
}

/// All settings, in the order in which they are shown.
pub(super) const KEYS: &[Key] = &[
    Key {
        section: "server",
        name: "listen",
        read: |config, given| address(given).map(|it| config.server.listen = it),
        show: |config| quoted(config.server.listen),
    },
    Key {
        section: "server",
        name: "public_url",
        read: |config, given| public_url(given).map(|it| config.server.public_url = Some(it)),
        show: |config| quoted(config.server.public_url(config.server.listen)),
    },
    Key {
        section: "server",
        name: "hosts",
        read: |config, given| hosts(given).map(|it| config.server.hosts = it),
        show: |config| listed(&config.server.hosts),
    },
    Key {
        section: "server",
        name: "admin_listen",
        read: |config, given| loopback(given).map(|it| config.server.admin_listen = it),
        show: |config| quoted(config.server.admin_listen),
    },
    Key {
        section: "server",
        name: "data_dir",
        read: |config, given| directory(given).map(|it| config.server.data_dir = it),
        show: |config| quoted(config.server.data_dir.display()),
    },
    Key {
        section: "server",
        name: "behind_proxy",
        read: |config, given| given.flag().map(|it| config.server.behind_proxy = it),
        show: |config| bare(config.server.behind_proxy),
    },
    Key {
        section: "server",
        name: "tls.cert",
        read: |config, given| file(given).map(|it| tls(config).cert = it),
        show: |config| {
            let given = config.server.tls.as_ref().map(|tls| quoted(tls.cert.display()));
            given.unwrap_or(Shown::Unset("the server itself does no TLS"))
        },
    },
    Key {
        section: "server",
        name: "tls.key",
        read: |config, given| file(given).map(|it| tls(config).key = it),
        show: |config| {
            let given = config.server.tls.as_ref().map(|tls| quoted(tls.key.display()));
            given.unwrap_or(Shown::Unset("the server itself does no TLS"))
        },
    },
    Key {
        section: "keys",
        name: "master",
        read: |config, given| given.secret().map(|it| config.keys.master = Some(it)),
        show: |config| {
            let unset = Shown::Unset("the key file in data_dir is used");
            config.keys.master.as_ref().map_or(unset, bare)
        },
    },
    Key {
        section: "relay",
        name: "source_flags",
        read: |config, given| given.flag().map(|it| config.relay.source_flags = it),
        show: |config| bare(config.relay.source_flags),
    },
    Key {
        section: "store",
        name: "url",
        read: |_, given| only(given, "sqlite", "a SQLite file in data_dir"),
        show: |_| quoted("sqlite"),
    },
    Key {
        section: "bus",
        name: "url",
        read: |_, given| only(given, "local", "a bus inside one process"),
        show: |_| quoted("local"),
    },
    Key {
        section: "identity",
        name: "builtin",
        read: |config, given| given.flag().map(|it| config.identity.builtin = it),
        show: |config| bare(config.identity.builtin),
    },
    Key {
        section: "identity",
        name: "portal.account_url",
        read: |config, given| endpoint(given).map(|it| config.identity.portal = Some(it)),
        show: |config| {
            let unset = Shown::Unset("no portal is asked whose token a caller holds");
            config.identity.portal.as_ref().map_or(unset, quoted)
        },
    },
    Key {
        section: "notices",
        name: "away",
        read: |config, given| away(given).map(|it| config.notices.away = it),
        show: |config| quoted(away_word(config.notices.away)),
    },
    Key {
        section: "notices",
        name: "away_after",
        read: |config, given| duration(given).map(|it| config.notices.away_after = it),
        show: |config| quoted(format_duration(config.notices.away_after)),
    },
    Key {
        section: "notices",
        name: "away_text",
        read: |config, given| notice_text(given).map(|it| config.notices.away_text = it),
        show: |config| quoted(&config.notices.away_text),
    },
    Key {
        section: "notices",
        name: "unanswered_text",
        read: |config, given| notice_text(given).map(|it| config.notices.unanswered_text = it),
        show: |config| quoted(&config.notices.unanswered_text),
    },
    Key {
        section: "notices",
        name: "lost_text",
        read: |config, given| notice_text(given).map(|it| config.notices.lost_text = it),
        show: |config| quoted(&config.notices.lost_text),
    },
    Key {
        section: "notices",
        name: "hint",
        read: |config, given| hint(given).map(|it| config.notices.hint = it),
        show: |config| quoted(&config.notices.hint),
    },
    Key {
        section: "inbox",
        name: "max_age",
        read: |config, given| duration(given).map(|it| config.inbox.max_age = it),
        show: |config| quoted(format_duration(config.inbox.max_age)),
    },
    Key {
        section: "inbox",
        name: "max_entries",
        read: |config, given| at_least_one(given).map(|it| config.inbox.max_entries = it),
        show: |config| bare(config.inbox.max_entries),
    },
    Key {
        section: "inbox",
        name: "max_bytes",
        read: |config, given| inbox_bytes(given).map(|it| config.inbox.max_bytes = it),
        show: |config| quoted(format_size(config.inbox.max_bytes)),
    },
    Key {
        section: "limits",
        name: "memory",
        read: |config, given| size_at_least(given, MEMORY_FLOOR).map(|it| config.limits.memory = it),
        show: |config| quoted(format_size(config.limits.memory)),
    },
    Key {
        section: "limits",
        name: "tenant_memory",
        read: |config, given| size_at_least(given, MEMORY_FLOOR).map(|it| config.limits.tenant_memory = it),
        show: |config| quoted(format_size(config.limits.tenant_memory)),
    },
    Key {
        section: "limits",
        name: "tenant_disk",
        read: |config, given| {
            size_at_least(given, MEMORY_FLOOR).map(|it| config.limits.tenant_disk = Some(it))
        },
        show: |config| {
            let unset = Shown::Unset("1GiB, or an eighth of the disk if that is less");
            config.limits.tenant_disk.map_or(unset, |bytes| quoted(format_size(bytes)))
        },
    },
    Key {
        section: "limits",
        name: "sockets_per_gateway",
        read: |config, given| at_least_one(given).map(|it| config.limits.sockets_per_gateway = it),
        show: |config| bare(config.limits.sockets_per_gateway),
    },
    Key {
        section: "limits",
        name: "gateways_per_tenant",
        read: |config, given| gateways(given).map(|it| config.limits.gateways.per_tenant = it),
        show: |config| bare(config.limits.gateways.per_tenant),
    },
    Key {
        section: "limits",
        name: "new_gateways_at_once",
        read: |config, given| pace(given).map(|it| config.limits.gateways.pace.burst = it),
        show: |config| bare(config.limits.gateways.pace.burst),
    },
    Key {
        section: "limits",
        name: "new_gateways_per_minute",
        read: |config, given| pace(given).map(|it| config.limits.gateways.pace.calls = it),
        show: |config| bare(config.limits.gateways.pace.calls),
    },
    Key {
        section: "limits",
        name: "connections_per_address",
        read: |config, given| connections(given).map(|it| config.limits.connections_per_address = it),
        show: |config| bare(config.limits.connections_per_address),
    },
    Key {
        section: "wake",
        name: "allow_http",
        read: |config, given| given.flag().map(|it| config.wake.allow_http = it),
        show: |config| bare(config.wake.allow_http),
    },
    Key {
        section: "wake",
        name: "allow",
        read: |config, given| ranges(given).map(|it| config.wake.allow = it),
        show: |config| listed(&config.wake.allow),
    },
    Key {
        section: "webchat",
        name: "enabled",
        read: |config, given| given.flag().map(|it| config.webchat.enabled = it),
        show: |config| bare(config.webchat.enabled),
    },
    Key {
        section: "webchat",
        name: "open_rooms",
        read: |config, given| rooms(given).map(|it| config.webchat.open_rooms = it),
        show: |config| listed(&config.webchat.open_rooms),
    },
    Key {
        section: "webchat",
        name: "posts_burst",
        read: |config, given| some(given).map(|it| config.webchat.pace.burst = it),
        show: |config| bare(config.webchat.pace.burst),
    },
    Key {
        section: "webchat",
        name: "posts_per_minute",
        read: |config, given| some(given).map(|it| config.webchat.pace.calls = it),
        show: |config| bare(config.webchat.pace.calls),
    },
    Key {
        section: "log",
        name: "level",
        read: |config, given| log_level(given).map(|it| config.log.level = it),
        show: |config| quoted(&config.log.level),
    },
];

/// The TLS setting in the making; that both halves were given is checked at the end.
fn tls(config: &mut Config) -> &mut Tls {
    config.server.tls.get_or_insert_default()
}

pub(super) fn bare(value: impl ToString) -> Shown {
    Shown::Value(value.to_string())
}

/// A list of texts that need no escaping.
fn listed(values: &[impl std::fmt::Display]) -> Shown {
    let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    bare(format_args!("[{}]", values.join(", ")))
}

pub(super) fn quoted(value: impl ToString) -> Shown {
    bare(toml::Value::String(value.to_string()))
}
