//! How the server is doing.

use super::Admin;
use super::bot_health::Healths;
use super::keys::{Clock, describe_clock};
use super::standing_elsewhere::Instances;
use super::types::Nothing;
use crate::identities::Snapshot;
use crate::readiness::Readiness;
use crate::relay::Standing;
use crate::telemetry::Counter;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::media::{MediaStore, TENANT_FILES};
use angelia_core::problems::{Place, fill};
use angelia_core::space::Report;
use angelia_core::store::{ActionTrace, JournalStore, ListedInbox};
use angelia_platforms::{BotState, Health};
use std::collections::HashMap;
use std::sync::Arc;

answered! {
    /// How the server is doing.
    pub struct Status {
        /// Tenants that use much of the memory they may.
        pub memory: Vec<Heavy>,
        /// The files that are kept; `null` where none are, for want of a place.
        pub files: Option<Files>,
        /// Answers that may or may not have been sent; repeating them could double them.
        pub ambiguous: Vec<ActionTrace>,
        /// Bots that do not hear at the moment.
        pub bots: Vec<UnwellBot>,
        /// Their gateways may not come in: what was sealed for them does not open.
        pub damaged: Vec<DamagedGateway>,
        /// A leap that nobody has confirmed: nothing is dropped for its age meanwhile.
        pub clock: Clock,
        /// What a check of the database found after a server that did not end by itself.
        pub database_damage: Option<String>,
        /// How the disk is doing.
        pub disk: Report,
        /// Whether messages are taken in.
        pub ready: bool,
        /// Why they are not, in words.
        pub not_ready: Option<String>,
        /// What is not as it should be although they are, in words.
        pub degraded: Vec<String>,
        /// What this node is called, where several share the store.
        pub node: Option<String>,
        /// Sockets open, on this node.
        pub sockets: u64,
        /// Entries written to sockets since the start.
        pub pushed: u64,
        /// Entries settled since the start.
        pub settled: u64,
        /// Every gateway.
        pub gateways: Vec<GatewayStatus>,
        /// Tenants whose messages wait for their first gateway.
        pub awaiting_first: Vec<AwaitingFirst>,
    }

    /// A tenant that uses much of the memory it may.
    pub struct Heavy {
        /// Its name.
        pub tenant: String,
        /// What it holds, in bytes.
        pub held: u64,
        /// What it may hold.
        pub of: u64,
    }

    /// The files that are kept.
    pub struct Files {
        /// How many.
        pub count: u64,
        /// Their bytes; the same ones of a tenant are kept once.
        pub bytes: u64,
        /// Tenants that are about to have as much of them as they may.
        pub heavy: Vec<HeavyFiles>,
    }

    /// A tenant that is about to have as much of files as it may.
    pub struct HeavyFiles {
        /// Its name.
        pub tenant: String,
        /// How many it has.
        pub count: u64,
        /// Their bytes.
        pub bytes: u64,
        /// How many bytes it may have.
        pub of: u64,
    }

    /// A bot that does not hear.
    pub struct UnwellBot {
        /// Its platform.
        pub platform: String,
        /// Its name here.
        pub name: String,
        /// How it is.
        pub state: BotState,
        /// What is wrong, and what to do about it.
        pub why: Option<String>,
    }

    /// A gateway that may not come in.
    pub struct DamagedGateway {
        /// Its tenant.
        pub tenant: String,
        /// Its id.
        pub gateway_id: String,
        /// What of it does not open.
        pub kind: String,
        /// Why.
        pub error: String,
    }

    /// How a gateway is doing.
    pub struct GatewayStatus {
        /// Its tenant.
        pub tenant: String,
        /// Its id.
        pub gateway_id: String,
        /// Whether its socket is open.
        pub connected: bool,
        /// When it was revoked, if it was.
        pub revoked_at: Option<UnixMillis>,
        /// Since when it is connected, or away, as far as this node saw it come or leave.
        pub since: Option<UnixMillis>,
        /// Why it was turned away the last time, since it was here last.
        pub refused: Option<Refused>,
        /// Whether it said that it goes idle.
        pub idle: bool,
        /// It says hello for these platforms, and nothing here could bring it anything from them.
        pub not_served: Vec<String>,
        /// What is known of its habit of acknowledging.
        pub acknowledges: String,
        /// How it tells that it has finished with a message, as far as was seen since the server started.
        pub turns: String,
        /// Entries that wait for it.
        pub waiting: u64,
        /// Its dead letters.
        pub dead: u64,
        /// Messages that it lost to the quota.
        pub lost: u64,
    }

    /// A gateway that was turned away.
    pub struct Refused {
        /// When.
        pub at: UnixMillis,
        /// Why, in a word.
        pub reason: String,
        /// What that means.
        pub means: String,
        /// What to do about it.
        pub next: String,
    }

    /// A tenant whose messages wait for its first gateway.
    pub struct AwaitingFirst {
        /// Its name.
        pub tenant: String,
        /// How many wait.
        pub waiting: u64,
        /// How many were lost to the quota.
        pub lost: u64,
    }
}

/// Ambiguous actions shown.
const SHOWN: usize = 20;

/// What `angelia status` shows.
pub(super) async fn status(admin: Arc<Admin>, _: Nothing) -> Result<Status> {
    let listed = admin.ports.inboxes.inboxes().await?;
    let ambiguous = admin.ports.records.ambiguous_actions(SHOWN).await?;
    let disk = admin.ports.upkeep.disk().await?;
    let known = admin.identities.snapshot();
    let damaged = known.damaged().into_iter().map(|(tenant, gateway_id, error)| {
        let kind = "secret of a gateway".to_owned();
        DamagedGateway { tenant, gateway_id, kind, error }
    });
    let readiness = Readiness::of(&admin.life, &*admin.ports.upkeep, &admin.cluster, &admin.keys);
    let heavy = admin.memory.heavy().into_iter();
    let of = admin.memory.of_tenant() as u64;
    let gateways = gateways(&admin, &known, &listed).await?;
    Ok(Status {
        memory: heavy.map(|(tenant, held)| Heavy { tenant, held: held as u64, of }).collect(),
        files: files(&admin).await?,
        ambiguous,
        bots: unwell(&admin).await,
        damaged: damaged.collect(),
        clock: describe_clock(&admin),
        database_damage: admin.integrity.damage(),
        disk,
        ready: readiness.is_ready(),
        not_ready: readiness.refusal.map(str::to_owned),
        degraded: readiness.degraded,
        node: admin.cluster.is_shared().then(|| admin.cluster.node().to_owned()),
        sockets: admin.sessions.open() as u64,
        pushed: admin.metrics.get(Counter::Pushed),
        settled: admin.metrics.get(Counter::Settled),
        gateways,
        // They have no gateway to be shown with; those for whom nothing came are no news.
        awaiting_first: listed
            .iter()
            .filter(|inbox| known.awaits_first(inbox.instance) && inbox.waiting + lost(inbox) > 0)
            .map(|inbox| AwaitingFirst {
                tenant: inbox.tenant.clone(),
                waiting: inbox.waiting,
                lost: lost(inbox),
            })
            .collect(),
    })
}

/// Of files as of memory: who has more than three quarters of what they may is told of.
async fn files(admin: &Admin) -> Result<Option<Files>> {
    let Some(of) = admin.files_of_tenant else { return Ok(None) };
    let all = admin.ports.records.files_of_tenants().await?;
    let heavy = |bytes: u64, count: u64| bytes > of / 4 * 3 || count > TENANT_FILES / 4 * 3;
    Ok(Some(Files {
        count: all.iter().map(|(_, files)| files.files).sum(),
        bytes: all.iter().map(|(_, files)| files.bytes).sum(),
        heavy: all
            .into_iter()
            .filter(|(_, files)| heavy(files.bytes, files.files))
            .map(|(tenant, files)| HeavyFiles { tenant, count: files.files, bytes: files.bytes, of })
            .collect(),
    }))
}

/// What an inbox lost to its quota.
fn lost(inbox: &ListedInbox) -> u64 {
    inbox.gaps.iter().map(|gap| gap.lost).sum()
}

async fn gateways(admin: &Admin, known: &Snapshot, listed: &[ListedInbox]) -> Result<Vec<GatewayStatus>> {
    let instances = Instances::of(admin, &known.all()).await?;
    let inboxes: HashMap<_, _> = listed.iter().map(|inbox| (inbox.instance, inbox)).collect();
    let ours = admin.bots.descriptors();
    let served = |platform: &String| ours.iter().any(|known| known.platform == *platform);
    let describe = |record: &Arc<GatewayRecord>| {
        let inbox = inboxes.get(&record.instance);
        let standing = instances.standing(admin, record.instance);
        let fronts = known.fronts(record.instance).into_iter();
        let mut not_served: Vec<String> = fronts.map(|(platform, _)| platform).collect();
        not_served.retain(|platform| !served(platform));
        let connected = instances.is_connected(admin, record);
        GatewayStatus {
            tenant: record.tenant.clone(),
            gateway_id: record.gateway_id.clone(),
            connected,
            revoked_at: record.revoked_at,
            since: since(&standing, connected),
            refused: refused(admin, record, connected),
            idle: standing.idle,
            not_served,
            acknowledges: standing.habit.as_str().to_owned(),
            turns: standing.marks_turns().to_owned(),
            waiting: inbox.map_or(0, |inbox| inbox.waiting),
            dead: inbox.map_or(0, |inbox| inbox.dead),
            lost: inbox.map_or(0, |inbox| lost(inbox)),
        }
    };
    Ok(known.all().iter().map(describe).collect())
}

/// Since when a gateway is there, or not, on this node.
fn since(standing: &Standing, connected: bool) -> Option<UnixMillis> {
    let at = if connected { standing.came_at } else { standing.left_at }?;
    Some(clock::wall().before(clock::mono().since(at)))
}

/// What keeps a gateway out that is not there.
fn refused(admin: &Admin, record: &GatewayRecord, connected: bool) -> Option<Refused> {
    let (why, at) = admin.dials.last_refused(record).filter(|_| !connected)?;
    let problem = why.problem();
    let (tenant, gateway) = (Some(&*record.tenant), Some(&*record.gateway_id));
    let next = fill(problem.next, &Place { tenant, gateway, ..Place::default() });
    Some(Refused { at, reason: problem.word.to_owned(), means: problem.means.to_owned(), next })
}

/// The bots that do not hear.
async fn unwell(admin: &Admin) -> Vec<UnwellBot> {
    let (healths, _) = Healths::of(admin).await;
    let bots = admin.bots.all().iter().filter_map(|bot| {
        let Health { state, why, .. } = healths.of_bot(&**bot).filter(|health| !health.state.is_well())?;
        Some(UnwellBot { platform: bot.platform().to_owned(), name: bot.name().to_owned(), state, why })
    });
    bots.collect()
}
