//! How the server is doing.

use super::Admin;
use super::clock;
use super::router::answer;
use crate::telemetry::Counter;
use angelia_core::store::{JournalStore, ListedInbox};
use angelia_platforms::BotState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Ambiguous actions shown.
const SHOWN: usize = 20;

/// What `angelia status` shows.
pub(super) async fn status(State(admin): State<Arc<Admin>>) -> Response {
    let status = async {
        let listed = admin.ports.inboxes.inboxes().await?;
        let inboxes: HashMap<_, _> = listed.iter().map(|inbox| (inbox.instance, inbox)).collect();
        let lost = |inbox: &ListedInbox| inbox.gaps.iter().map(|gap| gap.lost).sum::<u64>();
        let ours = admin.bots.descriptors();
        let served = |platform: &String| ours.iter().any(|known| known.platform == *platform);
        let known = admin.identities.now();
        let gateways: Vec<Value> = known
            .all()
            .iter()
            .map(|record| {
                let inbox = inboxes.get(&record.instance);
                let fronts = known.fronts(record.instance).into_iter();
                let mut missing: Vec<String> = fronts.map(|(platform, _)| platform).collect();
                missing.retain(|platform| !served(platform));
                json!({
                    "tenant": record.tenant,
                    "gateway_id": record.gateway_id,
                    "connected": admin.sessions.is_connected(record),
                    "idle": admin.sessions.standing(record.instance).idle,
                    // It says hello for these, and nothing here could bring it anything from them.
                    "not_served": missing,
                    "acknowledges": admin.sessions.standing(record.instance).habit.as_str(),
                    "waiting": inbox.map_or(0, |inbox| inbox.waiting),
                    "dead": inbox.map_or(0, |inbox| inbox.dead),
                    "lost": inbox.map_or(0, |inbox| lost(inbox)),
                })
            })
            .collect();
        // They have no gateway to be shown with; those for whom nothing came are no news.
        let awaiting_first = listed
            .iter()
            .filter(|inbox| known.awaits_first(inbox.instance) && inbox.waiting + lost(inbox) > 0)
            .map(|inbox| json!({ "tenant": inbox.tenant, "waiting": inbox.waiting, "lost": lost(inbox) }));
        // Answers that may or may not have been sent; repeating them could double them.
        let ambiguous = admin.ports.records.ambiguous_actions(SHOWN).await?;
        let damaged = known.damaged().into_iter().map(|(tenant, gateway_id, why)| {
            json!({ "tenant": tenant, "gateway_id": gateway_id, "kind": "secret of a gateway", "error": why })
        });
        let bots = admin.bots.all().iter().filter_map(|bot| {
            let health = bot.health().filter(|health| health.state != BotState::Up)?;
            Some(json!({
                "platform": bot.platform(), "name": bot.name(), "state": health.state, "why": health.why,
            }))
        });
        let heavy =
            admin.memory.heavy().into_iter().map(
                |(tenant, held)| json!({ "tenant": tenant, "held": held, "of": admin.memory.of_tenant() }),
            );
        Ok(json!({
            // Tenants that use much of the memory they may.
            "memory": heavy.collect::<Vec<_>>(),
            "ambiguous": ambiguous,
            // Bots that do not hear at the moment.
            "bots": bots.collect::<Vec<_>>(),
            // Their gateways may not come in: what was sealed for them does not open.
            "damaged": damaged.collect::<Vec<_>>(),
            // A leap that nobody has confirmed: nothing is dropped for its age meanwhile.
            "clock": clock::describe(&admin),
            // What a check of the database found after a server that did not end by itself.
            "database_damage": admin.integrity.damage(),
            "disk": admin.ports.upkeep.disk().await?,
            "ready": admin.ports.upkeep.healthy() && !admin.life.is_stopping(),
            "sockets": admin.sessions.open(),
            "pushed": admin.metrics.get(Counter::Pushed),
            "settled": admin.metrics.get(Counter::Settled),
            "gateways": gateways,
            // Tenants whose messages wait for their first gateway.
            "awaiting_first": awaiting_first.collect::<Vec<_>>(),
        }))
    };
    answer(StatusCode::OK, status.await)
}
