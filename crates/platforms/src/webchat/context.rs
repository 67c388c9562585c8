//! What is said in a room and not to its agent, and what a line refers to.

use super::ingest::observe;
use super::room::{AGENT, chat_id, person_of};
use super::routes::Api;
use super::{address, normalize};
use crate::admission::Which;
use crate::kit::context::{self, Author};
use crate::overheard::Wanting;
use angelia_contract::event::Event;
use angelia_core::admission::{Admitted, DropReason};
use angelia_core::error::Result;
use angelia_core::store::{Line, NewLine};

impl Api {
    /// The line that another one answers.
    pub(super) async fn answered(&self, line: &NewLine) -> Result<Option<Line>> {
        match &line.reply_to {
            Some(reply_to) => self.ports.lines.line(&line.room, reply_to).await,
            None => Ok(None),
        }
    }

    /// Keeps what was said to others, should the agent be asked about it.
    pub(super) fn overhear(&self, line: &NewLine, reason: DropReason) {
        let (event, chat_id) = (normalize::event(line, self.source_flags), chat_id(&line.room));
        observe(line, false, |observed| {
            let (overheard, which) = (self.admission.overheard(), which(line, &chat_id));
            context::overhear(overheard, observed, which, (reason, &event), line.at);
        });
    }

    /// The event a line makes for the instance it is admitted to, with what that may know.
    pub(super) fn event(
        &self,
        line: &NewLine,
        admitted: &Admitted,
        answered: Option<&Line>,
        changed: bool,
    ) -> Event {
        let mut event = normalize::event(line, self.source_flags);
        event.reply_to = answered.and_then(normalize::reply_to);
        let author = answered.map(|answered| Author { id: answered.author.clone(), is_bot: false });
        let (wanting, chat_id) = (Wanting { admitted, at: line.at, changed }, chat_id(&line.room));
        observe(line, true, |observed| {
            let (overheard, which) = (self.admission.overheard(), which(line, &chat_id));
            context::inform(overheard, observed, which, wanting, (&mut event, author.as_ref()));
        });
        event
    }

    /// A line says something else now.
    pub(super) fn reword(&self, line: &NewLine) {
        let event = normalize::event(line, self.source_flags);
        self.admission.overheard().reword(&self.bot, which(line, &chat_id(&line.room)), &event.text);
    }

    /// No agent gets a line after all: the next has what was said before it.
    pub(super) fn give_back(&self, line: &NewLine, admitted: &Admitted) {
        let chat_id = chat_id(&line.room);
        self.admission.overheard().give_back(&self.bot, which(line, &chat_id), admitted.instance);
    }
}

/// Whether a line is meant for the agent, where it could be meant for others. Agents open threads, and
/// are meant in them.
pub(super) fn addresses(line: &NewLine, answered: Option<&Line>) -> bool {
    let answers = answered.is_some_and(|answered| answered.from_agent && answered.author == AGENT);
    line.thread.is_some() || person_of(&line.room).is_some() || address::addresses(&line.text) || answers
}

/// Which line of which chat it is.
pub(super) fn which<'a>(line: &'a NewLine, chat_id: &'a str) -> Which<'a> {
    Which { chat_id, thread_id: line.thread.as_deref(), message_id: &line.message_id }
}
