//! What is counted and read off, in Prometheus' text format.

use angelia_core::admission::DropReason;
use angelia_core::ports::BusStats;
use angelia_core::space::Report;
use angelia_platforms::{BotState, Health};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($name:ident = $wire:literal, $help:literal;)*) => {
        /// Something that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $(#[doc = $help] $name,)*
        }

        const COUNTERS: &[(&str, &str)] = &[$(($wire, $help),)*];
    };
}

counters! {
    Upgrades = "angelia_relay_upgrades_total", "Sockets let in.";
    UpgradesRefused = "angelia_relay_upgrades_refused_total", "Upgrades refused with 401.";
    UpgradesRevoked = "angelia_relay_upgrades_revoked_total", "Upgrades of revoked gateways, closed with 4401.";
    UpgradesBarred = "angelia_relay_upgrades_barred_total", "Upgrades refused with 503 because two processes use one id.";
    UpgradesCrowded = "angelia_relay_upgrades_crowded_total", "Upgrades refused with 503 because their gateway, their tenant or all have too many sockets.";
    Misdirected = "angelia_http_misdirected_total", "Requests refused with 421 because they ask for another host name.";
    AccessRefused = "angelia_access_refused_total", "Requests refused for want of a proof or a right.";
    Takeovers = "angelia_relay_takeovers_total", "Sockets replaced by a newer one of the same instance.";
    Pushed = "angelia_relay_pushed_total", "Inbox entries written to a socket.";
    Settled = "angelia_relay_settled_total", "Inbox entries settled.";
    Overaged = "angelia_inbox_overaged_total", "Entries dropped because they waited longer than the quota allows.";
    DeadLetters = "angelia_inbox_dead_letters_total", "Entries taken out after three sockets ended on them.";
    Outbound = "angelia_relay_outbound_total", "Actions asked for by gateways.";
    OutboundDeclined = "angelia_relay_outbound_declined_total", "Actions whose target the sender may not write to.";
    OutboundOverBudget = "angelia_relay_outbound_over_budget_total", "Actions refused because too much of their sender waits, in memory or on disk.";
    OutboundAmbiguous = "angelia_relay_outbound_ambiguous_total", "Actions of which it is not known whether the platform has them.";
    OutboundExpired = "angelia_relay_outbound_expired_total", "Actions that could not be sent in the time they are kept for.";
    OutboundSuperseded = "angelia_relay_outbound_superseded_total", "Edits that a newer edit of the same message overtook.";
    OutboundTimedOut = "angelia_relay_outbound_timed_out_total", "Actions answered with a timeout.";
    Interrupts = "angelia_relay_interrupts_total", "Interrupts written to a socket.";
    InterruptsUnresolved = "angelia_relay_interrupts_unresolved_total", "Interrupts that matched no live conversation of the sender's tenant.";
    FramesUnknown = "angelia_relay_frames_unknown_total", "Frames of a type we do not know, ignored.";
    FramesTooEarly = "angelia_relay_frames_too_early_total", "Frames before a hello, ignored.";
    KeysUnknown = "angelia_relay_keys_unknown_total", "Keys of gateway frames that we do not know, ignored.";
    FramesMalformed = "angelia_relay_frames_malformed_total", "Lines that are no frame, ignored.";
    FramesTooLarge = "angelia_relay_frames_too_large_total", "Frames with a field over its limit, ignored.";
    CommandsDropped = "angelia_relay_commands_dropped_total", "Commands of gateways' manifests that no provider takes or their tenant has no room for, left out.";
    LinesTooLong = "angelia_relay_lines_too_long_total", "Lines over the size limit, refused.";
    LinesOverBudget = "angelia_relay_lines_over_budget_total", "Lines refused because their sender made the server hold too much.";
    LinesUnfinished = "angelia_relay_lines_unfinished_total", "Sockets ended because a line did not end in time.";
    AcksUnknown = "angelia_relay_acks_unknown_total", "Acknowledgements of entries that were not in flight on that socket.";
    TaskPanics = "angelia_task_panics_total", "Background tasks that panicked, and began again.";
    Wakes = "angelia_wake_pokes_total", "Wake URLs poked.";
    WakesRefused = "angelia_wake_refused_total", "Wake URLs that the guard did not let through.";
}

const REASONS: usize = DropReason::ALL.len();

/// How the server is at the moment.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Sockets open.
    pub sockets: usize,
    /// Whether the last commit went through.
    pub store_healthy: bool,
    /// Whether a leap of the clock is unconfirmed.
    pub clock_leapt: bool,
    /// Whether the database was found to be damaged.
    pub store_damaged: bool,
    /// How the disk is doing, if that is known.
    pub disk: Option<Report>,
    /// How this node is among others, where several share the store.
    pub node: Option<NodeGauges>,
}

/// How a node is among others.
#[derive(Clone, Debug, Default)]
pub struct NodeGauges {
    /// What it is called.
    pub node: String,
    /// Whether what it knows is what the others know.
    pub current: bool,
    /// How many nodes are there, itself among them.
    pub nodes: usize,
    /// How many leases it holds.
    pub leases: usize,
    /// Signs of life that it could not give since the start.
    pub beats_failed: u64,
    /// Whether it hears the others at once.
    pub bus_connected: bool,
    /// What its bus has counted, if there is one.
    pub bus: Option<BusStats>,
}

/// How one bot is at the moment.
#[derive(Clone, Debug)]
pub struct BotReading {
    /// Its platform.
    pub platform: String,
    /// Its id there.
    pub bot: String,
    /// How it is.
    pub health: Health,
}

impl BotReading {
    /// Its labels; `more` are further ones.
    fn labels(&self, more: &[(&str, &str)]) -> Labels {
        let own = [("platform", self.platform.as_str()), ("bot", self.bot.as_str())];
        own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
}

type Labels = Vec<(String, String)>;

/// The rows of one metric, in their order.
///
/// Written as the classic text format wants them: there a counter is called as its
/// row is, and the library, which writes OpenMetrics, would leave `_total` out of
/// the lines above it.
#[derive(Debug)]
struct Rows(MetricType, Vec<(Labels, u64)>);

impl EncodeMetric for Rows {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        for (labels, value) in &self.1 {
            if labels.is_empty() {
                encoder.encode_gauge(value)?;
            } else {
                encoder.encode_family(labels)?.encode_gauge(value)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        self.0
    }
}

/// All counters of one server.
#[derive(Debug)]
pub struct Metrics {
    counters: [AtomicU64; COUNTERS.len()],
    dropped: [AtomicU64; REASONS],
}

impl Default for Metrics {
    fn default() -> Self {
        let zero = |_| AtomicU64::default();
        Self { counters: std::array::from_fn(zero), dropped: std::array::from_fn(zero) }
    }
}

impl Metrics {
    /// Counts one.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Counts `n`.
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Counts an event that reached nobody.
    pub fn dropped(&self, reason: DropReason) {
        if let Some(index) = DropReason::ALL.iter().position(|r| *r == reason) {
            self.dropped[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Everything, in Prometheus' text format.
    pub fn render(&self, now: &Gauges, bots: &[BotReading]) -> String {
        let mut page = Page::default();
        for ((name, help), count) in COUNTERS.iter().zip(&self.counters) {
            page.rows(name, help, MetricType::Counter, [(vec![], count.load(Ordering::Relaxed))]);
        }
        let label = |reason: &DropReason| vec![("reason".to_owned(), reason.as_str().to_owned())];
        let dropped = DropReason::ALL.iter().zip(&self.dropped);
        let dropped = dropped.map(|(reason, count)| (label(reason), count.load(Ordering::Relaxed)));
        let help = "Events that reached nobody, by reason.";
        page.rows("angelia_dropped_total", help, MetricType::Counter, dropped);
        let up = bots.iter().map(|bot| (bot.labels(&[]), u64::from(bot.health.state == BotState::Up)));
        page.rows("angelia_bot_up", "Whether a bot hears its platform.", MetricType::Gauge, up);
        let counts = bots.iter().flat_map(|bot| {
            let counts = bot.health.counts.iter();
            counts.map(|(what, count)| (bot.labels(&[("what", what)]), *count))
        });
        let help = "What happened to a bot since the start, such as resumes.";
        page.rows("angelia_bot_counts_total", help, MetricType::Counter, counts);
        for (name, help, value) in now.readings() {
            page.rows(name, help, MetricType::Gauge, [(vec![], value)]);
        }
        if let Some(node) = &now.node {
            node.write(&mut page);
        }
        page.text()
    }
}

impl Gauges {
    fn readings(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut all = vec![
            ("angelia_relay_sessions", "Sockets open now.", self.sockets as u64),
            ("angelia_store_healthy", "Whether the last commit went through.", self.store_healthy.into()),
            (
                "angelia_store_damaged",
                "Whether the database was found to be damaged.",
                self.store_damaged.into(),
            ),
            (
                "angelia_clock_leapt",
                "Whether the clock leapt and nobody has confirmed it.",
                self.clock_leapt.into(),
            ),
        ];
        if let Some(Report { disk, short, database, .. }) = &self.disk {
            all.extend([
                ("angelia_disk_free_bytes", "Free on the disk of the data directory.", disk.free),
                ("angelia_disk_reserve_bytes", "Kept back on it for the operator now.", disk.reserve),
                ("angelia_disk_short", "Whether only operators may write.", (*short).into()),
                ("angelia_database_bytes", "The database.", *database),
                ("angelia_database_free_bytes", "What is free inside it.", disk.slack),
            ]);
        }
        all
    }
}

impl NodeGauges {
    fn write(&self, page: &mut Page) {
        let labels = [("node", self.node.as_str()), ("version", env!("CARGO_PKG_VERSION"))];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        page.rows("angelia_node_info", "What this node is called.", MetricType::Gauge, [(labels, 1)]);
        let gauges = [
            (
                "angelia_node_current",
                "Whether what this node knows is what the others know.",
                self.current.into(),
            ),
            ("angelia_node_leases", "What only one node does, done by this one.", self.leases as u64),
            ("angelia_cluster_nodes", "Nodes that are there, as this one knows.", self.nodes as u64),
            (
                "angelia_bus_connected",
                "Whether this node hears the others at once.",
                self.bus_connected.into(),
            ),
        ];
        for (name, help, value) in gauges {
            page.rows(name, help, MetricType::Gauge, [(vec![], value)]);
        }
        let help = "Signs of life that could not be given.";
        page.rows(
            "angelia_node_beats_failed_total",
            help,
            MetricType::Counter,
            [(vec![], self.beats_failed)],
        );
        let Some(bus) = &self.bus else { return };
        let counts = [
            ("sent", bus.sent),
            ("received", bus.received),
            ("dropped", bus.dropped),
            ("forged", bus.forged),
            ("unreadable", bus.unreadable),
            ("reconnects", bus.reconnects),
        ];
        let counts = counts.map(|(what, count)| (vec![("what".to_owned(), what.to_owned())], count));
        page.rows(
            "angelia_bus_counts_total",
            "What happened on the bus since the start.",
            MetricType::Counter,
            counts,
        );
        let help = "Hints that wait to be sent over the bus.";
        page.rows("angelia_bus_waiting", help, MetricType::Gauge, [(vec![], bus.waiting as u64)]);
    }
}

/// What is scraped at one moment.
#[derive(Default)]
struct Page(Registry);

impl Page {
    fn rows(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        rows: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        // The library ends every help text with a full stop of its own.
        self.0.register(name, help.trim_end_matches('.'), Rows(kind, rows.into_iter().collect()));
    }

    /// Without the last line of OpenMetrics, which the classic format does not have.
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.0);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::space::Disk;
    use angelia_platforms::HealthRecord;

    #[test]
    fn every_bot_has_its_own_lines() {
        let (up, down) = (HealthRecord::default(), HealthRecord::default());
        up.heard();
        up.count("resumes");
        up.count("resumes");
        down.down("no answer");
        let reading = |platform: &str, bot: &str, health: &HealthRecord| BotReading {
            platform: platform.into(),
            bot: bot.into(),
            health: health.health(),
        };
        let bots = [reading("discord", "12", &up), reading("telegram", "76", &down)];
        let text = Metrics::default().render(&Gauges::default(), &bots);
        for line in [
            "# TYPE angelia_bot_up gauge\n",
            "\nangelia_bot_up{platform=\"discord\",bot=\"12\"} 1\n",
            "\nangelia_bot_up{platform=\"telegram\",bot=\"76\"} 0\n",
            "\nangelia_bot_counts_total{platform=\"discord\",bot=\"12\",what=\"resumes\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn a_node_among_others_says_which_it_is() {
        let bus = BusStats { sent: 5, reconnects: 2, ..BusStats::default() };
        let node = NodeGauges { node: "n1".into(), leases: 3, bus: Some(bus), ..NodeGauges::default() };
        let text = Metrics::default().render(&Gauges { node: Some(node), ..Gauges::default() }, &[]);
        for line in [
            concat!("\nangelia_node_info{node=\"n1\",version=\"", env!("CARGO_PKG_VERSION"), "\"} 1\n"),
            "\nangelia_node_current 0\n",
            "\nangelia_node_leases 3\n",
            "\nangelia_node_beats_failed_total 0\n",
            "\nangelia_bus_counts_total{what=\"reconnects\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    /// What is scraped, to the letter: dashboards and alarms are made of it.
    #[test]
    fn operators_scrape_what_they_always_scraped() {
        let metrics = Metrics::default();
        metrics.count(Counter::Upgrades);
        metrics.add(Counter::Pushed, 7);
        metrics.dropped(DropReason::NoRoute);
        let health = HealthRecord::default();
        health.heard();
        health.count("resumes");
        let bots = [BotReading { platform: "discord".into(), bot: "12".into(), health: health.health() }];
        let disk = Disk { total: 9, free: 5, reserve: 4, log: 3, slack: 2 };
        let report = Report { disk, reserve_wanted: 4, database: 8, short: false, shrinks: true };
        let now = Gauges { sockets: 3, store_healthy: true, disk: Some(report), ..Gauges::default() };
        let text = metrics.render(&now, &bots);
        assert_eq!(text, include_str!("scraped.txt"));
    }
}
