//! Taking a message in: the same way, however it came.

use super::address::is_reachable;
use super::parse::Received;
use super::{NAME, Sms, normalize};
use crate::ingress::Ingress;
use crate::kit::{Position, Said, Sighting};
use angelia_core::admission::{DropReason, link_command};
use angelia_core::clock;
use angelia_core::directory::Chat;
use angelia_core::error::Result;
use angelia_core::ports::Under;
use angelia_core::store::{Appended, Intake, JournalStore, StreamStore};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{MappedMutexGuard, MutexGuard};

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

/// How far messages were read, and under which lease that was read.
pub(super) struct Reading<'a>(MappedMutexGuard<'a, (Option<Under>, Position)>);

impl Reading<'_> {
    /// What it is written with: under that lease and no later one.
    pub(super) fn ingress(&self, ingress: &Ingress) -> Ingress {
        ingress.under(self.0.0.clone())
    }
}

impl Deref for Reading<'_> {
    type Target = Position;

    fn deref(&self) -> &Position {
        &self.0.1
    }
}

impl DerefMut for Reading<'_> {
    fn deref_mut(&mut self) -> &mut Position {
        &mut self.0.1
    }
}

impl Sms {
    /// Takes one message in.
    pub(super) async fn take(self: &Arc<Self>, ingress: &Ingress, received: &Received) -> Result<Took> {
        let Received { sid, from, to, body, opt_out, .. } = received;
        if *to != self.config.id || *from == self.config.id {
            self.not_ours(received);
            return Ok(Took::Nothing);
        }
        if self.knows(ingress, received).await? {
            return Ok(Took::Nothing);
        }
        let sighting = Sighting::of_person(&self.config.id, from, sid);
        if let Some(keyword) = self.keyword(from, body, opt_out.as_deref()).await? {
            // An old word that is looked at again says nothing new.
            if !self.is_known(ingress, received).await? {
                self.heed(from, keyword).await?;
                self.settle(ingress, received, &sighting, DropReason::Keyword).await?;
            }
            return Ok(Took::Nothing);
        }
        if let Some(code) = link_command(body) {
            return self.link(ingress, &sighting, code).await.map(|()| Took::Nothing);
        }
        let event = normalize::event(received, ingress.source_flags);
        match self.account.admit(ingress, &sighting, &event).await? {
            Ok(said) => self.said(ingress, &sighting, said).await,
            Err(reason) => self.settle(ingress, received, &sighting, reason).await.map(|()| Took::Nothing),
        }
    }

    /// A message is for an agent.
    async fn said(&self, ingress: &Ingress, sighting: &Sighting, said: Said) -> Result<Took> {
        // Committed with it, so that it is known for longer than the journal is kept.
        let (cursor, ingress) = {
            let mut position = self.position(ingress).await?;
            (Some(position.taking(&sighting.message_id)), &position.ingress(ingress))
        };
        let chats = self.learn(&sighting.author).await?;
        let intake = Intake { chats, cursor, ..Intake::default() };
        let taken = self.account.commit_said(ingress, sighting, said, intake).await?;
        if taken.full {
            return Ok(Took::Full);
        }
        self.position(ingress).await?.took(&sighting.message_id);
        let new = matches!(taken.appended, Some(Appended::New(_)));
        Ok(if new { Took::Message } else { Took::Nothing })
    }

    /// A message reaches nobody: that is noted once, however often it comes.
    async fn settle(
        &self,
        ingress: &Ingress,
        received: &Received,
        sighting: &Sighting,
        reason: DropReason,
    ) -> Result<()> {
        let mut position = self.position(ingress).await?;
        // What an agent got is not dropped when it is looked at again, though
        // its place has no route by now.
        if position.knows(&received.sid) || self.is_known(ingress, received).await? {
            return Ok(());
        }
        let mut after = position.clone();
        after.settle(&received.sid);
        let chats = match reason {
            // Nobody has written to us with that: it is no leave to write back.
            DropReason::Keyword => Vec::new(),
            _ => self.learn(&received.from).await?,
        };
        let intake = Intake { chats, cursor: Some(after.cursor()), ..Intake::default() };
        self.account.commit(&position.ingress(ingress), intake).await?;
        *position = after;
        drop(position);
        sighting.dropped(ingress, &self.account.key, reason);
        Ok(())
    }

    /// Whether a message was taken in not long ago. If it reached nobody, nobody gets it
    /// later either: whoever has the place by now did not when it was written.
    pub(super) async fn knows(&self, ingress: &Ingress, received: &Received) -> Result<bool> {
        Ok(self.position(ingress).await?.knows(&received.sid))
    }

    /// Whether an agent got a message, or will, as long as the journal is kept.
    pub(super) async fn is_known(&self, ingress: &Ingress, received: &Received) -> Result<bool> {
        let known = ingress.ports.records.explain(&received.sid).await?;
        Ok(known.iter().any(|story| story.platform == NAME && story.chat_id == received.from))
    }

    /// A message is not for this number, or from itself.
    fn not_ours(&self, received: &Received) {
        self.account.health.count("not_ours");
        let mut warning = self.elsewhere.lock();
        if received.to != self.config.id && warning.note(clock::mono()).is_some() {
            tracing::warn!(
                bot = %self.config.name,
                "messages to another number are posted here, and nobody gets them: give each number a bot and \
                 an address of its own"
            );
        }
    }

    /// How far messages were read, held; from the store the first time under each lease: another
    /// node may have read on since. A number that was never read begins now.
    pub(super) async fn position(&self, ingress: &Ingress) -> Result<Reading<'_>> {
        let under = ingress.lease_of(&self.account.key);
        let mut reading = self.reading.lock().await;
        if reading.as_ref().is_none_or(|(before, _)| *before != under) {
            let cursors = ingress.ports.records.cursors(&self.account.key).await?;
            let beginning = || Position::beginning(clock::wall().seconds() as i64);
            *reading = Some((under, Position::read(&cursors).unwrap_or_else(beginning)));
        }
        Ok(Reading(MutexGuard::map(reading, |reading| reading.get_or_insert_default())))
    }

    /// Takes note of who wrote; answers the chat if that is new and has to be committed.
    pub(super) async fn learn(&self, person: &str) -> Result<Vec<Chat>> {
        if !is_reachable(person) {
            return Ok(Vec::new());
        }
        self.account.learn_person(person).await
    }
}
