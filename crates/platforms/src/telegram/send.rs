//! An agent's `send` and `edit`, as messages.

use super::Telegram;
use super::api;
use super::locate::Spot;
use super::press;
use super::render::{self, Part};
use super::sent_messages::print;
use crate::kit::{ApiError, ErrorKind, NO_FILE, TextInParts, refused};
use crate::platform::{Delivery, Outcome, Progress, Reach};
use angelia_contract::action::Action;
use angelia_core::clock::{self, Mono};
use angelia_core::egress::Target;
use angelia_core::error::Error;
use angelia_core::fail;
use angelia_core::prompts;
use angelia_core::store::DirectoryStore;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Within this time a second chat that has to wait may mean that the bot has to.
const SAME_FLOOD: Duration = Duration::from_secs(5);
/// It does if both pauses end at the same moment, give or take the second that
/// Telegram rounds to and the time the answers took. Two chats in slow mode
/// have pauses of their own.
const SAME_END: Duration = Duration::from_secs(2);

const TOO_LONG_TO_ASK: &str = "the question is too long for one message with buttons";
const STAYED: &str = "the message stayed in the group that this supergroup was before; send a new one";

/// What Telegram answers to a message it took.
#[derive(Deserialize)]
pub(super) struct Written {
    pub(super) message_id: i64,
}

/// One delivery under way.
pub(super) struct Job<'a> {
    pub(super) progress: &'a dyn Progress,
    /// What was authorized.
    target: &'a Target,
    /// Where it is written.
    pub(super) spot: Spot,
    /// Whether it changes messages, which do not move with their chat.
    edits: bool,
    /// What the next message answers.
    pub(super) reply_to: Option<i64>,
    /// The buttons below it.
    keyboard: Option<Value>,
    /// Whether the next call is granted. The first is, with the delivery.
    granted: bool,
}

impl Job<'_> {
    /// Waits for leave to call.
    pub(super) async fn turn(&mut self) -> Result<(), Outcome> {
        if !std::mem::take(&mut self.granted) {
            if !self.progress.next_call().await {
                return Err(ApiError::withdrawn().outcome());
            }
            fail::point("action_sending");
        }
        Ok(())
    }
}

impl Telegram {
    /// Performs a `send` or `edit`.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { id, target, action, progress, file, .. } = delivery;
        let spot = match self.spot(&target).await {
            Ok(Some(spot)) => spot,
            Ok(None) => return refused("this is not a chat"),
            Err(error) => return store_failed(&error),
        };
        let edits = matches!(action, Action::Edit { .. } | Action::Delete { .. });
        let (progress, target) = (&*progress, &target);
        let mut job = Job { progress, target, spot, edits, reply_to: None, keyboard: None, granted: true };
        match action {
            Action::Send { content, reply_to, .. } => {
                // What is no message id cannot be answered; the text counts more.
                job.reply_to = reply_to.as_deref().and_then(message_number);
                self.say(&mut job, &content).await
            }
            Action::Prompt { content, reply_to, options, .. } => {
                if render::render(&content).len() > 1 {
                    return refused(TOO_LONG_TO_ASK);
                }
                job.reply_to = reply_to.as_deref().and_then(message_number);
                job.keyboard = Some(press::keyboard(id, &prompts::choices(&options)));
                self.say(&mut job, &content).await
            }
            Action::SendMedia { content, reply_to, .. } => {
                let Some(file) = file else { return refused(NO_FILE) };
                job.reply_to = reply_to.as_deref().and_then(message_number);
                self.show_file(&mut job, &file, &content).await
            }
            Action::Edit { message_id, content, .. } => {
                let done = self.rewrite(&mut job, &message_id, &content).await;
                done.map_or_else(|outcome| outcome, |()| Outcome::Sent { message_id, recorded: false })
            }
            Action::ThreadCreate { thread_name, .. } => {
                fail::point("action_sending");
                let opened = self.open_topic(target, &thread_name, || progress.still_allowed()).await;
                let sent = |topic| Outcome::Sent { message_id: topic, recorded: false };
                opened.map_or_else(|outcome| outcome, |opened| sent(opened.thread_id))
            }
            Action::ThreadRename { message_id, thread_name, .. } => {
                let done = self.rename_topic(target, &thread_name, || progress.still_allowed()).await;
                done.map_or_else(|outcome| outcome, |()| Outcome::Sent { message_id, recorded: false })
            }
            Action::Delete { message_id, .. } => {
                let done = self.delete(&mut job, &message_id).await;
                done.map_or_else(|outcome| outcome, |()| Outcome::Sent { message_id, recorded: false })
            }
            other => refused(format!("Telegram has no {:?} here", other.op())),
        }
    }

    async fn say(&self, job: &mut Job<'_>, text: &str) -> Outcome {
        self.say_parts(job, render::render(text)).await
    }

    /// Says a text message by message.
    pub(super) async fn say_parts(&self, job: &mut Job<'_>, parts: Vec<Part>) -> Outcome {
        let mut text = TextInParts::new(parts, job.progress);
        let (mut pieces, mut began_in) = (Vec::new(), None);
        while let Some(part) = text.next().await {
            job.granted = true;
            let written = self.write(job, &part, None).await;
            if let Ok(message_id) = &written {
                job.reply_to = None;
                let began_in = began_in.get_or_insert_with(|| job.spot.chat_id.clone());
                match text.first() {
                    None if job.spot.moved => self.sent_since(&job.target.chat_id, message_id).await,
                    None => {}
                    Some(first) => {
                        pieces.push(message_id.clone());
                        // Across a move they do not belong together any more.
                        if job.spot.chat_id == *began_in {
                            self.keep_pieces(job, first, &pieces).await;
                        }
                    }
                }
            }
            text.wrote(written).await;
        }
        text.outcome()
    }

    /// Changes a message and its further pieces: first what is there, then what is missing,
    /// last what is too much. What is done already is not done again, so the whole can be
    /// tried again at any point.
    async fn rewrite(&self, job: &mut Job<'_>, message_id: &str, text: &str) -> Result<(), Outcome> {
        self.is_here(job, message_id).await?;
        let parts = render::render(text);
        let Some((first, rest)) = parts.split_first() else {
            return Err(refused("there is no text to show"));
        };
        let kept = self.ports.records.pieces(&self.account.key, &job.spot.chat_id, message_id).await;
        let mut pieces = kept.map_err(|error| store_failed(&error))?;
        fail::point("action_sending");
        self.change(job, message_id, first).await?;
        for (at, part) in rest.iter().enumerate() {
            match pieces.get(at) {
                Some(piece) => match self.change(job, piece, part).await {
                    // Somebody deleted it: what it has to show is said again.
                    Err(Outcome::Refused { why }) if api::is_gone(&why) => {
                        pieces[at] = self.write(job, part, None).await?;
                    }
                    changed => {
                        changed?;
                        continue;
                    }
                },
                None => pieces.push(self.write(job, part, None).await?),
            }
            self.keep_pieces(job, message_id, &pieces).await;
        }
        // From the end, so that what stays is never behind what goes.
        while let Some(surplus) = pieces.get(rest.len()..).and_then(<[String]>::last) {
            self.remove(job, surplus).await?;
            pieces.pop();
            self.keep_pieces(job, message_id, &pieces).await;
        }
        Ok(())
    }

    /// Makes a message show a part, unless it does.
    async fn change(&self, job: &mut Job<'_>, message_id: &str, part: &Part) -> Result<(), Outcome> {
        let message = (job.spot.chat_id.clone(), message_id.to_owned());
        if self.sent.shows(&message, &print(part)) {
            return Ok(());
        }
        self.sent.forget(&message);
        self.write(job, part, Some(message_id)).await.map(drop)
    }

    async fn remove(&self, job: &mut Job<'_>, message_id: &str) -> Result<(), Outcome> {
        job.turn().await?;
        let asked = json!({ "chat_id": job.spot.chat(), "message_id": message_number(message_id) });
        let removed = self.api.write::<Value>("deleteMessage", &asked, || self.may_still(job)).await;
        match removed.map_err(|error| (error.kind, error)) {
            // One that is gone or too old to be taken away is let be.
            Ok(_) | Err((ErrorKind::Refused(_), _)) => {
                self.sent.forget(&(job.spot.chat_id.clone(), message_id.to_owned()));
                Ok(())
            }
            Err((ErrorKind::Moved(to), _)) => self.follow(job, &to.to_string()).await,
            Err((_, error)) => Err(self.outcome(error, &job.spot)),
        }
    }

    /// Takes a message and its further pieces away. One that is gone is all that was wanted; one that
    /// Telegram keeps, because it is too old, stays, and its sender is told.
    async fn delete(&self, job: &mut Job<'_>, message_id: &str) -> Result<(), Outcome> {
        self.is_here(job, message_id).await?;
        let kept = self.ports.records.pieces(&self.account.key, &job.spot.chat_id, message_id).await;
        let mut pieces = kept.map_err(|error| store_failed(&error))?;
        fail::point("action_sending");
        job.turn().await?;
        let asked = json!({ "chat_id": job.spot.chat(), "message_id": message_number(message_id) });
        match self.api.write::<Value>("deleteMessage", &asked, || self.may_still(job)).await {
            Err(error) if !api::words(&error).is_some_and(api::was_deleted) => {
                return Err(self.outcome(error, &job.spot));
            }
            _ => self.sent.forget(&(job.spot.chat_id.clone(), message_id.to_owned())),
        }
        while let Some(piece) = pieces.pop() {
            self.remove(job, &piece).await?;
            self.keep_pieces(job, message_id, &pieces).await;
        }
        Ok(())
    }

    /// Refuses a message that there cannot be in the chat. By the old id of a chat that moved, only
    /// what was sent since is one.
    async fn is_here(&self, job: &Job<'_>, message_id: &str) -> Result<(), Outcome> {
        if job.spot.moved {
            let known = self.was_sent_since(&job.target.chat_id, message_id).await;
            if !known.map_err(|error| store_failed(&error))? {
                return Err(refused(STAYED));
            }
        }
        match message_number(message_id) {
            Some(_) => Ok(()),
            None => Err(refused("there is no such message in this chat")),
        }
    }

    /// Whether the sender may still write, and that is still where the job writes.
    pub(super) fn may_still(&self, job: &Job<'_>) -> bool {
        job.progress.still_allowed() && self.written_to(job.target) == job.spot.chat_id
    }

    /// The chat has a new id: the job goes on there, unless it is about messages of the old one.
    pub(super) async fn follow(&self, job: &mut Job<'_>, to: &str) -> Result<(), Outcome> {
        if self.written_to(job.target) != to {
            let done = self.move_chat(&job.spot.chat_id, to).await;
            done.map_err(|error| store_failed(&error))?;
        }
        job.spot.move_to(to);
        if job.edits { Err(refused(STAYED)) } else { Ok(()) }
    }

    /// Writes one message, a new one or what `old` shows from now on: with its styles, or as it
    /// was typed if Telegram does not take those; where the chat is, or where it has moved to.
    async fn write(&self, job: &mut Job<'_>, part: &Part, old: Option<&str>) -> Result<String, Outcome> {
        let (mut plain, mut moved) = (false, false);
        loop {
            job.turn().await?;
            let error = match self.write_once(job, part, old, plain).await {
                Ok(message_id) => {
                    self.sent.note((job.spot.chat_id.clone(), message_id.clone()), &print(part));
                    return Ok(message_id);
                }
                Err(error) => error,
            };
            match (error.kind, api::words(&error)) {
                (_, Some(why)) if !plain && api::is_about_text(why) => {
                    tracing::warn!(bot = %self.config.name, %why, "a text goes out plain");
                    self.account.health.count("sent_plain");
                    plain = true;
                }
                (ErrorKind::Moved(to), _) if !moved => {
                    moved = true;
                    self.follow(job, &to.to_string()).await?;
                }
                // The chat moved while the call waited for its turn.
                (ErrorKind::Withdrawn, _) if !moved && job.progress.still_allowed() => {
                    moved = true;
                    let to = self.written_to(job.target);
                    self.follow(job, &to).await?;
                }
                _ => return Err(self.outcome(error, &job.spot)),
            }
        }
    }

    async fn write_once(
        &self,
        job: &Job<'_>,
        part: &Part,
        old: Option<&str>,
        plain: bool,
    ) -> Result<String, ApiError> {
        let (spot, may) = (&job.spot, || self.may_still(job));
        let text = if plain { &part.source } else { &part.text };
        let mut asked = json!({ "chat_id": spot.chat(), "text": text });
        self.about_to_write(&spot.chat_id, text).await;
        if !plain && !part.entities.is_empty() {
            asked["entities"] = json!(part.entities);
        }
        if let Some(message_id) = old {
            asked["message_id"] = json!(message_number(message_id));
            return match self.api.write::<Value>("editMessageText", &asked, may).await {
                Err(error) if !error.why.contains("message is not modified") => Err(error),
                _ => Ok(message_id.to_owned()),
            };
        }
        // Messages of before a move are not there.
        if let Some(message_id) = job.reply_to.filter(|_| !spot.moved) {
            // What is answered may be deleted by now.
            asked["reply_parameters"] =
                json!({ "message_id": message_id, "allow_sending_without_reply": true });
        }
        if let Some(keyboard) = &job.keyboard {
            asked["reply_markup"] = keyboard.clone();
        }
        let written: Written = self.api.write("sendMessage", &spot.in_topic(asked), may).await?;
        Ok(written.message_id.to_string())
    }

    async fn keep_pieces(&self, job: &Job<'_>, message_id: &str, pieces: &[String]) {
        let records = &*self.ports.records;
        if !self.account.keep_pieces(records, &job.spot.chat_id, message_id, pieces).await {
            tracing::error!(bot = %self.config.name, "which messages belong together could not be written down");
        }
    }

    /// What a failed call means for the delivery.
    pub(super) fn outcome(&self, error: ApiError, spot: &Spot) -> Outcome {
        let ApiError { mut kind, mut why } = error;
        if let ErrorKind::Limited { after, .. } = kind {
            let (reach, after) = self.floods.reach(&spot.chat_id, after, clock::mono());
            (kind, why) = (ErrorKind::Limited { after, reach }, "Telegram wants a pause".into());
        }
        self.account.outcome(ApiError::new(kind, api::explained(why)))
    }
}

/// A message id as Telegram writes them.
fn message_number(message_id: &str) -> Option<i64> {
    message_id.parse().ok().filter(|number| *number > 0)
}

/// What it means that the store could not be asked: nothing was sent.
fn store_failed(error: &Error) -> Outcome {
    ApiError::unavailable(error.to_string()).outcome()
}

/// Whom Telegram asked to wait last. It does not say whether a pause is for
/// the chat or for the bot: two chats that may go on at the same moment mean
/// the bot.
#[derive(Default)]
pub(super) struct Floods(Mutex<Option<Flood>>);

struct Flood {
    chat_id: String,
    at: Mono,
    until: Mono,
}

impl Floods {
    /// What has to wait now that a call for `chat_id` was too many, and how long.
    pub(super) fn reach(&self, chat_id: &str, after: Duration, now: Mono) -> (Reach, Duration) {
        let mut last = self.0.lock();
        let until = now + after;
        let other = last.as_ref().filter(|flood| {
            flood.chat_id != chat_id
                && now.since(flood.at) < SAME_FLOOD
                && flood.until.since(until).max(until.since(flood.until)) <= SAME_END
        });
        let found = match other {
            Some(flood) => (Reach::Bot, after.min(flood.until.since(now))),
            None => (Reach::Chat, after),
        };
        *last = Some(Flood { chat_id: chat_id.to_owned(), at: now, until });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn two_chats_that_may_go_on_together_mean_the_bot() {
        let (floods, seconds) = (Floods::default(), Duration::from_secs);
        assert_eq!(floods.reach("5", seconds(30), at(0)), (Reach::Chat, seconds(30)));
        assert_eq!(floods.reach("5", seconds(29), at(1)), (Reach::Chat, seconds(29)));
        assert_eq!(floods.reach("6", seconds(29), at(2)), (Reach::Bot, seconds(28)), "until 30 and 31");
        assert_eq!(floods.reach("7", seconds(28), at(60)), (Reach::Chat, seconds(28)), "another flood");
    }

    #[test]
    fn two_chats_with_pauses_of_their_own_do_not_stop_the_bot() {
        let (floods, seconds) = (Floods::default(), Duration::from_secs);
        assert_eq!(floods.reach("5", seconds(30), at(0)), (Reach::Chat, seconds(30)));
        assert_eq!(floods.reach("6", seconds(3600), at(1)), (Reach::Chat, seconds(3600)), "slow mode");
        assert_eq!(floods.reach("5", seconds(27), at(2)), (Reach::Chat, seconds(27)));
    }
}
