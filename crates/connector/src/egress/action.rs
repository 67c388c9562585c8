//! An action on its way: whose it is, where it goes, who waits for its answer.

use super::Egress;
use super::answer::Reply;
use super::capability::Claims;
use super::chats::ChatKey;
use super::rate_limit::{Paced, RateLimit};
use crate::identities::Snapshot;
use angelia_contract::action::Action;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::egress::delivery::{Asked, Edited, Repeats};
use angelia_core::egress::{Goal, Sender, Target, Urgency, Whereabouts, may_write};
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::InstanceId;
use angelia_core::memory::HeldBytes;
use angelia_core::ports::NewAction;
use angelia_core::vault::Way;
use angelia_platforms::{Platform, Reach};
use std::sync::Arc;
use std::time::Duration;

/// What gateways write behind a text that is not complete yet.
const GROWS_ON: char = '▉';

/// How the ledger names what was asked for as a `follow_up`; its body is a `send`.
pub(super) const FOLLOW_UP: &str = "follow_up";

/// Longest time for which everything a bot does is held back at once: what one
/// chat brought about must not silence the others for hours. Then it is tried.
const LONGEST_BOT_PAUSE: Duration = Duration::from_secs(60);

/// Who sent an action.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) tenant: String,
    pub(super) instance: InstanceId,
    /// The gateway; `None` for what the connector says itself.
    pub(super) gateway_id: Option<String>,
}

impl Origin {
    pub(super) fn of(record: &GatewayRecord) -> Self {
        Self {
            tenant: record.tenant.clone(),
            instance: record.instance,
            gateway_id: Some(record.gateway_id.clone()),
        }
    }

    /// Whether the sender was revoked meanwhile, or is not there any more.
    pub(super) fn is_revoked(&self, known: &Snapshot) -> bool {
        match &self.gateway_id {
            Some(id) => {
                let record = known.find(&self.tenant, id);
                record.is_none_or(|record| record.revoked_at.is_some())
            }
            None => known.is_revoked(self.instance),
        }
    }
}

/// An action, with everything that is needed to perform and answer it.
pub(super) struct OutboundAction {
    pub(super) origin: Origin,
    /// The position of the platform that performs it.
    pub(super) bot: usize,
    pub(super) target: Target,
    pub(super) action: Action,
    /// What it may answer with.
    pub(super) claims: Claims,
    pub(super) reply: Reply,
    pub(super) received_at: UnixMillis,
    /// What it makes the server hold; given back with it.
    pub(super) _held: Option<HeldBytes>,
}

impl OutboundAction {
    /// One that is asked for now.
    pub(super) fn new(
        origin: Origin,
        goal: Goal,
        action: Action,
        claims: Claims,
        reply: Reply,
        held: Option<HeldBytes>,
    ) -> Arc<Self> {
        let (Goal { bot, target }, received_at) = (goal, clock::wall());
        Arc::new(Self { origin, bot, target, action, claims, reply, received_at, _held: held })
    }

    /// The chat as this instance writes to it: what others do there is not waited for.
    pub(super) fn chat(&self, egress: &Egress) -> ChatKey {
        ChatKey::of(egress, self.origin.instance, self.bot, &self.target)
    }

    pub(super) fn platform<'a>(&self, egress: &'a Egress) -> &'a Arc<dyn Platform> {
        &egress.bots[self.bot]
    }

    pub(super) fn rate_limit<'a>(&self, egress: &'a Egress) -> &'a RateLimit {
        &egress.rate_limits[self.bot]
    }

    /// Whether the sender may write there, as things stand at this moment. To
    /// be asked right before every provider call, after [`OutboundAction::recall`].
    pub(super) fn is_allowed(&self, egress: &Egress) -> bool {
        let sender = Sender { tenant: &self.origin.tenant, instance: self.origin.instance };
        let known = egress.identities.now();
        let may = || may_write(known.routes(), &**self.platform(egress), sender, &self.target);
        !self.origin.is_revoked(&known) && may() == Some(true)
    }

    /// Brings to hand what is known of the target: after a restart, or among
    /// very many chats, that may not be there. What stays unknown is not written to.
    pub(super) async fn recall(&self, egress: &Egress) -> Result<()> {
        let platform = self.platform(egress);
        match platform.places(&self.target) {
            Whereabouts::Unknown => platform.recall(&self.target).await,
            Whereabouts::Places(_) | Whereabouts::Nowhere => Ok(()),
        }
    }

    /// Whether its provider counts calls by chat.
    pub(super) fn is_paced(&self, egress: &Egress) -> bool {
        self.platform(egress).chat_budget(&self.target).is_some()
    }

    /// How its chat is paced.
    pub(super) fn paced(&self, egress: &Egress) -> Option<Paced> {
        let platform = self.platform(egress);
        let rate = platform.chat_budget(&self.target)?;
        Some(Paced { chat: platform.chat_key(&self.target), rate, urgency: self.urgency() })
    }

    /// Spares the provider what it would refuse as well.
    pub(super) fn pause(&self, egress: &Egress, reach: Reach, pause: Duration) {
        let limit = self.rate_limit(egress);
        match reach {
            Reach::Action => {}
            Reach::Chat => limit.pause_chat(&self.platform(egress).chat_key(&self.target), pause),
            Reach::Bot => limit.pause(pause.min(LONGEST_BOT_PAUSE)),
        }
    }

    /// A text that grows ends with a mark; the last one does not.
    fn urgency(&self) -> Urgency {
        match &self.action {
            Action::Edit { content, .. } if content.ends_with(GROWS_ON) => Urgency::Interim,
            _ => Urgency::Whole,
        }
    }

    /// What its queue has to know of it.
    pub(super) fn asked(&self, egress: &Egress) -> Asked {
        let edited = |id: &str| Edited { message_id: id.to_owned(), target: self.target.clone() };
        Asked {
            edits: self.edits().map(edited),
            follow_up: self.is_follow_up(),
            repeats: self.repeats(egress),
        }
    }

    /// Whether its provider recognises it, given twice.
    pub(super) fn repeats(&self, egress: &Egress) -> Repeats {
        let by = |way| self.platform(egress).dedupe(&self.action, way);
        if self.edits().is_some() {
            // It answers nobody.
            return Repeats::always(by(None));
        }
        Repeats { message: by(None), original: by(Some(Way::Original)), further: by(Some(Way::Further)) }
    }

    /// Whether it was asked for as a `follow_up`, which nothing takes the place of.
    pub(super) fn is_follow_up(&self) -> bool {
        matches!(self.claims, Claims::Named(_))
    }

    /// The message that this edits.
    pub(super) fn edits(&self) -> Option<&str> {
        match &self.action {
            Action::Edit { message_id, .. } => Some(message_id),
            _ => None,
        }
    }

    /// What the ledger keeps of it.
    pub(super) fn entry(&self, egress: &Egress) -> NewAction {
        let platform = self.platform(egress);
        let reply_to = match &self.action {
            Action::Send { reply_to, .. } => reply_to.clone(),
            _ => None,
        };
        let op = if self.is_follow_up() { FOLLOW_UP } else { self.action.op() };
        // The connector's own chats keep nobody waiting behind a capability.
        let claims = if platform.is_own() { Claims::Nothing } else { self.claims };
        NewAction {
            tenant: self.origin.tenant.clone(),
            instance: self.origin.instance,
            gateway_id: self.origin.gateway_id.clone(),
            platform: platform.platform().to_owned(),
            bot: platform.id().to_owned(),
            chat_id: self.target.chat_id.clone(),
            thread_id: self.target.thread_id.clone(),
            op: op.to_owned(),
            edits: self.edits().map(str::to_owned),
            reply_to,
            // Made of strings and maps of strings: it can always be written.
            body: serde_json::to_vec(&self.action).unwrap_or_default(),
            answering: claims.answering(&self.action, platform.chat_key(&self.target)),
            received_at: self.received_at,
        }
    }
}
