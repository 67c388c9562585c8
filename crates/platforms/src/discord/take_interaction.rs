//! What an interaction comes to, however it arrived: deferred, with an entry in an inbox and
//! the capability that answers it in the vault, or words for the person.

use super::chats::IngestError;
use super::interaction::{AUTOCOMPLETE, Interaction, PING};
use super::parse::id_of;
use super::take::{Heard, Reader, never, sighting};
use super::{INTERACTION_TOKEN, address, normalize, sanitize};
use crate::inbound;
use angelia_contract::event::Event;
use angelia_core::admission::{Admitted, DropReason, link_command};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{self, CancellableWrite, EntryKind};
use angelia_core::own_words::{Language, OwnWords};
use angelia_core::seal;
use angelia_core::store::{NewEntry, Taken};
use angelia_core::vault::{self, Deferral, NewCapability};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long it may take to keep an interaction. Discord waits for three seconds,
/// and the reply has to get there.
pub(super) const KEPT_WITHIN: Duration = Duration::from_secs(2);

/// What an interaction comes to.
pub(super) struct Considered {
    /// What is to be committed before anybody is told anything.
    pub(super) heard: Option<Heard>,
    /// What to tell, if that succeeds.
    pub(super) reply: Reply,
}

impl Considered {
    pub(super) fn at_once(reply: Reply) -> Self {
        Self { heard: None, reply }
    }

    /// Whether what is to be committed is still wanted.
    pub(super) fn patience(&self) -> Option<CancellableWrite> {
        self.heard.as_ref().and_then(|heard| heard.intake.patience.clone())
    }
}

impl Reader {
    /// Considers an interaction, its text and what that reads as, whose credential
    /// lives from `from` on. What takes longer than until `due` is not done.
    pub(super) async fn consider(
        &self,
        raw: &str,
        body: Option<&Value>,
        from: UnixMillis,
        due: Instant,
    ) -> Considered {
        let Some(body) = body else { return self.unreadable(raw, None, "it is not JSON".into()) };
        let id = id_of(&body["id"]);
        match body["type"].as_u64() {
            Some(PING) => return Considered::at_once(Reply::Pong),
            Some(AUTOCOMPLETE) => return Considered::at_once(Reply::NoChoices),
            _ => {}
        }
        let considering = async { self.interaction(&Interaction::read(body)?, body, from).await };
        match timeout_at(due, considering).await {
            Ok(Ok(considered)) => considered,
            Ok(Err(IngestError::Unreadable(why))) => self.unreadable(raw, id, why),
            Ok(Err(IngestError::NotNow { why, .. })) => self.not_now(&why),
            Err(_) => self.not_now("where it happened was not found out in time"),
        }
    }

    fn unreadable(&self, raw: &str, id: Option<String>, why: String) -> Considered {
        let id = id.filter(|id| address::snowflake(id).is_some()).unwrap_or_default();
        let heard = self.quarantined(format!("interaction {id}").trim_end().to_owned(), why, raw);
        Considered { heard: Some(heard), reply: Reply::Words(OwnWords::NotUnderstood) }
    }

    fn not_now(&self, why: &str) -> Considered {
        tracing::warn!(bot = self.discord.own_id(), why, "an interaction could not be taken");
        Considered::at_once(Reply::Words(OwnWords::TryAgain))
    }

    async fn interaction(
        &self,
        interaction: &Interaction,
        body: &Value,
        from: UnixMillis,
    ) -> Result<Considered, IngestError> {
        let (spot, told) = self.discord.spot_of(interaction).await?;
        let sighting = sighting(&interaction.said, &spot, true)?;
        let text = interaction.text();
        if link_command(&text).is_some() {
            self.dropped(&sighting, DropReason::Consumed);
            return Ok(Considered::at_once(Reply::Words(OwnWords::LinkInWriting)));
        }
        if let Some(button) = interaction.button() {
            return self.pressed(interaction, button, (&spot, told), sighting).await;
        }
        let admitted = match self.admit(&sighting) {
            Ok(admitted) => admitted,
            Err(reason) => return Ok(Considered::at_once(Reply::refusal(reason))),
        };
        let event = Event {
            prompt_response: interaction.prompt_response(),
            ..normalize::event(&interaction.said, &spot, &text, self.writing(false))
        };
        let capability = self.capability(interaction, &event, &admitted, from)?;
        let entry = self.interaction_entry(interaction, body, event, admitted).map_err(never)?;
        let mut heard = Heard::default();
        heard.intake.chats.extend(told);
        heard.intake.chats.extend(self.discord.language_of(interaction, &spot.chat.chat));
        heard.intake.capability = Some(capability);
        heard.intake.patience = Some(CancellableWrite::default());
        heard.is_for(entry, sighting);
        Ok(Considered { heard: Some(heard), reply: Reply::Deferred(interaction.deferral()) })
    }

    fn interaction_entry(
        &self,
        interaction: &Interaction,
        body: &Value,
        event: Event,
        admitted: Admitted,
    ) -> Result<NewEntry> {
        // A command that stops a turn goes ahead here as well.
        let entry = inbound::entry(&self.discord.account.key, &event, admitted, clock::wall())?;
        let request = sanitize::request(body, interaction, &self.discord.config.name);
        let body = serde_json::to_vec(&inbox::Interaction { event, request, command: interaction.command() })
            .map_err(|_| Error::internal("the interaction could not be written"))?;
        Ok(NewEntry { kind: EntryKind::Interaction, body: body.into(), ..entry })
    }

    /// What answers it, for the vault.
    fn capability(
        &self,
        interaction: &Interaction,
        event: &Event,
        admitted: &Admitted,
        from: UnixMillis,
    ) -> Result<NewCapability> {
        let chat_id = event.source.chat_id.clone();
        let user_id = event.source.user_id.clone().unwrap_or_default();
        let interaction_id = interaction.id.0.clone();
        let whom = [chat_id.as_str(), &user_id, &interaction_id];
        let bound_to = seal::capability(&admitted.tenant, admitted.instance, &self.discord.account.key, whom);
        Ok(NewCapability {
            kind: INTERACTION_TOKEN,
            sealed: self.ingress.seal.seal(interaction.credential().expose(), &bound_to)?,
            deferral: interaction.deferral(),
            expires_at: from.after(vault::LIVES_FOR),
            chat_id,
            user_id,
            interaction_id,
        })
    }
}

/// The flag of a message that only the person who asked sees.
pub(super) const EPHEMERAL: u64 = 1 << 6;

/// What Discord is told within its three seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It asked whether anybody is here.
    Pong,
    /// Nothing is suggested to somebody who types.
    NoChoices,
    /// The answer follows.
    Deferred(Deferral),
    /// This is the answer, for the person's eyes only.
    Words(OwnWords),
    /// The question shows this from now on, and no buttons.
    Chosen(String),
}

impl Reply {
    /// What to say to somebody whose interaction reaches nobody. Names nobody.
    pub(super) fn refusal(reason: DropReason) -> Self {
        Self::Words(reason.own_words())
    }

    /// What it is once the store has told what became of what was taken in.
    pub(super) fn after(self, taken: Taken) -> Self {
        match self {
            Self::Deferred(_) | Self::Chosen(_) if taken.given_up => Self::Words(OwnWords::TryAgain),
            Self::Deferred(_) | Self::Chosen(_) if taken.no_instance => Self::refusal(DropReason::NoInstance),
            Self::Chosen(_) if taken.not_open => Self::Words(OwnWords::PromptOver),
            other => other,
        }
    }

    /// What it is if the store has not told in time: nothing is promised that
    /// nobody keeps.
    pub(super) fn late(self, patience: Option<&CancellableWrite>) -> Self {
        match (self, patience) {
            (Self::Deferred(_) | Self::Chosen(_), Some(patience)) if !patience.give_up() => {
                Self::Words(OwnWords::MayHaveArrived)
            }
            (Self::Deferred(_) | Self::Chosen(_), _) => Self::Words(OwnWords::TryAgain),
            (other, _) => other,
        }
    }

    /// What Discord reads; words come in the person's language.
    pub(super) fn body(self, language: Language) -> Value {
        match self {
            Self::Pong => json!({ "type": 1 }),
            Self::Words(words) => json!({
                "type": 4,
                "data": { "content": words.text(language), "flags": EPHEMERAL, "allowed_mentions": { "parse": [] } },
            }),
            Self::Deferred(Deferral::Message) => json!({ "type": 5 }),
            Self::Deferred(Deferral::Update) => json!({ "type": 6 }),
            Self::Chosen(content) => json!({
                "type": 7,
                "data": { "content": content, "components": [], "allowed_mentions": { "parse": [] } },
            }),
            Self::NoChoices => json!({ "type": 8, "data": { "choices": [] } }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferral_is_only_said_for_what_is_kept() {
        let deferred = || Reply::Deferred(Deferral::Message);
        assert_eq!(deferred().after(Taken::default()), deferred());
        let given_up = Taken { given_up: true, ..Taken::default() };
        assert_eq!(deferred().after(given_up), Reply::Words(OwnWords::TryAgain));
        let gone = Taken { no_instance: true, ..Taken::default() };
        assert_eq!(deferred().after(gone), Reply::refusal(DropReason::NoInstance));
        assert_eq!(Reply::Words(OwnWords::NotUnderstood).after(gone), Reply::Words(OwnWords::NotUnderstood));
        let (waits, begun) = (CancellableWrite::default(), CancellableWrite::default());
        begun.begin();
        assert_eq!(deferred().late(Some(&waits)), Reply::Words(OwnWords::TryAgain));
        assert!(!waits.begin(), "and it is not written later");
        assert_eq!(deferred().late(Some(&begun)), Reply::Words(OwnWords::MayHaveArrived));
        assert_eq!(Reply::Words(OwnWords::NotUnderstood).late(None), Reply::Words(OwnWords::NotUnderstood));
        let chosen = || Reply::Chosen("→ Yes".into());
        assert_eq!(chosen().after(Taken::default()), chosen());
        let over = Taken { not_open: true, ..Taken::default() };
        assert_eq!(chosen().after(over), Reply::Words(OwnWords::PromptOver));
        assert_eq!(chosen().after(gone), Reply::refusal(DropReason::NoInstance));
    }

    #[test]
    fn replies_have_discords_numbers() {
        for (reply, kind) in [
            (Reply::Pong, 1),
            (Reply::Words(OwnWords::TryAgain), 4),
            (Reply::Deferred(Deferral::Message), 5),
            (Reply::Deferred(Deferral::Update), 6),
            (Reply::Chosen("→ Yes".into()), 7),
            (Reply::NoChoices, 8),
        ] {
            assert_eq!(reply.body(Language::English)["type"], kind);
        }
        assert_eq!(Reply::NoChoices.body(Language::English)["data"]["choices"], json!([]));
        assert_eq!(Reply::Words(OwnWords::TryAgain).body(Language::English)["data"]["flags"], 64);
        let words = DropReason::ALL
            .map(|reason| Reply::refusal(reason).body(Language::English)["data"]["content"].clone());
        assert!(words.iter().all(|words| words.as_str().is_some_and(|words| words.len() < 100)));
    }
}
