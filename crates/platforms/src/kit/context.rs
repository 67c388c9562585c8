//! What goes along with an event: the lines before it, and what it refers to, as far as the
//! agent may know them.

use super::Sighting;
use crate::admission::Which;
use crate::ingress::Ingress;
use crate::overheard::{Overheard, Wanting};
use angelia_contract::event::Event;
use angelia_core::admission::{Admitted, DropReason, Observed};
use angelia_core::context::Said;
use angelia_core::directory::BotKey;
use angelia_core::turns::{Sort, sort_of_text};

/// Who wrote what a reply refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) id: String,
    pub(crate) is_bot: bool,
}

/// Keeps what was said to others, should the agent be asked about it.
pub(crate) fn overhear(
    overheard: &dyn Overheard,
    observed: Observed<'_>,
    which: Which<'_>,
    (reason, event): (DropReason, &Event),
    at: angelia_core::clock::UnixMillis,
) {
    // Other reasons say that there is no agent, or none that may know it.
    let to_others = matches!(reason, DropReason::NotAddressed | DropReason::AuthorNotAllowed);
    if observed.private || !to_others {
        return;
    }
    if let Some(said) = Said::of(event, observed.author, observed.author_is_bot, at) {
        overheard.note(observed, which, said);
    }
}

/// Leaves in an event what its instance may know of what it refers to, and adds the lines before
/// it. A press and a command take none along: no model reads them.
pub(crate) fn inform(
    overheard: &dyn Overheard,
    observed: Observed<'_>,
    which: Which<'_>,
    wanting: Wanting<'_>,
    (event, author): (&mut Event, Option<&Author>),
) {
    if let Some(reply) = &event.reply_to {
        let known =
            |author: &Author| overheard.may_know(observed, wanting.admitted, &author.id, author.is_bot);
        // What the agent wrote itself, and what stands in a chat of two, is no news to it.
        if !reply.is_own && !observed.private && !author.is_some_and(known) {
            event.reply_to = None;
        }
    }
    let is_words = event.prompt_response.is_none() && sort_of_text(&event.text) == Sort::Text;
    if is_words && !observed.private {
        event.context = overheard.before(observed, which, wanting);
    }
}

impl Sighting {
    /// Keeps what was said to others, should the agent be asked about it.
    pub(crate) fn overhear(&self, ingress: &Ingress, bot: &BotKey, reason: DropReason, event: &Event) {
        let overheard = ingress.admission.overheard();
        self.observe(bot, |observed, which| overhear(overheard, observed, which, (reason, event), self.at));
    }

    /// Makes an event what its instance may know; `changed` if its author changed it.
    pub(crate) fn inform(
        &self,
        ingress: &Ingress,
        bot: &BotKey,
        admitted: &Admitted,
        changed: bool,
        event: (&mut Event, Option<&Author>),
    ) {
        let wanting = Wanting { admitted, at: self.at, changed };
        let overheard = ingress.admission.overheard();
        self.observe(bot, |observed, which| inform(overheard, observed, which, wanting, event));
    }

    /// What was said to others says something else now.
    pub(crate) fn reword(&self, ingress: &Ingress, bot: &BotKey, text: &str) {
        self.observe(bot, |_, which| ingress.admission.overheard().reword(bot, which, text));
    }
}
