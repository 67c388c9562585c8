//! An agent's actions, as messages.

use super::Telegram;
use super::api::{self, Failure};
use super::locate::Spot;
use super::pieces::{self, Step};
use super::render::{self, Part};
use super::sent_messages::{echoes, print};
use crate::kit::refused;
use crate::platform::{Delivery, Outcome, Progress, Reach};
use angelia_contract::action::Action;
use angelia_core::clock::{self, Mono};
use angelia_core::egress::Target;
use angelia_core::error::Error;
use angelia_core::fail;
use angelia_core::store::DirectoryStore;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// How soon something that was certainly not done is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the rest of a text that has begun to appear is tried for: as long
/// as an action lives. Nobody else can finish it.
const REST_WITHIN: Duration = Duration::from_secs(600);

const STAYED: &str = "the message stayed in the group that this supergroup was before; send a new one";

/// What Telegram answers to a message it took.
#[derive(Deserialize)]
pub(super) struct Written {
    message_id: i64,
}

/// One delivery under way.
struct Job<'a> {
    progress: &'a dyn Progress,
    /// What was authorized.
    target: &'a Target,
    /// Where it is written.
    spot: Spot,
    /// Whether it changes messages, which do not move with their chat.
    edits: bool,
    /// Whether the call that was granted with the delivery is made.
    called: bool,
}

impl Job<'_> {
    /// Waits for leave to call. The first call has it already.
    async fn turn(&mut self) -> Result<(), Outcome> {
        if self.called && !self.progress.next_call().await {
            return Err(refused("its sender may not write there any more"));
        }
        self.called = true;
        Ok(())
    }
}

/// The message that shows a text.
enum Aim<'a> {
    New { reply_to: Option<i64> },
    Old(&'a str),
}

impl Telegram {
    /// Performs a `send` or `edit`.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { target, action, progress, .. } = delivery;
        let spot = match self.spot(&target).await {
            Ok(Some(spot)) => spot,
            Ok(None) => return refused("this is not a chat"),
            Err(error) => return store_failed(&error),
        };
        // By the old id, only what was sent since the move is a message here.
        if let Action::Edit { message_id, .. } = &action
            && spot.moved
            && !self.moves.was_sent(&target.chat_id, message_id)
        {
            return refused(STAYED);
        }
        let edits = matches!(action, Action::Edit { .. });
        let mut job = Job { progress: &*progress, target: &target, spot, edits, called: false };
        let done = match action {
            Action::Send { content, reply_to, .. } => self.say(&mut job, &content, reply_to.as_deref()).await,
            Action::Edit { message_id, content, .. } => self.rewrite(&mut job, message_id, &content).await,
            other => Err(refused(format!("Telegram has no {:?} here", other.op()))),
        };
        let sent = done.map(|message_id| Outcome::Sent { message_id, recorded: false });
        sent.unwrap_or_else(|outcome| outcome)
    }

    async fn say(&self, job: &mut Job<'_>, text: &str, reply_to: Option<&str>) -> Result<String, Outcome> {
        let parts = render::render(text);
        let Some((first, rest)) = parts.split_first() else {
            return Err(refused("there is no text to send"));
        };
        // What is no message id of this chat cannot be answered; the text counts more.
        let reply_to = reply_to.and_then(message_number).filter(|_| !job.spot.moved);
        let message_id = self.write(job, first, Aim::New { reply_to }).await?;
        if job.spot.moved {
            self.moves.sent(&job.target.chat_id, &message_id);
        }
        if rest.is_empty() {
            return Ok(message_id);
        }
        // From here on nobody else can finish it.
        job.progress.first_part(&message_id);
        let (until, began_in) = (clock::mono() + REST_WITHIN, job.spot.chat_id.clone());
        let mut pieces = Vec::with_capacity(rest.len());
        for part in rest {
            pieces.push(self.write_patiently(job, part, until).await?);
            // Across a move they do not belong together any more.
            if job.spot.chat_id == began_in {
                self.keep_pieces(&job.spot, &message_id, &pieces).await;
            }
        }
        Ok(message_id)
    }

    /// Changes a message and its further pieces. What is done already is not
    /// done again, so the whole can be tried again at any point.
    async fn rewrite(&self, job: &mut Job<'_>, message_id: String, text: &str) -> Result<String, Outcome> {
        if message_number(&message_id).is_none() {
            return Err(refused("there is no such message in this chat"));
        }
        let parts = render::render(text);
        if parts.is_empty() {
            return Err(refused("there is no text to show"));
        }
        let kept = self.ports.records.pieces(&self.account.key, &job.spot.chat_id, &message_id).await;
        let mut pieces = kept.map_err(|error| store_failed(&error))?;
        for step in pieces::plan(&message_id, &pieces, parts.len()) {
            match step {
                Step::Rewrite { message, part } => {
                    match self.change(job, &message, &parts[part]).await {
                        // Somebody deleted a further piece: what it has to show is said again.
                        Err(Outcome::Refused { why }) if part > 0 && api::is_gone(&why) => {
                            pieces[part - 1] =
                                self.write(job, &parts[part], Aim::New { reply_to: None }).await?;
                            self.keep_pieces(&job.spot, &message_id, &pieces).await;
                        }
                        changed => changed?,
                    }
                }
                Step::Add { part } => {
                    pieces.push(self.write(job, &parts[part], Aim::New { reply_to: None }).await?);
                    self.keep_pieces(&job.spot, &message_id, &pieces).await;
                }
                Step::Remove { message } => {
                    self.remove(job, &message).await?;
                    pieces.retain(|piece| *piece != message);
                    self.keep_pieces(&job.spot, &message_id, &pieces).await;
                }
            }
        }
        Ok(message_id)
    }

    /// Makes a message show a part, unless it does.
    async fn change(&self, job: &mut Job<'_>, message_id: &str, part: &Part) -> Result<(), Outcome> {
        let message = (job.spot.chat_id.clone(), message_id.to_owned());
        if self.sent.shows(&message, &print(part)) {
            return Ok(());
        }
        self.sent.forget(&message);
        self.write(job, part, Aim::Old(message_id)).await.map(drop)
    }

    async fn remove(&self, job: &mut Job<'_>, message_id: &str) -> Result<(), Outcome> {
        job.turn().await?;
        let asked = json!({ "chat_id": job.spot.chat(), "message_id": message_number(message_id) });
        let may = || self.may_still(job);
        match self.api.write::<Value>("deleteMessage", &asked, may).await {
            // One that is gone or too old to be taken away is let be.
            Ok(_) | Err(Failure::Refused(_)) => {
                self.sent.forget(&(job.spot.chat_id.clone(), message_id.to_owned()));
                Ok(())
            }
            Err(Failure::Migrated(to)) => {
                self.follow(job, &to).await?;
                Err(refused(STAYED))
            }
            Err(failure) => Err(self.outcome(failure, &job.spot)),
        }
    }

    /// Whether the sender may still write, and that is still where the job writes.
    fn may_still(&self, job: &Job<'_>) -> bool {
        job.progress.still_allowed() && self.written_to(job.target) == job.spot.chat_id
    }

    /// The chat has a new id: the job goes on there, unless it is about messages of the old one.
    async fn follow(&self, job: &mut Job<'_>, to: &str) -> Result<(), Outcome> {
        if self.written_to(job.target) != to {
            let done = self.move_chat(&job.spot.chat_id, to).await;
            done.map_err(|error| store_failed(&error))?;
        }
        job.spot.move_to(to);
        if job.edits { Err(refused(STAYED)) } else { Ok(()) }
    }

    /// Writes a part of a text whose beginning is out already: waits where
    /// Telegram wants that.
    async fn write_patiently(&self, job: &mut Job<'_>, part: &Part, until: Mono) -> Result<String, Outcome> {
        loop {
            match self.write(job, part, Aim::New { reply_to: None }).await {
                Err(Outcome::Later { after, reach, .. }) if clock::mono() + after < until => {
                    job.progress.pause(reach, after);
                    tokio::time::sleep(after).await;
                }
                written => return written,
            }
        }
    }

    /// Writes one message: with its styles, or as it was typed if Telegram does
    /// not take those; where the chat is, or where it has moved to.
    async fn write(&self, job: &mut Job<'_>, part: &Part, aim: Aim<'_>) -> Result<String, Outcome> {
        let (mut plain, mut moved) = (false, false);
        loop {
            job.turn().await?;
            fail::point("action_sending");
            match self.write_once(job, part, &aim, plain).await {
                Ok(message_id) => {
                    self.sent.note((job.spot.chat_id.clone(), message_id.clone()), &print(part));
                    return Ok(message_id);
                }
                Err(Failure::Refused(why)) if !plain && api::is_about_text(&why) => {
                    tracing::warn!(bot = %self.config.name, %why, "a text goes out plain");
                    self.account.health.count("sent_plain");
                    plain = true;
                }
                Err(Failure::Migrated(to)) if !moved => {
                    moved = true;
                    self.follow(job, &to).await?;
                }
                // The chat moved while the call waited for its turn.
                Err(Failure::Withdrawn) if !moved && job.progress.still_allowed() => {
                    moved = true;
                    let to = self.written_to(job.target);
                    self.follow(job, &to).await?;
                }
                Err(failure) => return Err(self.outcome(failure, &job.spot)),
            }
        }
    }

    async fn write_once(
        &self,
        job: &Job<'_>,
        part: &Part,
        aim: &Aim<'_>,
        plain: bool,
    ) -> Result<String, Failure> {
        let (spot, may) = (&job.spot, || self.may_still(job));
        let text = if plain { &part.source } else { &part.text };
        let mut asked = json!({ "chat_id": spot.chat(), "text": text });
        echoes().note(&spot.chat_id, text, clock::mono());
        if !plain && !part.entities.is_empty() {
            asked["entities"] = json!(part.entities);
        }
        let reply_to = match aim {
            Aim::New { reply_to } => reply_to.filter(|_| !spot.moved),
            Aim::Old(message_id) => {
                asked["message_id"] = json!(message_number(message_id));
                return match self.api.write::<Value>("editMessageText", &asked, may).await {
                    Err(Failure::Refused(why)) if !why.contains("message is not modified") => {
                        Err(Failure::Refused(why))
                    }
                    Ok(_) | Err(Failure::Refused(_)) => Ok((*message_id).to_owned()),
                    Err(failure) => Err(failure),
                };
            }
        };
        if let Some(thread) = spot.thread {
            asked["message_thread_id"] = thread.into();
        }
        if let Some(message_id) = reply_to {
            // What is answered may be deleted by now.
            asked["reply_parameters"] =
                json!({ "message_id": message_id, "allow_sending_without_reply": true });
        }
        let written: Written = self.api.write("sendMessage", &asked, may).await?;
        Ok(written.message_id.to_string())
    }

    async fn keep_pieces(&self, spot: &Spot, message_id: &str, pieces: &[String]) {
        let records = &*self.ports.records;
        if !self.account.keep_pieces(records, &spot.chat_id, message_id, pieces).await {
            tracing::error!(bot = %self.config.name, "which messages belong together could not be written down");
        }
    }

    /// What a failed call means for the delivery.
    fn outcome(&self, failure: Failure, spot: &Spot) -> Outcome {
        match failure {
            Failure::RetryAfter(after) => {
                self.account.health.count("floods");
                let (reach, after) = self.floods.reach(&spot.chat_id, after, clock::mono());
                Outcome::Later { after, reach, why: "Telegram wants a pause".into() }
            }
            Failure::Unavailable(why) => Outcome::Later { after: AGAIN, reach: Reach::Action, why },
            Failure::Unknown(why) => Outcome::Unknown { why },
            Failure::Refused(why) => refused(api::explained(&why)),
            failure => refused(failure.to_string()),
        }
    }
}

/// A message id as Telegram writes them.
pub(super) fn message_number(message_id: &str) -> Option<i64> {
    message_id.parse().ok().filter(|number| *number > 0)
}

/// What it means that the store could not be asked: nothing was sent.
fn store_failed(error: &Error) -> Outcome {
    Outcome::Later { after: AGAIN, reach: Reach::Action, why: error.to_string() }
}
