//! Who comes in: admission, what it turns away, and the codes that open a place.

use super::RecentTalk;
use super::drops::{Drops, NoRouteNotices};
use crate::admin::until_known;
use crate::cluster::{self, Cluster};
use crate::egress::Beginnings;
use crate::identities::{Commands, Identities};
use crate::refusal_log::RefusalLog;
use crate::server::Parts;
use crate::telemetry::Metrics;
use angelia_core::admission::{Admitted, DropReason, Observed, Route};
use angelia_core::audit::Actor;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::link_tries::{WRONG, WRONG_IN};
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use angelia_core::own_words::{OwnWords, linked};
use angelia_core::records::Records;
use angelia_core::secret::fingerprint;
use angelia_core::store::{AccessStore, BoxFuture, DirectoryStore};
use angelia_platforms::{Admission, Linking, Overheard, Presence, Which};
use parking_lot::Mutex;
use std::sync::Arc;

/// People whose tries are remembered here. Beyond it whoever tried longest ago is
/// forgotten: what counts is what the store counts, for all nodes.
const PEOPLE: usize = 4_096;

/// Decides for the platforms.
pub(crate) struct RoutedAdmission {
    records: Arc<dyn Records>,
    identities: Arc<Identities>,
    cluster: Arc<Cluster>,
    presence: Arc<cluster::Presence>,
    drops: Arc<Drops>,
    hints: Arc<NoRouteNotices>,
    refusal_log: Arc<RefusalLog>,
    metrics: Arc<Metrics>,
    beginnings: Arc<Beginnings>,
    tries: Tries,
    talk: Arc<RecentTalk>,
}

impl RoutedAdmission {
    /// `hint` is what a place is told once where the bot answers nobody.
    pub(crate) fn new(
        parts: &Parts,
        drops: Arc<Drops>,
        talk: Arc<RecentTalk>,
        hint: Option<String>,
    ) -> Arc<Self> {
        let records = parts.ports.records.clone();
        Arc::new(Self {
            hints: NoRouteNotices::new(records.clone(), parts.bots.clone(), hint),
            records,
            identities: parts.identities.clone(),
            cluster: parts.cluster.clone(),
            presence: parts.presence.clone(),
            drops,
            refusal_log: parts.refusal_log.clone(),
            metrics: parts.metrics.clone(),
            beginnings: parts.beginnings.clone(),
            tries: Tries::default(),
            talk,
        })
    }

    /// Uses a code up and lets the new route count; answers its tenant.
    async fn use_code(&self, typed: &Linking, by: &Actor) -> Result<String> {
        let (identities, records) = (self.identities.clone(), self.records.clone());
        let (typed, by) = (typed.clone(), by.clone());
        let use_up = async move {
            let taken = |route: &Route| route.bot.is_none() || typed.bot.is_none() || route.bot == typed.bot;
            // The store knows of routes for the same bot only.
            let (code, place, bot) = (fingerprint(typed.code.expose()), &typed.place, typed.bot.as_deref());
            if identities.now().routes().at(&place.to_string()).iter().any(taken) {
                // Their message may have come again, after another node used the code.
                let before = records.linked_before(code, place, bot, &by).await?;
                return before.ok_or_else(|| Error::conflict(format!("{place} has a route")));
            }
            records.use_link_code(code, place, bot, &typed.author, &by).await
        };
        self.identities.change(use_up).await
    }
}

impl Admission for RoutedAdmission {
    fn decide(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        self.identities.now().admit(observed)
    }

    fn dropped(&self, observed: Observed<'_>, which: Which<'_>, reason: DropReason) {
        self.metrics.dropped(reason);
        self.drops.note(observed, which, reason, clock::wall());
        self.hints.give(observed, which, reason);
    }

    fn overheard(&self) -> &dyn Overheard {
        &*self.talk
    }

    fn presence(&self, observed: Observed<'_>) -> BoxFuture<'_, Option<Presence>> {
        let admitted = self.decide(observed);
        Box::pin(async move {
            let instance = admitted.ok()?.instance;
            Some(match self.presence.lately(instance).await {
                true => Presence::Here,
                false if self.identities.now().awaits_first(instance) => Presence::Awaited,
                false => Presence::Away,
            })
        })
    }

    fn agent_name(&self, observed: Observed<'_>) -> Option<String> {
        let known = self.identities.now();
        known.display_name(known.admit(observed).ok()?.instance)
    }

    fn commands(&self, observed: Observed<'_>) -> Commands {
        let known = self.identities.now();
        known.admit(observed).map(|admitted| known.commands(admitted.instance)).unwrap_or_default()
    }

    fn why_dropped(&self, which: Which<'_>) -> Option<(DropReason, UnixMillis)> {
        self.drops.why(which)
    }

    fn opens(&self, bot: &BotKey, chat_id: &str) {
        self.beginnings.heard(bot, chat_id);
    }

    fn moved<'a>(&'a self, bot: &'a BotKey, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<()>> {
        let (records, bot, from, to) = (self.records.clone(), bot.clone(), from.to_owned(), to.to_owned());
        let change = async move {
            if let Some(error) = records.move_chat(&bot, &from, &to, &Actor::server()).await? {
                tracing::error!(
                    %error, chat = from,
                    "the routes of a chat that got another id could not follow it; add them anew"
                );
            }
            tracing::info!(platform = %bot.platform, %from, %to, "a chat has a new id; its routes moved with it");
            Ok(())
        };
        Box::pin(async move {
            self.identities.change(change).await?;
            // The agent goes on with its answer, on whichever node it is.
            until_known(&self.cluster, self.identities.known_to()).await;
            Ok(())
        })
    }

    fn link(&self, typed: Linking) -> BoxFuture<'_, Result<String>> {
        Box::pin(async move {
            let say = |words: OwnWords| words.text(typed.language).to_owned();
            if !typed.private && !typed.administrator {
                return Ok(say(OwnWords::NotYoursToLink));
            }
            if typed.code.expose().is_empty() {
                return Ok(say(OwnWords::HowToLink));
            }
            // Noted before it is tried, so that many at once are not one.
            let Some(a_try) = self.tries.begin(typed.platform, &typed.author, clock::mono()) else {
                return Ok(say(OwnWords::CodeNotGood));
            };
            let by = Actor::person(typed.platform, &typed.author);
            let outcome = self.use_code(&typed, &by).await;
            match outcome {
                Ok(tenant) => {
                    self.tries.forgive(typed.platform, &typed.author, a_try);
                    // The audit log has the place: it may be somebody's phone number.
                    tracing::info!(%tenant, platform = typed.platform, "a place was linked by a code");
                    Ok(linked(&tenant, typed.language))
                }
                Err(error) if error.kind() == Kind::Conflict => {
                    self.refusal_log.refused(&by, "route.link", "", &typed.place.to_string(), &error).await;
                    Ok(say(OwnWords::CodeNotGood))
                }
                // The store wrote that down itself, or did before.
                Err(error) if matches!(error.kind(), Kind::Forbidden | Kind::TooMany) => {
                    Ok(say(OwnWords::CodeNotGood))
                }
                Err(error) => {
                    self.tries.forgive(typed.platform, &typed.author, a_try);
                    Err(error)
                }
            }
        })
    }
}

type Person = (&'static str, String);

/// How often each person got a code wrong lately, as far as this node knows: whoever did so too
/// often here does not reach the store. Beyond so many people whoever tried longest ago is forgotten.
#[derive(Debug)]
struct Tries(Mutex<SlidingWindowOf<Person>>);

impl Default for Tries {
    fn default() -> Self {
        let of_one = SlidingWindow::new(WRONG, WRONG_IN);
        Self(Mutex::new(SlidingWindowOf::new(PEOPLE, WhenCrowded::ForgetOne, of_one)))
    }
}

impl Tries {
    /// Notes a try; `None` if the person had too many.
    fn begin(&self, platform: &'static str, author: &str, now: Mono) -> Option<Mono> {
        self.0.lock().take(&(platform, author.to_owned()), now).ok().map(|()| now)
    }

    /// Takes a try back that was not wrong.
    fn forgive(&self, platform: &'static str, author: &str, a_try: Mono) {
        self.0.lock().give_back(&(platform, author.to_owned()), a_try);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn ten_wrong_codes_in_ten_minutes_and_no_more() {
        let tries = Tries::default();
        for n in 0..WRONG as u64 {
            assert!(tries.begin("webchat", "ann", at(n)).is_some());
        }
        assert!(tries.begin("webchat", "ann", at(599)).is_none());
        assert!(tries.begin("webchat", "bob", at(599)).is_some(), "somebody else");
        assert!(tries.begin("discord", "ann", at(599)).is_some(), "somebody else of that name");
        assert!(tries.begin("webchat", "ann", at(600)).is_some(), "the first is ten minutes ago");
        assert!(tries.begin("webchat", "ann", at(600)).is_none());
    }

    #[test]
    fn a_good_code_is_no_wrong_one() {
        let tries = Tries::default();
        for n in 0..100 {
            let a_try = tries.begin("webchat", "ann", at(n)).unwrap();
            tries.forgive("webchat", "ann", a_try);
        }
        assert_eq!(tries.0.lock().remembered(), 0);
    }

    #[test]
    fn so_many_people_are_remembered() {
        let tries = Tries::default();
        while tries.begin("webchat", "0", at(0)).is_some() {}
        for n in 1..=PEOPLE as u64 {
            tries.begin("webchat", &n.to_string(), at(1 + n / 10));
        }
        assert_eq!(tries.0.lock().remembered(), PEOPLE);
        assert!(tries.begin("webchat", "0", at(500)).is_some(), "the first went");
    }
}
