//! Answering somebody who waits: in the place of what says that the bot is
//! thinking, or behind it. Where that cannot be done any more it is said in the
//! chat like anything else, unless it may have been answered already.

use super::Discord;
use super::api::{Call, Method};
use super::api_error::{ApiError, code};
use super::descriptor::MAX_MESSAGE_CHARS;
use super::pieces::parts;
use super::platform::NONCE_LIFE;
use super::send::{PATIENCE, Work, posted};
use super::take_interaction::EPHEMERAL;
use crate::kit::refused;
use crate::platform::{Answer, Earlier, Outcome};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::vault::Way;
use serde_json::{Value, json};
use std::time::Duration;

/// How often and how soon an answer is tried again of which Discord says that
/// nobody waits: it can be faster than what tells Discord that it will come.
const SETTLE_TRIES: u32 = 6;
const SETTLE_AGAIN: Duration = Duration::from_millis(500);

const PERHAPS_ANSWERED: &str = "its interaction ended before it was known whether it was answered";
const PERHAPS_CUT_OFF: &str = "it is not known how much was said before the connector stopped";

impl Work<'_> {
    /// Answers; answers the first message's id.
    pub(super) async fn answer(&self, text: &str, answer: &Answer) -> Result<String, Outcome> {
        let parts = parts(text);
        let (first, rest) = parts.split_first().ok_or_else(|| refused("there is no text to send"))?;
        fail::point("action_sending");
        let until = clock::mono() + PATIENCE;
        let message_id = match self.answer_first(first, answer).await? {
            Some(message_id) => message_id,
            // In the chat it would perhaps be a second one.
            None if self.earlier != Earlier::Nothing => return Err(open(PERHAPS_ANSWERED)),
            None => self.say_instead(first, until).await?,
        };
        self.discord.sent.note(&*message_id, first);
        self.progress.first_part(&message_id);
        self.answer_rest(&message_id, rest, answer).await?;
        Ok(message_id)
    }

    /// Says the beginning; `None` if what answers is of no use any more.
    async fn answer_first(&self, text: &str, answer: &Answer) -> Result<Option<String>, Outcome> {
        if is_over(answer) {
            return Ok(None);
        }
        let failure = match self.once_settled(text, answer).await {
            Ok(body) => return Ok(Some(posted(&body)?.id)),
            Err(failure) => failure,
        };
        // Somebody deleted what said that the bot is thinking, or the answer itself.
        let is_deleted = answer.way == Way::Original && failure.is(code::UNKNOWN_MESSAGE);
        if is_deleted && self.earlier == Earlier::Nothing {
            self.answer_behind(text, answer).await
        } else if is_deleted || failure.is_over() {
            Ok(None)
        } else {
            Err(failure.into())
        }
    }

    /// Says it as soon as Discord knows that an answer comes. No clock tells when
    /// that is: ours may be ahead.
    async fn once_settled(&self, text: &str, answer: &Answer) -> Result<Vec<u8>, ApiError> {
        for _ in 0..SETTLE_TRIES {
            match self.call(call(answer, answer.way, said(text))).await {
                Err(early) if early.is(code::UNKNOWN_WEBHOOK) => tokio::time::sleep(SETTLE_AGAIN).await,
                done => return done,
            }
        }
        self.call(call(answer, answer.way, said(text))).await
    }

    /// Says the beginning where the place it should take is gone; `None` if that
    /// cannot be done either.
    async fn answer_behind(&self, text: &str, answer: &Answer) -> Result<Option<String>, Outcome> {
        match self.call(call(answer, Way::Further, said(text))).await {
            Ok(body) => posted(&body).map(|posted| Some(posted.id)).map_err(not_in_doubt),
            Err(gone) if gone.is_over() || gone.is(code::UNKNOWN_MESSAGE) => Ok(None),
            Err(failure) => Err(not_in_doubt(failure)),
        }
    }

    /// Says the beginning in the chat. What it answers is no message that could be
    /// referred to.
    async fn say_instead(&self, text: &str, until: Mono) -> Result<String, Outcome> {
        let said = self.call_patiently(self.post_with_own_nonce(text, None), until).await;
        said.and_then(|body| posted(&body)).map(|posted| posted.id).map_err(not_in_doubt)
    }

    /// Says the rest in the chat, where Discord knows each piece by its nonce; where
    /// the bot may not write there, behind the answer, where it knows nothing.
    async fn answer_rest(&self, first: &str, rest: &[String], answer: &Answer) -> Result<(), Outcome> {
        let mut pieces = self.pieces_so_far(first, rest.len()).await;
        let there = pieces.len();
        if there < rest.len() && matches!(self.earlier, Earlier::CutOff(since) if since >= NONCE_LIFE) {
            return Err(open(PERHAPS_CUT_OFF));
        }
        let (mut is_shut, mut is_noted) = (false, true);
        for text in &rest[there..] {
            let in_chat = if is_shut {
                None
            } else {
                match pieces.post(pieces.len() + 1, text).await {
                    Err(shut) if shut.is_shut() => None,
                    posted => Some(posted.map_err(|failure| once(failure, is_noted))?),
                }
            };
            is_shut = in_chat.is_none();
            let piece = match in_chat {
                Some(piece) => piece,
                None if matches!(self.earlier, Earlier::CutOff(_)) => return Err(open(PERHAPS_CUT_OFF)),
                None => {
                    // By the same credential.
                    let said = pieces.call(call(answer, Way::Further, said(text))).await;
                    let behind =
                        said.and_then(|body| posted(&body)).map_err(|failure| once(failure, false))?;
                    self.discord.sent.note(&*behind.id, text);
                    behind.id
                }
            };
            is_noted &= pieces.push(piece).await;
        }
        Ok(())
    }
}

impl Discord {
    /// Says something of the connector's own to somebody who waits. Tried once.
    pub(super) async fn tell_one_who_waits(&self, answer: &Answer, text: &str) -> Result<()> {
        let text: String = text.chars().take(MAX_MESSAGE_CHARS as usize).collect();
        let mut body = said(&text);
        if answer.way == Way::Further {
            // What was pressed stays as it is, and the others there do not wait.
            body["flags"] = EPHEMERAL.into();
        }
        let told = self.api.call(call(answer, answer.way, body)).await;
        told.map(drop).map_err(|failure| match (&failure, answer.way) {
            // It may have been told: not again.
            (ApiError::Unknown { .. }, Way::Further) => Error::internal(failure.why()),
            (ApiError::Limited { .. }, _) => Error::new(Kind::Unavailable, failure.why()),
            _ => failure.into(),
        })
    }
}

fn is_over(answer: &Answer) -> bool {
    clock::wall() >= answer.expires_at
}

fn open(why: &str) -> Outcome {
    Outcome::Open { why: why.into() }
}

/// What may have been said otherwise than in its place is not given to us again:
/// from the beginning it would be said in another way.
fn not_in_doubt(failure: ApiError) -> Outcome {
    match failure.into() {
        Outcome::Unknown { why } => Outcome::Open { why },
        known => known,
    }
}

/// The end of a text whose beginning is out. Only if all that is there `is_noted`
/// may the rest be tried later.
fn once(failure: ApiError, is_noted: bool) -> Outcome {
    match not_in_doubt(failure) {
        Outcome::Later { why, .. } if !is_noted => Outcome::Open { why },
        other => other,
    }
}

/// What a message says. Nobody is pinged by what an agent writes.
fn said(text: &str) -> Value {
    json!({ "content": text, "allowed_mentions": { "parse": [] } })
}

fn call(answer: &Answer, way: Way, body: Value) -> Call {
    let (method, then) = match way {
        Way::Original => (Method::Patch, "/messages/@original"),
        Way::Further => (Method::Post, "?wait=true"),
    };
    Call::new(method, "webhooks/").lent(answer.credential.clone(), then).json(body)
}
