//! What an interaction comes to, however it arrived: an entry in an inbox with
//! what answers it in the vault, or words for the person.

use super::interaction::{AUTOCOMPLETE, Interaction, PING};
use super::locate::{IngestError, Spot};
use super::message::{Heard, Reader, View, never};
use super::parse::id_of;
use super::reply::{LINK_IN_WRITING, NOT_UNDERSTOOD, Reply, TRY_AGAIN};
use super::{INTERACTION_TOKEN, address, normalize, sanitize};
use crate::inbound;
use angelia_contract::event::Event;
use angelia_core::admission::{Admitted, DropReason, link_command};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{self, EntryKind, Patience};
use angelia_core::seal;
use angelia_core::store::NewEntry;
use angelia_core::vault::{self, NewCapability};
use serde_json::Value;
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
    fn at_once(reply: Reply) -> Self {
        Self { heard: None, reply }
    }

    /// Whether what is to be committed is still wanted.
    pub(super) fn patience(&self) -> Option<Patience> {
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
        let interaction = match Interaction::read(body) {
            Ok(interaction) => interaction,
            Err(why) => return self.unreadable(raw, id, why),
        };
        match timeout_at(due, self.interaction(&interaction, body, from)).await {
            Ok(Ok(considered)) => considered,
            Ok(Err(IngestError::Unreadable(why))) => self.unreadable(raw, id, why),
            Ok(Err(IngestError::NotNow { why, .. })) => self.not_now(&why),
            Err(_) => self.not_now("where it happened was not found out in time"),
        }
    }

    fn unreadable(&self, raw: &str, id: Option<String>, why: String) -> Considered {
        let id = id.filter(|id| address::snowflake(id).is_some()).unwrap_or_default();
        let heard = self.quarantined(format!("interaction {id}").trim_end().to_owned(), why, raw);
        Considered { heard: Some(heard), reply: Reply::Words(NOT_UNDERSTOOD) }
    }

    fn not_now(&self, why: &str) -> Considered {
        tracing::warn!(bot = self.discord.own_id(), why, "an interaction could not be taken");
        Considered::at_once(Reply::Words(TRY_AGAIN))
    }

    async fn interaction(
        &self,
        interaction: &Interaction,
        body: &Value,
        from: UnixMillis,
    ) -> Result<Considered, IngestError> {
        let (spot, told) = self.discord.spot_of(interaction).await?;
        let view = View::new(&interaction.as_message(), &spot, true)?;
        let (own_id, text) = (self.discord.own_id(), interaction.text());
        if link_command(&text).is_some() {
            view.observe(own_id, |observed, which| {
                self.ingress.admission.dropped(observed, which, DropReason::Consumed);
            });
            return Ok(Considered::at_once(Reply::Words(LINK_IN_WRITING)));
        }
        let decided = view.observe(own_id, |observed, which| self.ingress.admission.admit(observed, which));
        let admitted = match decided {
            Ok(admitted) => admitted,
            Err(reason) => return Ok(Considered::at_once(Reply::refusal(reason))),
        };
        let event = self.interaction_event(interaction, &spot, &text);
        let capability = self.capability(interaction, &event, &admitted, from)?;
        let instance = admitted.instance;
        let entry = self.interaction_entry(interaction, body, event, admitted).map_err(never)?;
        let mut heard = Heard::default();
        heard.intake.chats.extend(told);
        heard.intake.capability = Some(capability);
        heard.intake.patience = Some(Patience::default());
        heard.is_for(instance, entry, view);
        Ok(Considered { heard: Some(heard), reply: Reply::Deferred(interaction.deferral()) })
    }

    fn interaction_event(&self, interaction: &Interaction, spot: &Spot, text: &str) -> Event {
        Event {
            prompt_response: interaction.prompt_response(),
            ..normalize::event(&interaction.as_message(), spot, text, self.writing(false))
        }
    }

    fn interaction_entry(
        &self,
        interaction: &Interaction,
        body: &Value,
        event: Event,
        admitted: Admitted,
    ) -> Result<NewEntry> {
        // A command that stops a turn goes ahead here as well.
        let entry = inbound::entry(&self.discord.key, &event, admitted, clock::wall())?;
        let request = sanitize::request(body, interaction, &self.discord.config.name);
        let body = serde_json::to_vec(&inbox::Interaction { event, request })
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
        let interaction_id = interaction.id.clone();
        let whom = [chat_id.as_str(), &user_id, &interaction_id];
        let bound_to = seal::capability(&admitted.tenant, admitted.instance, &self.discord.key, whom);
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
