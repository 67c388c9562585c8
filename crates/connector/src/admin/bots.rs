//! The bots, as an operator sees them: how they are, what they missed, and what
//! they could not read.

use super::Admin;
use super::bot_health::Healths;
use super::types::Nothing;
use angelia_core::admission::Routes;
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::seal;
use angelia_core::store::{AuditStore, Missed, Quarantined, StreamStore};
use angelia_platforms::{Health, Platform};
use std::sync::Arc;

asked! {
    /// Whose quarantine.
    pub struct OfBot {
        /// Only of this bot: its name, its id, or `platform:id`.
        pub bot: Option<String>,
    }
}

answered! {
    /// Every bot.
    pub struct Bots {
        /// In the order they are configured.
        pub bots: Vec<Bot>,
        /// Nodes that did not answer how those are that they read.
        pub not_asked: Vec<String>,
    }

    /// A bot, and how it is.
    pub struct Bot {
        /// Its platform.
        pub platform: String,
        /// Its id there.
        pub id: String,
        /// Its name here.
        pub name: String,
        /// How it is; the web chat has nobody to listen to.
        pub health: Option<Health>,
        /// Updates that it could not read.
        pub quarantined: u64,
        /// The newest stretches that it could not read.
        pub missed: Vec<Missed>,
        /// Routes that lead to it.
        pub routes: u64,
    }

    /// What bots could not read, without what is in it.
    pub struct Quarantine {
        /// Newest first.
        pub quarantine: Vec<Quarantined>,
    }

    /// Something that could not be read, as the provider sent it.
    pub struct OpenedUpdate {
        /// What is known of it.
        #[serde(flatten)]
        pub update: Quarantined,
        /// What was sent.
        pub raw: String,
    }

    /// What was thrown away.
    pub struct Purged {
        /// How many.
        pub purged: u64,
    }
}

/// Quarantined updates in one listing; the store keeps no more per bot.
const PAGE: usize = 1_000;
/// Stretches that could not be read, shown per bot: the newest tell what to look for.
const MISSED: usize = 20;

pub(super) async fn list(admin: Arc<Admin>, _: Nothing) -> Result<Bots> {
    let known = admin.identities.snapshot();
    let routes = known.routes();
    let (healths, not_asked) = Healths::of(&admin).await;
    let mut bots = Vec::new();
    for bot in admin.bots.all() {
        let health = healths.of_bot(&**bot);
        bots.push(describe(&admin, &**bot, health, routes).await?);
    }
    Ok(Bots { bots, not_asked })
}

async fn describe(admin: &Admin, bot: &dyn Platform, health: Option<Health>, routes: &Routes) -> Result<Bot> {
    let key = BotKey::new(bot.platform(), bot.id());
    let leads_here = |route_bot: Option<&str>| route_bot.is_none_or(|named| named == bot.id());
    let routes = routes
        .iter()
        .filter(|route| route.place.platform() == bot.platform() && leads_here(route.bot.as_deref()))
        .count();
    Ok(Bot {
        platform: bot.platform().to_owned(),
        id: bot.id().to_owned(),
        name: bot.name().to_owned(),
        health,
        quarantined: admin.ports.records.quarantine(Some(&key), PAGE).await?.len() as u64,
        missed: admin.ports.records.missed(&key, MISSED).await?,
        routes: routes as u64,
    })
}

pub(super) async fn quarantine(admin: Arc<Admin>, whose: OfBot) -> Result<Quarantine> {
    let bots = match &whose.bot {
        Some(text) => meant(&admin, text)?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut rows: Vec<Quarantined> = Vec::new();
    for bot in &bots {
        rows.extend(admin.ports.records.quarantine(bot.as_ref(), PAGE).await?);
    }
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
    rows.truncate(PAGE);
    Ok(Quarantine { quarantine: rows })
}

/// The bots that a name, an id or `platform:id` means. The last also for a
/// bot that is not configured any more: what it left behind is still there.
fn meant(admin: &Admin, text: &str) -> Result<Vec<BotKey>> {
    if let Some((platform, id)) = text.split_once(':') {
        return Ok(vec![BotKey::new(platform, id)]);
    }
    let named = admin.bots.all().iter().filter(|bot| bot.name() == text || bot.id() == text);
    let keys: Vec<BotKey> = named.map(|bot| BotKey::new(bot.platform(), bot.id())).collect();
    if keys.is_empty() {
        return Err(Error::not_found(format!(
            "there is no bot {text:?}; see angelia bot list, or write platform:id for one that is not \
             configured any more"
        )));
    }
    Ok(keys)
}

/// Shows what a provider sent, as it came: people's words may be in it, so it is
/// written down who looked.
pub(super) async fn open(admin: Arc<Admin>, id: String, _: Nothing) -> Result<OpenedUpdate> {
    let number = number(&id)?;
    let (row, sealed) = admin.ports.records.quarantined(number).await?.ok_or_else(|| gone(number))?;
    let bound_to = seal::quarantine(&row.platform, &row.bot);
    let raw = admin.keys.open(&sealed, &bound_to)?;
    let entry = AuditEntry::done(&Actor::operator(), "quarantine.show", "", &number.to_string());
    admin.ports.records.audit(entry.with(&row.what)).await?;
    Ok(OpenedUpdate { update: row, raw: raw.expose().to_owned() })
}

pub(super) async fn purge(admin: Arc<Admin>, _: Nothing) -> Result<Purged> {
    let purged = admin.ports.records.purge_quarantine(None, &Actor::operator()).await?;
    Ok(Purged { purged })
}

pub(super) async fn purge_one(admin: Arc<Admin>, id: String, _: Nothing) -> Result<Purged> {
    let number = number(&id)?;
    match admin.ports.records.purge_quarantine(Some(number), &Actor::operator()).await? {
        0 => Err(gone(number)),
        purged => Ok(Purged { purged }),
    }
}

fn number(text: &str) -> Result<i64> {
    text.parse().map_err(|_| {
        Error::invalid(format!("{text:?} is not a number; angelia bot quarantine list shows them"))
    })
}

fn gone(number: i64) -> Error {
    Error::not_found(format!(
        "nothing in quarantine has the number {number}; it was thrown away or never here: \
         angelia bot quarantine list"
    ))
}
