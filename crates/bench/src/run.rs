//! One run of one binary: all sockets open, four loads one after the other.

use crate::gateway::Gateway;
use crate::load::{Done, Pace, Seat, Work, Writer, load};
use crate::poster::Poster;
use crate::receipts::{Fault, Receipts};
use crate::stage::{Room, Stage};
use crate::summary::percentile;
use angelia_testkit::gauge::Gauge;
use futures_util::stream::iter;
use futures_util::{StreamExt, TryStreamExt};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How many gateways dial at the same time.
const DIALS: usize = 32;
/// Before the first load: caches fill, and threads start that stay.
const WARM_UP: Duration = Duration::from_secs(1);
/// Between the last dial and the look at what idle sockets cost.
const CALM: Duration = Duration::from_millis(500);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Gateways whose sockets are open all the time.
    pub sockets: usize,
    /// Operations at the same time in the loads that go as fast as they can.
    pub at_once: usize,
    /// Operations a second in those at a fixed rate.
    pub rate: f64,
    /// How long each of the four takes.
    pub seconds: f64,
}

/// Why a run ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something was refused, lost or out of order: a server that does that is not measured.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The run's folder could not be used.
    #[error("{0}")]
    Folder(#[from] io::Error),
}

/// The figures of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Operations that began, all of which arrived.
    pub operations: u64,
    /// Operations a second.
    pub rate: f64,
    /// Processor time of the server for one operation, in microseconds.
    pub server_cpu: f64,
    /// The same of the generator, which is this process.
    pub own_cpu: f64,
    /// Half of all took no longer than this, in milliseconds.
    pub p50: f64,
    /// And all but one in a hundred than this.
    pub p99: f64,
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Delivery as fast as it goes and at the fixed rate, then round trips likewise.
    pub loads: [Figures; 4],
    /// The server's resident memory in MiB, with all sockets open and nothing to do.
    pub idle_memory: f64,
    /// The most it ever had.
    pub peak_memory: f64,
    /// How many cores everybody else on this machine used meanwhile.
    pub others: f64,
}

/// The names of the four loads, in their order.
pub fn names(plan: &Plan) -> [String; 4] {
    let (at_once, rate) = (plan.at_once, plan.rate);
    let name = |what: &str| [format!("{what}, {at_once} at a time"), format!("{what}, {rate} a second")];
    let ([a, b], [c, d]) = (name("durable delivery"), name("round trip"));
    [a, b, c, d]
}

/// Runs once, in a folder that is to be empty; `tell` hears what it is at.
///
/// # Errors
///
/// When something was refused, lost or out of order.
///
/// # Panics
///
/// When the server does not start.
pub async fn run(stage: &Stage, folder: &Path, plan: &Plan, tell: impl Fn(&str)) -> Result<Run, Error> {
    tell("starting");
    let mut server = stage.open(folder).await?;
    let url = server.url();
    let meters = Meters::new(server.process().id());
    let receipts = Arc::new(Receipts::new());
    tell(&format!("{} sockets dial", stage.rooms.len()));
    let mut writers = writers(&url, &url, &stage.rooms, plan.at_once, &receipts).await?;
    sleep(CALM).await;
    let idle_memory = mebibytes(meters.server.look().rss);

    tell("warming up");
    let (flat_out, paced) = (Pace::FlatOut, Pace::PerSecond(plan.rate));
    for work in [Work::Post, Work::Send] {
        load(&mut writers, &receipts, work, flat_out, WARM_UP).await?;
    }
    let time = Duration::from_secs_f64(plan.seconds);
    let before = meters.read();
    let mut loads = Vec::new();
    let kinds = [(Work::Post, flat_out), (Work::Post, paced), (Work::Send, flat_out), (Work::Send, paced)];
    for ((work, pace), name) in kinds.into_iter().zip(names(plan)) {
        tell(&name);
        let begun = meters.read();
        let done = load(&mut writers, &receipts, work, pace, time).await?;
        loads.push(meters.read().since(&begun).figures(done));
    }
    let spent = meters.read().since(&before);
    let peak_memory = mebibytes(meters.server.look().peak);
    server.process().kill().await;
    let loads = loads.try_into().expect("four loads, four figures");
    Ok(Run { loads, idle_memory, peak_memory, others: spent.others() })
}

/// Dials `relay` for all gateways and shares them out among so many writers, who post to `chat`.
pub(crate) async fn writers(
    relay: &str,
    chat: &str,
    rooms: &[Room],
    count: usize,
    receipts: &Arc<Receipts>,
) -> Result<Vec<Writer>, Fault> {
    let dials = iter(rooms).map(|room| async move {
        let gateway = Gateway::connect(relay, room, receipts.clone()).await?;
        Ok(Seat { gateway, room: room.clone(), posted: 0 })
    });
    let seats: Vec<Seat> = dials.buffered(DIALS).try_collect().await?;
    let count = count.min(seats.len());
    let mut writers = Vec::new();
    for _ in 0..count {
        writers.push(Writer { seats: Vec::new(), poster: Poster::connect(chat).await? });
    }
    for (number, seat) in seats.into_iter().enumerate() {
        writers[number % count].seats.push(seat);
    }
    Ok(writers)
}

/// What processor time is read from.
struct Meters {
    server: Gauge,
    own: Gauge,
}

/// One look at them; seconds.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    server: f64,
    own: f64,
    machine: f64,
}

/// What was spent between two of them; seconds.
#[derive(Clone, Copy, Debug)]
struct Spent {
    time: f64,
    server: f64,
    own: f64,
    machine: f64,
}

impl Meters {
    fn new(server: i32) -> Self {
        let own = i32::try_from(std::process::id()).expect("ids of processes are small");
        let gauge = |process| Gauge::new(process, Path::new(""));
        Self { server: gauge(server), own: gauge(own) }
    }

    fn read(&self) -> Reading {
        Reading { at: Instant::now(), server: self.server.cpu(), own: self.own.cpu(), machine: machine_cpu() }
    }
}

impl Reading {
    fn since(&self, before: &Self) -> Spent {
        Spent {
            time: self.at.duration_since(before.at).as_secs_f64(),
            server: self.server - before.server,
            own: self.own - before.own,
            machine: self.machine - before.machine,
        }
    }
}

impl Spent {
    fn figures(&self, done: Done) -> Figures {
        let operations = done.times.len();
        #[expect(clippy::cast_precision_loss, reason = "some hundred thousand")]
        let count = (operations as f64).max(1.0);
        let milliseconds = done.times.into_iter().map(|time| time.as_secs_f64() * 1e3).collect::<Vec<_>>();
        Figures {
            operations: operations as u64,
            rate: count / done.took.as_secs_f64(),
            server_cpu: self.server / count * 1e6,
            own_cpu: self.own / count * 1e6,
            p50: percentile(&milliseconds, 50.0),
            p99: percentile(&milliseconds, 99.0),
        }
    }

    fn others(&self) -> f64 {
        ((self.machine - self.server - self.own) / self.time).max(0.0)
    }
}

/// Seconds that all cores of this machine were busy since it started: all but `idle` and `iowait`
/// of the first line, in hundredths.
fn machine_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cores = stat.lines().next().unwrap_or_default();
    // Time of guests, the last two, is in that of users already.
    let ticks = cores.split_whitespace().skip(1).take(8).enumerate();
    let busy = ticks.filter(|(field, _)| !matches!(field, 3 | 4));
    busy.filter_map(|(_, ticks)| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn mebibytes(kibibytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "memory of one process")]
    let kibibytes = kibibytes as f64;
    kibibytes / 1024.0
}
