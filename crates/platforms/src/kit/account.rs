//! One bot at its provider: who it is, the chats it knows, how it is; and the way
//! from what it saw to what the store keeps.

use super::directory::Directory;
use super::health::HealthRecord;
use super::inbound;
use super::replies::Replies;
use super::{ApiError, ErrorKind, Sighting};
use crate::admission::Linking;
use crate::ingress::{Ingress, STORE_AGAIN};
use crate::platform::Outcome;
use angelia_contract::event::Event;
use angelia_core::admission::DropReason;
use angelia_core::directory::{BotKey, Chat, ChatKind};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::{InstanceId, WhenFull};
use angelia_core::own_words::OwnWords;
use angelia_core::ports::Ports;
use angelia_core::prompts::Press;
use angelia_core::records::Records;
use angelia_core::secret::Secret;
use angelia_core::store::{DirectoryStore, Ingest, Intake, NewEntry, NewQuarantined, Taken};
use angelia_core::{clock, seal};
use std::sync::Arc;

/// How often the store is asked to note which messages a text takes.
const KEEP_TRIES: u32 = 4;

/// What every bot has, whatever its provider is.
pub struct Account {
    /// The platform's name on the wire.
    pub(crate) platform: &'static str,
    /// What the operator calls the bot.
    pub(crate) name: Arc<str>,
    /// What everything that is kept of the bot is found by.
    pub(crate) key: BotKey,
    /// The chats it knows.
    pub(crate) directory: Directory,
    /// How it is.
    pub(crate) health: HealthRecord,
    /// What the connector itself says to people.
    pub(crate) replies: Replies,
}

/// What somebody said, for the instance it is for.
pub(crate) struct Said {
    pub(crate) entry: NewEntry,
    /// If it answers a question that is open: that, and the entry that carries it.
    pub(crate) press: Option<(Press, NewEntry)>,
}

impl Account {
    /// The bot that a platform knows as `id`, and its operator as `name`.
    pub(crate) fn new(
        platform: &'static str,
        id: &str,
        name: &str,
        health: HealthRecord,
        ports: &Ports,
    ) -> Self {
        let key = BotKey::new(platform, id);
        let directory = Directory::new(key.clone(), ports.records.clone(), ports.shared);
        Self { platform, name: name.into(), key, directory, health, replies: Replies::default() }
    }

    /// Another node has the bot, or this one has it again.
    pub fn is_elsewhere(&self, elsewhere: bool) {
        self.health.is_elsewhere(elsewhere);
        self.directory.only_here(!elsewhere);
    }

    /// Takes note of somebody who wrote, where each person is a chat; answers that if it is
    /// new and has to be committed.
    pub(crate) async fn learn_person(&self, person: &str) -> Result<Vec<Chat>> {
        let name = Some(person.to_owned());
        let chat = Chat { person: name.clone(), name, ..Chat::new(person, ChatKind::Dm) };
        self.directory.learn_all(vec![chat]).await
    }

    /// Takes note of somebody who wrote something that is for no agent: they may be answered.
    pub(crate) async fn meet(&self, ingress: &Ingress, person: &str) -> Result<()> {
        let chats = self.learn_person(person).await?;
        if chats.is_empty() {
            return Ok(());
        }
        self.commit(ingress, Intake { chats, ..Intake::default() }).await.map(drop)
    }

    /// A thread goes on being meant for an instance.
    pub async fn engage(&self, ingest: &dyn Ingest, chat_id: &str, instance: InstanceId) -> Result<()> {
        let engaged = Some((chat_id.to_owned(), instance));
        ingest.take_in(&self.key, None, vec![Intake { engaged, ..Intake::default() }]).await?;
        self.directory.change(chat_id, |known| known.engaged = Some(instance));
        Ok(())
    }

    /// What an event makes for the instance it is admitted to; or why nobody gets it. A full
    /// inbox refuses it: its provider brings it again.
    pub(crate) async fn admit(
        &self,
        ingress: &Ingress,
        sighting: &Sighting,
        event: &Event,
    ) -> Result<Result<Said, DropReason>> {
        let admitted = match sighting.decide(ingress, &self.key) {
            Ok(admitted) => admitted,
            Err(reason) => return Ok(Err(reason)),
        };
        let press = self.as_press(ingress, sighting, &admitted, event).await?;
        let entry = inbound::entry(&self.key, event, admitted, clock::wall())?;
        Ok(Ok(Said { entry: NewEntry { when_full: WhenFull::Refuse, ..entry }, press }))
    }

    /// Commits one thing that was received; what it taught is forgotten if that fails.
    pub(crate) async fn commit(&self, ingress: &Ingress, intake: Intake) -> Result<Taken> {
        let chats = intake.chats.clone();
        let taken = ingress.take_in(&self.key, vec![intake]).await;
        let taken = taken.map(|taken| taken.first().copied().unwrap_or_default());
        if taken.as_ref().map_or(true, |taken| taken.full) {
            self.directory.unlearn(&chats);
        }
        taken
    }

    /// Commits something that was said; where it does not get to its instance, that is noted.
    pub(crate) async fn commit_said(
        &self,
        ingress: &Ingress,
        sighting: &Sighting,
        Said { entry, press }: Said,
        intake: Intake,
    ) -> Result<Taken> {
        let mut taken = Taken::default();
        if let Some((press, entry)) = press {
            // Without how far was read: if it answers nothing, the words themselves come after it.
            let answer = Intake {
                press: Some(press),
                entry: Some(entry),
                chats: intake.chats.clone(),
                ..Intake::default()
            };
            taken = self.commit(ingress, answer).await?;
        }
        match (taken.full, taken.appended) {
            (true, _) => {}
            (false, Some(_)) => drop(self.commit(ingress, intake).await?),
            (false, None) => taken = self.commit(ingress, Intake { entry: Some(entry), ..intake }).await?,
        }
        if taken.full {
            self.health.count("refused_full");
            sighting.dropped(ingress, &self.key, DropReason::InboxFull);
        } else if taken.no_instance {
            sighting.dropped(ingress, &self.key, DropReason::NoInstance);
        }
        Ok(taken)
    }

    /// What is kept of something that cannot be read, sealed: `raw` as it came, and why
    /// without any text of it.
    pub(crate) fn quarantined(&self, ingress: &Ingress, what: &str, raw: &[u8], why: &str) -> Result<Intake> {
        tracing::warn!(bot = %self.name, what, why, "what was received went to quarantine");
        self.health.count("quarantined");
        let bound_to = seal::quarantine(self.platform, &self.key.bot);
        let sealed = ingress.seal.seal(&String::from_utf8_lossy(raw), &bound_to)?;
        let quarantined = NewQuarantined { what: what.into(), why: why.into(), sealed, at: clock::wall() };
        Ok(Intake { quarantined: Some(quarantined), ..Intake::default() })
    }

    /// Keeps what cannot be read.
    pub(crate) async fn set_aside(&self, ingress: &Ingress, what: &str, raw: &[u8], why: &str) -> Result<()> {
        self.commit(ingress, self.quarantined(ingress, what, raw, why)?).await.map(drop)
    }

    /// Uses up a link code for the place where it was typed; answers what to tell about it. An
    /// error means that nothing was tried, and that it has to come again.
    pub(crate) async fn use_code(
        &self,
        ingress: &Ingress,
        sighting: &Sighting,
        administrator: bool,
        code: &str,
    ) -> Result<String> {
        let place = sighting.places.first().map(String::as_str).unwrap_or_default();
        let typed = Linking {
            platform: self.platform,
            bot: Some(self.key.bot.to_string()),
            place: format!("{}:{place}", self.platform).parse()?,
            author: sighting.author.clone(),
            private: sighting.private,
            administrator,
            code: Secret::new(code),
            language: sighting.language,
        };
        match ingress.admission.link(typed).await {
            // Trying again would not help.
            Err(error) if error.kind() != Kind::Unavailable => {
                tracing::error!(bot = %self.name, %error, "a code could not be tried");
                Ok(OwnWords::WentWrong.text(sighting.language).to_owned())
            }
            linked => linked,
        }
    }

    /// Notes which messages a long text takes behind its first; `false` if the store does
    /// not take that.
    pub(crate) async fn keep_pieces(
        &self,
        records: &dyn Records,
        chat_id: &str,
        first: &str,
        pieces: &[String],
    ) -> bool {
        for tries in 1..=KEEP_TRIES {
            let kept = records.keep_pieces(&self.key, chat_id, first, pieces.to_vec()).await;
            let Err(error) = kept else { return true };
            tracing::warn!(bot = %self.name, first, tries, %error, "the pieces of a message are not noted");
            if tries < KEEP_TRIES {
                tokio::time::sleep(STORE_AGAIN).await;
            }
        }
        false
    }

    /// What a failed call means for an action; that the provider wants a pause is counted.
    pub(crate) fn outcome(&self, error: ApiError) -> Outcome {
        if matches!(error.kind, ErrorKind::Limited { .. }) {
            self.health.count("floods");
        }
        error.outcome()
    }

    /// Notes that something received could not be committed.
    pub(crate) fn not_committed(&self, what: &str, error: &Error) {
        tracing::error!(bot = %self.name, what, %error, "what was received was not committed");
        self.health.down(format!("what was received could not be committed: {error}"));
    }
}
