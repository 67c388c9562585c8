//! How the server is doing.

use super::Admin;
use super::clock;
use super::types::{AwaitingFirst, DamagedGateway, GatewayStatus, Heavy, Nothing, Status, UnwellBot};
use crate::identities::Snapshot;
use crate::telemetry::Counter;
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::store::{JournalStore, ListedInbox};
use angelia_platforms::{BotState, Health};
use std::collections::HashMap;
use std::sync::Arc;

/// Ambiguous actions shown.
const SHOWN: usize = 20;

/// What `angelia status` shows.
pub(super) async fn status(admin: Arc<Admin>, _: Nothing) -> Result<Status> {
    let listed = admin.ports.inboxes.inboxes().await?;
    let ambiguous = admin.ports.records.ambiguous_actions(SHOWN).await?;
    let disk = admin.ports.upkeep.disk().await?;
    let known = admin.identities.now();
    let damaged = known.damaged().into_iter().map(|(tenant, gateway_id, error)| {
        let kind = "secret of a gateway".to_owned();
        DamagedGateway { tenant, gateway_id, kind, error }
    });
    let heavy = admin.memory.heavy().into_iter();
    let of = admin.memory.of_tenant() as u64;
    Ok(Status {
        memory: heavy.map(|(tenant, held)| Heavy { tenant, held: held as u64, of }).collect(),
        ambiguous,
        bots: unwell(&admin),
        damaged: damaged.collect(),
        clock: clock::describe(&admin),
        database_damage: admin.integrity.damage(),
        disk,
        ready: admin.ports.upkeep.healthy() && !admin.life.is_stopping(),
        sockets: admin.sessions.open() as u64,
        pushed: admin.metrics.get(Counter::Pushed),
        settled: admin.metrics.get(Counter::Settled),
        gateways: gateways(&admin, &known, &listed),
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

/// What an inbox lost to its quota.
fn lost(inbox: &ListedInbox) -> u64 {
    inbox.gaps.iter().map(|gap| gap.lost).sum()
}

fn gateways(admin: &Admin, known: &Snapshot, listed: &[ListedInbox]) -> Vec<GatewayStatus> {
    let inboxes: HashMap<_, _> = listed.iter().map(|inbox| (inbox.instance, inbox)).collect();
    let ours = admin.bots.descriptors();
    let served = |platform: &String| ours.iter().any(|known| known.platform == *platform);
    let describe = |record: &Arc<GatewayRecord>| {
        let inbox = inboxes.get(&record.instance);
        let standing = admin.sessions.standing(record.instance);
        let fronts = known.fronts(record.instance).into_iter();
        let mut not_served: Vec<String> = fronts.map(|(platform, _)| platform).collect();
        not_served.retain(|platform| !served(platform));
        GatewayStatus {
            tenant: record.tenant.clone(),
            gateway_id: record.gateway_id.clone(),
            connected: admin.sessions.is_connected(record),
            idle: standing.idle,
            not_served,
            acknowledges: standing.habit.as_str().to_owned(),
            waiting: inbox.map_or(0, |inbox| inbox.waiting),
            dead: inbox.map_or(0, |inbox| inbox.dead),
            lost: inbox.map_or(0, |inbox| lost(inbox)),
        }
    };
    known.all().iter().map(describe).collect()
}

/// The bots that do not hear.
fn unwell(admin: &Admin) -> Vec<UnwellBot> {
    let bots = admin.bots.all().iter().filter_map(|bot| {
        let Health { state, why, .. } = bot.health().filter(|health| health.state != BotState::Up)?;
        Some(UnwellBot { platform: bot.platform().to_owned(), name: bot.name().to_owned(), state, why })
    });
    bots.collect()
}
