//! What is said in a chat of a message of which nobody knows whether it arrived: in the ledger
//! with the end of that message (docs/decisions/0041).

use super::Egress;
use super::action::{Origin, OutboundAction, Reply};
use super::capability::Claims;
use super::outbox::ActingAs;
use super::perform::{Done, not_ours};
use angelia_contract::action::{Action, Metadata};
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::egress::delivery::{DeliveryId, Event};
use angelia_core::egress::{Remark, Target};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::own_words::{Language, OwnWords};
use angelia_core::ports::{ActionId, ActionOutcome, LeftOpen, StoredAction};
use angelia_core::store::DirectoryStore;
use std::sync::Arc;

/// A message in doubt, as far as something is said of it.
pub(super) struct InDoubt {
    origin: Origin,
    bot: usize,
    target: Target,
    /// What it says, if that was read.
    said: Option<Said>,
}

struct Said {
    content: String,
    reply_to: Option<String>,
    metadata: Metadata,
}

impl InDoubt {
    pub(super) fn of(action: &OutboundAction) -> Self {
        let said = match &action.action {
            Action::Send { content, reply_to, metadata, .. } => Some(Said {
                content: content.clone(),
                reply_to: reply_to.clone(),
                metadata: metadata.clone(),
            }),
            _ => None,
        };
        Self { origin: action.origin.clone(), bot: action.bot, target: action.target.clone(), said }
    }

    /// The same of one whose text nobody looks at any more.
    pub(super) fn unread(stored: &StoredAction, bot: usize, target: Target) -> Self {
        let origin = Origin {
            tenant: stored.tenant.clone(),
            instance: stored.instance,
            gateway_id: stored.gateway_id.clone(),
        };
        Self { origin, bot, target, said: None }
    }

    /// What is said of it.
    fn remark(self, remark: Remark, egress: &Egress, language: Language) -> OutboundAction {
        let Self { origin, bot, target, said } = self;
        let name = egress.identities.now().display_name(origin.instance);
        let text = |words| egress.notices.text(words, language, name.as_deref());
        let (origin, action) = match (remark, said) {
            // Repeating it is still its gateway's to be allowed.
            (Remark::Repeat, Some(Said { content, reply_to, metadata })) => {
                let content = format!("{}\n\n{content}", text(OwnWords::RepeatMark));
                (origin, Action::Send { chat_id: target.chat_id.clone(), content, reply_to, metadata })
            }
            // A gateway may be replaced before this is sent; the instance remains.
            (_, said) => {
                let reply_to = said.and_then(|said| said.reply_to);
                let action = own_send(&target, text(OwnWords::InDoubt).into_owned(), reply_to);
                (Origin { gateway_id: None, ..origin }, action)
            }
        };
        // Whoever waits for an answer is not answered by this, and nobody waits for this.
        let (claims, reply, received_at) = (Claims::Nothing, Reply::default(), clock::wall());
        OutboundAction { origin, bot, target, action, claims, remark: true, reply, received_at, _held: None }
    }
}

/// A message of the connector's own.
pub(super) fn own_send(target: &Target, content: String, reply_to: Option<String>) -> Action {
    let thread = target.thread_id.clone().map(|thread| ("thread_id".to_owned(), thread.into()));
    Action::Send {
        chat_id: target.chat_id.clone(),
        content,
        reply_to,
        metadata: thread.into_iter().collect(),
    }
}

/// Tells the ledger that nobody knows whether a message arrived, and what is said of that.
pub(super) async fn leave_open(
    egress: Arc<Egress>,
    id: DeliveryId,
    (number, under): (ActionId, ActingAs),
    outcome: ActionOutcome,
    (remark, in_doubt): (Remark, InDoubt),
) -> Result<Done> {
    let language = egress.language(in_doubt.bot, &in_doubt.target).await;
    let said = Arc::new(in_doubt.remark(remark, &egress, language));
    let owner = egress.owner_under(under).await?;
    let accepting = match &egress.outboxes[said.bot] {
        Some(outbox) => Some(outbox.accepting(owner).await),
        None => None,
    };
    let left = egress.ledger.leave_open(owner, number, outcome, said.entry(&egress)).await?;
    if let (Some(accepting), LeftOpen::Remarked(number)) = (accepting, left) {
        accepting.took(std::iter::once(number));
    }
    Ok(match left {
        LeftOpen::Remarked(number) => Done::Remarked(id, said, (number, under)),
        LeftOpen::Before => Done::Happened(Event::Finished { ids: vec![id], durable: true }),
        LeftOpen::NotOurs => Done::Happened(not_ours(&egress, vec![id])),
    })
}

impl Egress {
    /// The language in which the people of a chat are spoken to.
    pub(crate) async fn language(&self, bot: usize, target: &Target) -> Language {
        // What the store does not tell is as good as unknown.
        let bot = &self.bots[bot];
        let key = BotKey::new(bot.platform(), bot.id());
        let known = self.records.chat(&key, &target.chat_id).await.ok().flatten();
        known.and_then(|known| known.chat.language).unwrap_or_default()
    }

    /// Something of the connector's own about an agent, in the words for whoever reads it in a chat.
    pub(crate) async fn own_words(
        &self,
        bot: usize,
        target: &Target,
        agent: InstanceId,
        words: OwnWords,
    ) -> String {
        let (language, name) = (self.language(bot, target).await, self.identities.now().display_name(agent));
        self.notices.text(words, language, name.as_deref()).into_owned()
    }
}
