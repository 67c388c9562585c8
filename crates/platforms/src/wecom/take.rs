//! Taking in what WeCom posted: committed before it is acknowledged.

use super::address::{is_user, places};
use super::normalize::{Meaning, Message};
use super::{NAME, Wecom};
use crate::admission::{Linking, Which};
use crate::inbound;
use crate::ingress::Ingress;
use angelia_contract::event::Event;
use angelia_core::admission::{DropReason, Observed, link_command};
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::error::{Kind, Result};
use angelia_core::limit::{GcraOf, Rate};
use angelia_core::secret::Secret;
use angelia_core::store::{Intake, NewQuarantined, Taken};
use angelia_core::{clock, seal};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Commands remembered for when WeCom posts them again, which it does within seconds.
const SETTLED: usize = 64;

/// What whoever typed a code is told if it is our fault that it could not be tried.
const TRY_LATER: &str = "Something went wrong here. Please try again later.";

/// What somebody is told whose agent has more waiting than is kept for it.
const FULL: &str = "Your agent has more messages waiting than are kept for it, so this one was not taken. \
                    Please send it again later.";
/// People remembered as told: each is told once a minute, however often WeCom posts.
const MAX_TOLD_FULL: usize = 1_000;

/// What came of taking a callback in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// It is committed, or needs no commit.
    It,
    /// It is for another app.
    NotOurs,
    /// More waits for its agent than is kept: it has to be posted again.
    Full,
}

/// Who was told lately that an inbox is full.
pub(super) struct ToldFull(parking_lot::Mutex<GcraOf<String>>);

impl Default for ToldFull {
    fn default() -> Self {
        Self(parking_lot::Mutex::new(GcraOf::new(MAX_TOLD_FULL)))
    }
}

/// Commands that were done. WeCom posts again what was not acknowledged in
/// time, and a code that was used would be found used.
#[derive(Default)]
pub(super) struct Settled(Mutex<VecDeque<String>>);

/// Something a person said, as far as admission cares.
struct Sighting<'a> {
    bot: &'a str,
    user: &'a str,
    message_id: &'a str,
    places: [String; 3],
}

impl Sighting<'_> {
    fn observe<T>(&self, ask: impl FnOnce(Observed<'_>) -> T) -> T {
        let places = self.places.each_ref().map(String::as_str);
        ask(Observed {
            platform: NAME,
            bot: self.bot,
            places: &places,
            author: self.user,
            private: true,
            author_is_bot: false,
            addressed: true,
            engaged: None,
            scopes: &[self.user],
        })
    }

    /// Takes note of why nobody got it.
    fn dropped(&self, ingress: &Ingress, reason: DropReason) {
        let which = Which { chat_id: self.user, thread_id: None, message_id: self.message_id };
        self.observe(|observed| ingress.admission.dropped(observed, which, reason));
    }
}

impl Wecom {
    /// Takes in what was decrypted. With an error nothing is committed, and it has to
    /// be posted again.
    pub(super) async fn take(self: &Arc<Self>, ingress: &Ingress, plain: &[u8]) -> Result<Took> {
        let message = match Message::read(plain) {
            Ok(message) => message,
            // WeCom would post it again, and no better.
            Err(why) => return self.set_aside(ingress, plain, why.0).await.map(|()| Took::It),
        };
        if !message.is_for(&self.config.agent_id) {
            return Ok(Took::NotOurs);
        }
        let (user, message_id) = (message.from(), message.id());
        let places = places(&self.config.name, user);
        let sighting = Sighting { bot: &self.id, user, message_id: &message_id, places };
        match message.meaning(ingress.source_flags) {
            Meaning::Happened => {
                if is_user(user) {
                    sighting.dropped(ingress, DropReason::Consumed);
                }
            }
            Meaning::Said(event) => match link_command(&event.text) {
                Some(code) => self.link(ingress, &sighting, Secret::new(code)).await?,
                None if self.said(ingress, &sighting, &event).await? => {}
                None => {
                    self.tell_full(user);
                    return Ok(Took::Full);
                }
            },
        }
        Ok(Took::It)
    }

    /// Answers whether it was taken; if not, the inbox is full.
    async fn said(&self, ingress: &Ingress, sighting: &Sighting<'_>, event: &Event) -> Result<bool> {
        let decided = sighting.observe(|observed| ingress.admission.decide(observed));
        let entry = |admitted| inbound::refusable(&self.bot, event, admitted, clock::wall());
        let entry = decided.clone().ok().map(entry).transpose()?;
        let taken = self.commit(ingress, sighting.user, Intake { entry, ..Intake::default() }).await?;
        let reason = match taken {
            Taken { full: true, .. } => Some(DropReason::InboxFull),
            Taken { no_instance: true, .. } => Some(DropReason::NoInstance),
            _ => decided.err(),
        };
        if let Some(reason) = reason {
            sighting.dropped(ingress, reason);
        }
        Ok(!taken.full)
    }

    /// WeCom posts it again, but not for long: whoever wrote is told.
    fn tell_full(self: &Arc<Self>, user: &str) {
        let mut told = self.told_full.0.lock();
        if told.take(user, Rate::a_minute(1, 1), clock::mono()).is_ok() {
            self.answer(user, FULL.to_owned());
        }
    }

    /// Tries a code, unless that was done and WeCom did not hear of it.
    async fn link(self: &Arc<Self>, ingress: &Ingress, sighting: &Sighting<'_>, code: Secret) -> Result<()> {
        let mut settled = self.settled.0.lock().await;
        if settled.iter().any(|id| id == sighting.message_id) {
            return Ok(());
        }
        // Whoever typed it has written, and may be answered.
        self.commit(ingress, sighting.user, Intake::default()).await?;
        let typed = Linking {
            platform: NAME,
            bot: Some(self.id.clone()),
            place: format!("{NAME}:{}", sighting.places[0]).parse()?,
            author: sighting.user.to_owned(),
            private: true,
            administrator: true,
            code,
        };
        let answer = match ingress.admission.link(typed).await {
            // Trying again would not help.
            Err(error) if error.kind() != Kind::Unavailable => {
                tracing::error!(bot = %self.config.name, %error, "a code could not be tried");
                TRY_LATER.to_owned()
            }
            linked => linked?,
        };
        if settled.len() >= SETTLED {
            settled.pop_front();
        }
        settled.push_back(sighting.message_id.to_owned());
        drop(settled);
        sighting.dropped(ingress, DropReason::Consumed);
        self.answer(sighting.user, answer);
        Ok(())
    }

    /// Commits what was said together with who said it.
    async fn commit(&self, ingress: &Ingress, user: &str, mut intake: Intake) -> Result<Taken> {
        self.directory.find(user).await?;
        let name = Some(user.to_owned());
        let chat = Chat { person: name.clone(), name, ..Chat::new(user, ChatKind::Dm) };
        let new = self.directory.learn(&chat);
        self.strangers.remove(user);
        if new {
            intake.chats.push(chat);
        }
        if !new && intake.entry.is_none() {
            return Ok(Taken::default());
        }
        let taken = ingress.take_in(&self.bot, vec![intake]).await;
        let taken = taken.map(|taken| taken.first().copied().unwrap_or_default());
        // What could not be committed is new again.
        if new && taken.as_ref().map_or(true, |taken| taken.full) {
            self.directory.forget(|known| known.chat.chat_id == user);
        }
        taken
    }

    /// Keeps what cannot be read.
    async fn set_aside(&self, ingress: &Ingress, plain: &[u8], why: &str) -> Result<()> {
        tracing::warn!(bot = %self.config.name, why, "a callback went to quarantine");
        self.health.count("quarantined");
        let sealed = ingress.seal.seal(&String::from_utf8_lossy(plain), &seal::quarantine(NAME, &self.id))?;
        let (what, why) = ("callback".to_owned(), why.to_owned());
        let quarantined = Some(NewQuarantined { what, why, sealed, at: clock::wall() });
        ingress.take_in(&self.bot, vec![Intake { quarantined, ..Intake::default() }]).await.map(drop)
    }
}
