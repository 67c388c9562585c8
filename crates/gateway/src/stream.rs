//! A reply that appears while it is being written.

use angelia_contract::length::Unit;
use angelia_contract::split::{Part, split, split_plain};
use tokio::time::Instant;

use crate::calls::random;
use crate::conversation::Conversation;
use crate::error::CallError;

/// A reply that grows; from [`Conversation::stream`].
///
/// Where the platform shows drafts, people see one grow, and the whole text takes
/// its place as a message when it is finished. Where it can edit, the first piece
/// is sent as a message, which is then edited to the whole text. Both happen at
/// most once per [`edit_interval`](crate::GatewayBuilder::edit_interval). A text
/// that outgrows the platform's limit goes on in a new message, with code fences
/// closed and opened again if the platform shows Markdown. Where it can do
/// neither, each finished paragraph is sent as a message of its own.
///
/// What was pushed between two edits is shown by the next `push` that comes
/// late enough, by [`flush`](Self::flush) or by [`finish`](Self::finish).
/// Dropping the stream shows nothing more.
///
/// An error leaves the stream usable: text that certainly did not arrive is
/// sent with the next call, text that perhaps did is not sent again.
#[derive(Debug)]
pub struct ReplyStream {
    conversation: Conversation,
    limit: usize,
    unit: Unit,
    can_edit: bool,
    /// The number of the draft that grows; `None` where there are none.
    draft: Option<i64>,
    /// Whether code fences mean anything.
    fences: bool,
    /// The text from the beginning of the message at the end.
    text: String,
    tail: Tail,
    shown_at: Option<Instant>,
    message_ids: Vec<String>,
}

/// The message at the end of the reply.
#[derive(Debug)]
enum Tail {
    /// It was not sent yet.
    Unsent,
    /// It shows this, which stands for so many bytes of the text.
    Editable { id: String, shown: String, upto: usize },
    /// So many bytes of the text were sent and cannot be changed any more.
    Fixed { upto: usize },
}

/// How far the messages are brought up to date.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    /// Only messages that are full.
    Full,
    /// Everything, but a failed edit is made up for by the next one.
    Preview,
    /// Everything.
    All,
}

impl ReplyStream {
    pub(crate) fn new(conversation: Conversation) -> Self {
        let descriptor = conversation.descriptor();
        let unit = Unit::from(descriptor.len_unit);
        let limit = usize::try_from(descriptor.max_message_length).unwrap_or(usize::MAX);
        Self {
            // No platform has a limit below one character; a descriptor may.
            limit: limit.max(unit.of_char(char::MAX)),
            unit,
            can_edit: descriptor.supports_edit,
            // Any number but zero: another stream of the chat has another one.
            draft: descriptor.shows_drafts().then(|| i64::from(random() as u32 >> 1) + 1),
            fences: descriptor.reads_markdown(),
            conversation,
            text: String::new(),
            tail: Tail::Unsent,
            shown_at: None,
            message_ids: Vec::new(),
        }
    }

    /// The same as a message from its first words on, also where there are drafts.
    ///
    /// A draft is gone with the turn that wrote it; what a message said so far stays when the turn is
    /// stopped.
    pub fn as_message(mut self) -> Self {
        self.draft = None;
        self
    }

    /// Adds to the reply; shows it if it is time.
    pub async fn push(&mut self, piece: &str) -> Result<(), CallError> {
        self.text.push_str(piece);
        let overflows = self.unit.measure(&self.text) > self.limit;
        if self.draft.is_some() && matches!(self.tail, Tail::Unsent) {
            if overflows {
                self.show(Show::Full).await?;
            }
            if self.is_due() {
                self.show_draft().await?;
            }
            if self.draft.is_some() {
                return Ok(());
            }
        }
        if !self.can_edit {
            self.leave_fixed();
            self.show_paragraphs().await?;
            return if overflows { self.show(Show::Full).await } else { Ok(()) };
        }
        if self.is_due() || overflows { self.show(Show::Preview).await } else { Ok(()) }
    }

    /// Whether enough time has passed since something was shown.
    fn is_due(&self) -> bool {
        let interval = self.conversation.gateway.shared.settings.edit_interval;
        self.shown_at.is_none_or(|at| at.elapsed() >= interval)
    }

    /// Shows what there is as a draft. What is refused or did not arrive is made up for: there are no
    /// drafts then, or the next one says the same and more.
    async fn show_draft(&mut self) -> Result<(), CallError> {
        let Some(draft_id) = self.draft.filter(|_| !self.text.trim().is_empty()) else { return Ok(()) };
        self.shown_at = Some(Instant::now());
        match self.conversation.gateway.draft(&self.conversation.chat, draft_id, &self.text).await {
            Err(CallError::Refused(_)) => {
                (self.draft, self.shown_at) = (None, None);
                Ok(())
            }
            Err(CallError::Stopped) => Err(CallError::Stopped),
            _ => Ok(()),
        }
    }

    /// Shows everything pushed so far, whatever the time, as a message.
    pub async fn flush(&mut self) -> Result<(), CallError> {
        self.show(Show::All).await
    }

    /// Shows the rest, and gives the ids of all messages, in order.
    ///
    /// A last edit that got lost with its connection is tried once more, and so is what
    /// certainly did not leave.
    pub async fn finish(mut self) -> Result<Vec<String>, CallError> {
        if let Err(error) = self.show(Show::All).await {
            let again = matches!(self.tail, Tail::Editable { .. }) || error == CallError::NotSent;
            if !again || error == CallError::Stopped {
                return Err(error);
            }
            self.show(Show::All).await?;
        }
        Ok(self.message_ids)
    }

    /// Shows the paragraphs that are finished.
    async fn show_paragraphs(&mut self) -> Result<(), CallError> {
        let Some(end) = paragraphs_end(&self.text, self.fences) else {
            return Ok(());
        };
        let later = self.text.split_off(end);
        let shown = self.show(Show::All).await;
        self.text.push_str(&later);
        shown
    }

    async fn show(&mut self, how: Show) -> Result<(), CallError> {
        loop {
            self.leave_fixed();
            // Cutting also closes a fence that is still open.
            let parts = self.parts();
            let Some(part) = parts.first() else {
                return Ok(());
            };
            let upto = part.content().len();
            let next = parts.get(1);
            if next.is_none() && how == Show::Full {
                return Ok(());
            }
            let needed = how != Show::Preview || next.is_some();
            self.show_part(&part.text, upto, needed).await?;
            match (&self.tail, next) {
                // An edit was refused just now: the rest becomes a message.
                (Tail::Fixed { upto: fixed }, _) if *fixed < upto && needed => {}
                (_, Some(next)) => {
                    let fence = &next.text[..next.added_front];
                    self.text.replace_range(..upto, fence);
                    self.tail = Tail::Unsent;
                }
                _ => return Ok(()),
            }
        }
    }

    fn parts(&self) -> Vec<Part> {
        let cut = if self.fences { split } else { split_plain };
        cut(&self.text, self.limit, self.unit).unwrap_or_default()
    }

    /// Lets the text begin behind what cannot be changed any more.
    fn leave_fixed(&mut self) {
        if let Tail::Fixed { upto } = self.tail {
            self.text.drain(..upto);
            self.tail = Tail::Unsent;
        }
    }

    /// Makes the message at the end show `part`, which ends at `upto`.
    async fn show_part(&mut self, part: &str, upto: usize, needed: bool) -> Result<(), CallError> {
        match &mut self.tail {
            Tail::Editable { shown, .. } if shown == part => Ok(()),
            Tail::Editable { id, shown, upto: to } => {
                self.shown_at = Some(Instant::now());
                match self.conversation.edit(id, part).await {
                    Ok(_) => {
                        part.clone_into(shown);
                        *to = upto;
                        Ok(())
                    }
                    Err(CallError::Refused(_)) => {
                        self.can_edit = false;
                        self.tail = Tail::Fixed { upto: *to };
                        Ok(())
                    }
                    Err(_) if !needed => Ok(()),
                    Err(error) => Err(error),
                }
            }
            // Platforms refuse messages of nothing but white space.
            _ if part.trim().is_empty() => Ok(()),
            _ => self.send(part, upto).await,
        }
    }

    async fn send(&mut self, part: &str, upto: usize) -> Result<(), CallError> {
        self.shown_at = Some(Instant::now());
        match self.conversation.send(part).await {
            Ok(sent) => {
                self.message_ids.extend(sent.message_id.clone());
                self.can_edit &= sent.message_id.is_some();
                self.tail = match sent.message_id.filter(|_| self.can_edit) {
                    None => Tail::Fixed { upto },
                    Some(id) => Tail::Editable { id, shown: part.to_owned(), upto },
                };
                Ok(())
            }
            Err(error) => {
                // What perhaps stands there must not be sent again.
                if error.is_ambiguous() {
                    self.tail = Tail::Fixed { upto };
                }
                Err(error)
            }
        }
    }
}

/// Where the last finished paragraph ends; blank lines in fences do not count.
fn paragraphs_end(text: &str, fences: bool) -> Option<usize> {
    let (mut at, mut end, mut in_fence, mut begun) = (0, None, false, false);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let word = line.trim();
        if fences && (word.starts_with("```") || word.starts_with("~~~")) {
            in_fence = !in_fence;
        }
        if word.is_empty() && line.ends_with('\n') && begun && !in_fence {
            end = Some(at);
        }
        begun |= !word.is_empty();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_end_at_blank_lines_outside_fences() {
        assert_eq!(paragraphs_end("one\ntwo", true), None);
        assert_eq!(paragraphs_end("one\n\ntwo", true), Some(5));
        assert_eq!(paragraphs_end("\n\none", true), None);
        assert_eq!(paragraphs_end("```\na\n\nb", true), None);
        assert_eq!(paragraphs_end("```\na\n\nb\n```\n\nc", true), Some(14));
        assert_eq!(paragraphs_end("```\na\n\nb", false), Some(7), "which are nothing here");
    }
}
