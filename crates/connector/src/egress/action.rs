//! An action on its way: whose it is, where it goes, who waits for its answer. A request gets one,
//! in words that gateways understand rightly.

use super::Egress;
use super::capability::Claims;
use super::chats::ChatKey;
use super::rate_limit::{Paced, RateLimit};
use crate::identities::Snapshot;
use crate::relay::{Answer, Mailbox};
use crate::telemetry::Counter;
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::ConnectorFrame;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::egress::delivery::{ActionAnswer, Asked, Edited, Repeats};
use angelia_core::egress::{
    FOLLOW_UP, Goal, REMARK, Remark, Sender, Target, Urgency, Whereabouts, may_write, remark_on,
};
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::InstanceId;
use angelia_core::memory::HeldBytes;
use angelia_core::ports::NewAction;
use angelia_core::vault::Way;
use angelia_platforms::{Platform, Reach};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What gateways write behind a text that is not complete yet.
const GROWS_ON: char = '▉';

/// Longest time for which everything a bot does is held back at once: what one
/// chat brought about must not silence the others for hours. Then it is tried.
const LONGEST_BOT_PAUSE: Duration = Duration::from_secs(60);

/// Words by which gateways take a failure for one to be tried again, or for
/// one that may have been delivered. A reason that happens to contain one
/// would make them do the wrong thing.
const TELLING: [&str; 13] = [
    "timed out",
    "readtimeout",
    "writetimeout",
    "connecterror",
    "connectionerror",
    "connectionreset",
    "connectionrefused",
    "connecttimeout",
    "network",
    "broken pipe",
    "remotedisconnected",
    "eoferror",
    "egress_declined",
];
/// What is said instead of such a reason.
const UNSAID: &str = "the reason is in the connector's ledger";

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
    /// Whether it is said of a message in doubt.
    pub(super) remark: bool,
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
        let remark = false;
        Arc::new(Self { origin, bot, target, action, claims, remark, reply, received_at, _held: held })
    }

    /// The same, on a way of its own: whoever waits is answered by that.
    pub(super) fn hand_on(&self) -> Arc<Self> {
        Arc::new(Self {
            origin: self.origin.clone(),
            bot: self.bot,
            target: self.target.clone(),
            action: self.action.clone(),
            claims: self.claims,
            remark: self.remark,
            reply: self.reply.hand_on().unwrap_or_default(),
            received_at: self.received_at,
            _held: None,
        })
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
        self.may_write_to(egress, &self.target)
    }

    /// The same of another place than its own.
    pub(super) fn may_write_to(&self, egress: &Egress, target: &Target) -> bool {
        let sender = Sender { tenant: &self.origin.tenant, instance: self.origin.instance };
        let known = egress.identities.now();
        let may = || may_write(known.routes(), &**self.platform(egress), sender, target);
        !self.origin.is_revoked(&known) && may() == Some(true)
    }

    /// The same of what is not in the ledger; the bot has to be this node's, too.
    pub(super) fn may_call_now(&self, egress: &Egress) -> bool {
        egress.may_call_now(self.bot) && self.is_allowed(egress)
    }

    /// Brings to hand what is known of the target: after a restart, or among very many chats, that
    /// may not be there, and other nodes may know more by now. What stays unknown is not written
    /// to.
    pub(super) async fn recall(&self, egress: &Egress) -> Result<()> {
        let platform = self.platform(egress);
        match platform.places(&self.target) {
            Whereabouts::Unknown | Whereabouts::Places(_) => platform.recall(&self.target).await,
            Whereabouts::Nowhere => Ok(()),
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
            in_doubt: self.in_doubt(egress),
        }
    }

    /// What its chat hears if nobody knows whether it arrived.
    fn in_doubt(&self, egress: &Egress) -> Option<Remark> {
        remark_on(self.op(), self.origin.gateway_id.is_some(), egress.notices.ambiguous)
    }

    /// How the ledger names it.
    fn op(&self) -> &str {
        match self.claims {
            _ if self.remark => REMARK,
            Claims::Named(_) => FOLLOW_UP,
            Claims::Nothing | Claims::Fitting => self.action.op(),
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
            Action::Send { reply_to, .. } | Action::SendMedia { reply_to, .. } => reply_to.clone(),
            _ => None,
        };
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
            op: self.op().to_owned(),
            edits: self.edits().map(str::to_owned),
            reply_to,
            // Made of strings and maps of strings: it can always be written.
            body: serde_json::to_vec(&self.action).unwrap_or_default(),
            answering: claims.answering(&self.action, platform.chat_key(&self.target)),
            received_at: self.received_at,
        }
    }
}

/// Who waits for an answer; nobody does after a restart.
#[derive(Default)]
pub(super) struct Reply(Mutex<Option<Addressee>>);

enum Addressee {
    /// A gateway, by its socket.
    Gateway { mailbox: Arc<Mailbox>, ticket: u64, request_id: String, opens_thread: bool },
    /// Another node.
    Node(oneshot::Sender<ActionResult>),
}

impl Reply {
    /// A gateway, by its socket, that asked for `action`.
    pub(super) fn to(mailbox: Arc<Mailbox>, ticket: u64, request_id: String, action: &Action) -> Self {
        let opens_thread = matches!(action, Action::ThreadCreate { .. });
        Self(Mutex::new(Some(Addressee::Gateway { mailbox, ticket, request_id, opens_thread })))
    }

    /// One that is waited for here, to be told to another node.
    pub(super) fn and_answer() -> (Self, oneshot::Receiver<ActionResult>) {
        let (answer, answered) = oneshot::channel();
        (Self(Mutex::new(Some(Addressee::Node(answer)))), answered)
    }

    /// Has the answer given by somebody else; `None` if nobody waits for it.
    pub(super) fn hand_on(&self) -> Option<Self> {
        let addressee = self.0.lock().take()?;
        Some(Self(Mutex::new(Some(addressee))))
    }

    /// Gives the answer; only the first one counts.
    pub(super) fn give(&self, result: ActionResult) {
        let addressee = self.0.lock().take();
        match addressee {
            Some(Addressee::Gateway { mailbox, ticket, request_id, opens_thread }) => {
                let ok = result.success;
                let thread_id = if opens_thread { result.message_id.clone() } else { None };
                let result = ActionResult { thread_id: result.thread_id.or(thread_id), ..result };
                let line = ConnectorFrame::OutboundResult { request_id, result }.to_line();
                mailbox.answer(Answer { ticket, line, ok });
            }
            Some(Addressee::Node(answer)) => drop(answer.send(result)),
            None => {}
        }
    }

    /// Tells that the target is not the sender's, and counts it.
    pub(super) fn decline(&self, egress: &Egress) {
        egress.metrics.count(Counter::OutboundDeclined);
        self.give(ActionResult::declined("relay"));
    }
}

/// An answer in the words that gateways read.
pub(super) fn result(answer: ActionAnswer) -> ActionResult {
    match answer {
        ActionAnswer::Sent { message_id } => ActionResult::sent(&message_id),
        ActionAnswer::Shown => ActionResult::ok(),
        ActionAnswer::Failed(why) => failed(&why),
        ActionAnswer::NeverSent(why) => never_sent(&why),
        ActionAnswer::PerhapsSent(why) => perhaps_sent(&why),
        ActionAnswer::Declined => ActionResult::declined("relay"),
    }
}

/// Not done, and another attempt will not help.
pub(super) fn failed(why: &str) -> ActionResult {
    ActionResult::failed(plain(why))
}

/// Certainly never written, and will not be.
pub(super) fn never_sent(why: &str) -> ActionResult {
    ActionResult::network(plain(why))
}

/// Perhaps written.
pub(super) fn perhaps_sent(why: &str) -> ActionResult {
    ActionResult::timed_out(plain(why))
}

fn plain(why: &str) -> &str {
    let lowered = why.to_lowercase();
    if TELLING.iter().any(|word| lowered.contains(word)) { UNSAID } else { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_does_not_change_what_a_failure_means() {
        let says = |result: ActionResult, word: &str| result.error.unwrap().contains(word);
        assert!(says(failed("the text is empty"), "the text is empty"));
        for why in ["ReadTimeout", "Network is unreachable", "it timed out", "ConnectionReset by peer"] {
            assert!(!says(failed(why), "etwork") && !says(failed(why), "imed out"), "{why}");
            assert!(says(never_sent(why), "network") && !says(never_sent(why), "timed out"), "{why}");
            assert!(says(perhaps_sent(why), "timed out") && !says(perhaps_sent(why), "etwork"), "{why}");
        }
        assert_eq!(plain(UNSAID), UNSAID);
    }

    #[test]
    fn a_request_is_answered_once() {
        let mailbox = Arc::new(Mailbox::default());
        let reply = Reply::to(mailbox.clone(), 7, "r".into(), &Action::from_value(serde_json::json!({})));
        reply.give(ActionResult::sent("m1"));
        reply.give(ActionResult::failed("too late"));
        let answers = mailbox.take().answers;
        assert_eq!(answers.len(), 1);
        assert!(answers[0].ticket == 7 && answers[0].line.contains("m1"));
        Reply::default().give(ActionResult::ok());
    }
}
