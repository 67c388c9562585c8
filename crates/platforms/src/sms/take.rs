//! Taking a message in: the same way, however it came.

use super::address::{is_reachable, places};
use super::parse::Received;
use super::position::Position;
use super::{NAME, Sms, normalize};
use crate::admission::Which;
use crate::inbound;
use crate::ingress::Ingress;
use angelia_core::admission::{DropReason, Observed, link_command};
use angelia_core::clock;
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::error::Result;
use angelia_core::seal;
use angelia_core::store::{Appended, Cursor, Intake, JournalStore, NewQuarantined, StreamStore, Taken};
use std::sync::Arc;
use tokio::sync::MutexGuard;

/// How far a number's messages were read, held.
pub(super) type Reading<'a> = MutexGuard<'a, Option<Position>>;

/// What came of taking a message in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// An agent gets it that had not got it.
    Message,
    /// Nobody gets it, or somebody had it already.
    Nothing,
    /// More waits for its agent than is kept: it has to come again.
    Full,
}

impl Sms {
    /// Takes one message in.
    pub(super) async fn take(self: &Arc<Self>, ingress: &Ingress, received: &Received) -> Result<Took> {
        if received.to != self.config.id || received.from == self.config.id {
            self.not_ours(received);
            return Ok(Took::Nothing);
        }
        if self.knows(ingress, received).await? {
            return Ok(Took::Nothing);
        }
        if let Some(keyword) =
            self.stopped.keyword(&received.from, &received.body, received.opt_out.as_deref())
        {
            // An old word that is looked at again says nothing new.
            if !self.is_known(ingress, received).await? {
                self.stopped.heed(&received.from, keyword);
                // Nobody has written to us with that: it is no leave to write back.
                self.settle(ingress, received, Vec::new(), DropReason::Keyword).await?;
            }
            return Ok(Took::Nothing);
        }
        if let Some(code) = link_command(&received.body) {
            return self.link(ingress, received, code).await.map(|()| Took::Nothing);
        }
        let chats = self.learn(received).await?;
        match observe(&self.config.id, received, |observed| ingress.admission.decide(observed)) {
            Ok(admitted) => {
                let event = normalize::event(received, ingress.source_flags);
                let entry = inbound::refusable(&self.bot, &event, admitted, clock::wall())?;
                let cursor =
                    Some(self.taking(ingress, received).await.inspect_err(|_| self.unlearn(&chats))?);
                let learnt = chats.clone();
                let intake = Intake { chats, entry: Some(entry), cursor, ..Intake::default() };
                let taken = self.commit(ingress, intake).await?;
                if taken.full {
                    self.unlearn(&learnt);
                    self.health.count("refused_full");
                    self.note_dropped(ingress, received, DropReason::InboxFull);
                    return Ok(Took::Full);
                }
                self.took(ingress, received).await?;
                if taken.no_instance {
                    self.note_dropped(ingress, received, DropReason::NoInstance);
                }
                let new = matches!(taken.appended, Some(Appended::New(_)));
                Ok(if new { Took::Message } else { Took::Nothing })
            }
            Err(reason) => self.settle(ingress, received, chats, reason).await.map(|()| Took::Nothing),
        }
    }

    /// A message reaches nobody: that is noted once, however often it comes.
    async fn settle(
        &self,
        ingress: &Ingress,
        received: &Received,
        chats: Vec<Chat>,
        reason: DropReason,
    ) -> Result<()> {
        let learnt = chats.clone();
        let noted = self.settle_once(ingress, received, chats, reason).await;
        // Only a commit makes it known.
        if !matches!(noted, Ok(true)) {
            self.unlearn(&learnt);
        }
        noted.map(drop)
    }

    /// The same; answers whether it was noted now.
    async fn settle_once(
        &self,
        ingress: &Ingress,
        received: &Received,
        chats: Vec<Chat>,
        reason: DropReason,
    ) -> Result<bool> {
        let mut reading = self.reading.lock().await;
        let position = self.position(ingress, &mut reading).await?;
        // What an agent got is not dropped when it is looked at again, though
        // its place has no route by now.
        if position.knows(&received.sid) || self.is_known(ingress, received).await? {
            return Ok(false);
        }
        let mut after = position.clone();
        after.settle(&received.sid);
        let intake = Intake { chats, cursor: Some(after.cursor()), ..Intake::default() };
        self.commit(ingress, intake).await?;
        *position = after;
        drop(reading);
        self.note_dropped(ingress, received, reason);
        Ok(true)
    }

    /// Whether a message was taken in not long ago. If it reached nobody, nobody gets it
    /// later either: whoever has the place by now did not when it was written.
    pub(super) async fn knows(&self, ingress: &Ingress, received: &Received) -> Result<bool> {
        let mut reading = self.reading.lock().await;
        Ok(self.position(ingress, &mut reading).await?.knows(&received.sid))
    }

    /// What is committed with a message for an agent, so that it is known for longer
    /// than the journal is kept.
    async fn taking(&self, ingress: &Ingress, received: &Received) -> Result<Cursor> {
        let mut reading = self.reading.lock().await;
        Ok(self.position(ingress, &mut reading).await?.taking(&received.sid))
    }

    /// It was committed.
    async fn took(&self, ingress: &Ingress, received: &Received) -> Result<()> {
        let mut reading = self.reading.lock().await;
        self.position(ingress, &mut reading).await?.took(&received.sid);
        Ok(())
    }

    /// A message is not for this number, or from itself.
    fn not_ours(&self, received: &Received) {
        self.health.count("not_ours");
        let mut warning = self.elsewhere.lock();
        if received.to != self.config.id && warning.note(clock::mono()).is_some() {
            tracing::warn!(
                bot = %self.config.name,
                "messages to another number are posted here, and nobody gets them: give each number a bot and \
                 an address of its own"
            );
        }
    }

    /// Whether an agent got a message, or will, as long as the journal is kept.
    pub(super) async fn is_known(&self, ingress: &Ingress, received: &Received) -> Result<bool> {
        let known = ingress.ports.records.explain(&received.sid).await?;
        Ok(known.iter().any(|story| story.platform == NAME && story.chat_id == received.from))
    }

    /// Keeps what Twilio posted and nobody can read.
    pub(super) async fn set_aside(&self, ingress: &Ingress, body: &str, why: &str) -> Result<()> {
        tracing::warn!(bot = %self.config.name, why, "a posted message went to quarantine");
        self.health.count("quarantined");
        let sealed = ingress.seal.seal(body, &seal::quarantine(NAME, &self.bot.bot))?;
        let quarantined =
            NewQuarantined { what: "a posted message".into(), why: why.into(), sealed, at: clock::wall() };
        self.commit(ingress, Intake { quarantined: Some(quarantined), ..Intake::default() }).await.map(drop)
    }

    /// Commits an intake; what it taught is forgotten if that fails.
    pub(super) async fn commit(&self, ingress: &Ingress, intake: Intake) -> Result<Taken> {
        let chats = intake.chats.clone();
        let taken = ingress.take_in(&self.bot, vec![intake]).await.inspect_err(|_| self.unlearn(&chats))?;
        Ok(taken.first().copied().unwrap_or_default())
    }

    /// How far messages were read; from the store the first time. A number that
    /// was never read begins now.
    pub(super) async fn position<'a>(
        &self,
        ingress: &Ingress,
        reading: &'a mut Reading<'_>,
    ) -> Result<&'a mut Position> {
        let known = match reading.take() {
            Some(known) => known,
            None => {
                let cursors = ingress.ports.records.cursors(&self.bot).await?;
                Position::read(&cursors)
                    .unwrap_or_else(|| Position::beginning(clock::wall().seconds() as i64))
            }
        };
        Ok(reading.insert(known))
    }

    /// Takes note of who wrote; answers the chat if that is new and has to be committed.
    pub(super) async fn learn(&self, received: &Received) -> Result<Vec<Chat>> {
        let person = received.from.clone();
        if !is_reachable(&person) {
            return Ok(Vec::new());
        }
        self.directory.find(&person).await?;
        let chat = Chat {
            name: Some(person.clone()),
            person: Some(person.clone()),
            ..Chat::new(person, ChatKind::Dm)
        };
        Ok(if self.directory.learn(&chat) { vec![chat] } else { Vec::new() })
    }

    /// Forgets at hand what could not be committed, so that it is new again.
    pub(super) fn unlearn(&self, chats: &[Chat]) {
        if !chats.is_empty() {
            self.directory.forget(|known| chats.iter().any(|chat| chat.chat_id == known.chat.chat_id));
        }
    }

    /// Takes note of why nobody got a message.
    pub(super) fn note_dropped(&self, ingress: &Ingress, received: &Received, reason: DropReason) {
        let which = Which { chat_id: &received.from, thread_id: None, message_id: &received.sid };
        observe(&self.config.id, received, |observed| ingress.admission.dropped(observed, which, reason));
    }
}

/// Asks admission about a message.
fn observe<T>(own: &str, received: &Received, ask: impl FnOnce(Observed<'_>) -> T) -> T {
    let places = places(own, &received.from);
    ask(Observed {
        platform: NAME,
        bot: own,
        places: &places.each_ref().map(String::as_str),
        author: &received.from,
        private: true,
        author_is_bot: false,
        addressed: true,
        engaged: None,
        scopes: &[&received.from],
    })
}
