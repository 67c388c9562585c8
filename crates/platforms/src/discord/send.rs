//! An agent's actions, as calls.

use super::api_error::{ApiError, code};
use super::descriptor::MAX_MESSAGE_CHARS;
use super::pieces::{Step, nonce, parts, piece_nonce, plan};
use super::platform::NONCE_LIFE;
use super::rest::Call;
use super::{Discord, address};
use crate::ingress::STORE_AGAIN;
use crate::kit::refused;
use crate::platform::{Delivery, Outcome, Progress, Reach};
use angelia_contract::action::Action;
use angelia_core::error::{Error, Result};
use angelia_core::store::{ActionId, DirectoryStore};
use angelia_core::{clock, fail};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// How long the further messages of a text are tried for, once the first is out:
/// an agent waits for the whole, and what it says next waits with it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How often a piece is posted whose nonce Discord knows from one that is gone.
const MAX_ANEW: u32 = 3;

#[derive(Deserialize)]
pub(super) struct Posted {
    pub(super) id: String,
    #[serde(default)]
    content: Option<String>,
}

impl Posted {
    /// Whether it shows this. Discord trims what it is given.
    fn shows(&self, text: &str) -> bool {
        let letters = |text: &str| text.chars().filter(|char| !char.is_whitespace()).collect::<String>();
        self.content.as_ref().is_none_or(|content| letters(content) == letters(text))
    }
}

impl Discord {
    /// Performs an action in the channel it was checked for.
    pub(super) async fn perform(&self, delivery: Delivery, channel: &str) -> Outcome {
        let Delivery { id, action, answer, earlier, progress, .. } = delivery;
        let work = match self.nonce_prefix().await {
            Ok(prefix) => Work { discord: self, channel, prefix, id, progress: &*progress },
            Err(error) => return store_failed(&error),
        };
        let done = match (action, &answer) {
            (Action::Send { content, .. }, Some(answer)) => work.answer(&content, answer, earlier).await,
            (Action::Send { content, reply_to, .. }, None) => work.send(&content, reply_to.as_deref()).await,
            (Action::Edit { message_id, content, .. }, _) => work.edit(&message_id, &content).await,
            (other, _) => Err(refused(format!("Discord has no {:?} here", other.op()))),
        };
        match done {
            Ok(message_id) => Outcome::Sent { message_id, recorded: false },
            Err(outcome) => outcome,
        }
    }

    /// Says something of the connector's own. Tried once.
    pub(super) async fn say(
        &self,
        channel: &str,
        text: &str,
        reply_to: Option<&str>,
    ) -> Result<(), ApiError> {
        let text: String = text.chars().take(MAX_MESSAGE_CHARS as usize).collect();
        self.rest.call(post(channel, &text, None, reply_to)).await.map(drop)
    }
}

/// One action under way.
pub(super) struct Work<'a> {
    pub(super) discord: &'a Discord,
    channel: &'a str,
    prefix: &'a str,
    id: ActionId,
    pub(super) progress: &'a dyn Progress,
}

impl Work<'_> {
    /// Posts a text; answers the first message's id.
    pub(super) async fn send(&self, text: &str, reply_to: Option<&str>) -> Result<String, Outcome> {
        let mut parts = parts(text).into_iter();
        let first = parts.next().ok_or_else(|| refused("there is no text to send"))?;
        fail::point("action_sending");
        let message_id = self.post_first(&first, reply_to).await?;
        self.discord.sent.note(&*message_id, &first);
        self.progress.first_part(&message_id);
        let until = clock::mono() + PATIENCE;
        let mut pieces = self.pieces_so_far(&message_id, parts.len()).await;
        let posted = pieces.len();
        for (index, text) in parts.enumerate().skip(posted) {
            pieces.push(self.post_further(&message_id, index + 1, &text, until).await?);
            self.keep(&message_id, &pieces).await;
        }
        Ok(message_id)
    }

    /// The further pieces that an earlier attempt at this text has posted. Where the
    /// store does not tell, they are found by their nonces while Discord knows those.
    pub(super) async fn pieces_so_far(&self, message_id: &str, wanted: usize) -> Vec<String> {
        let Discord { ports, account, .. } = self.discord;
        if wanted == 0 {
            return Vec::new();
        }
        let pieces = ports.records.pieces(&account.key, self.channel, message_id).await.unwrap_or_default();
        pieces.into_iter().take(wanted).collect()
    }

    async fn post_first(&self, text: &str, reply_to: Option<&str>) -> Result<String, Outcome> {
        let mut answer = self.call(self.post_with_own_nonce(text, reply_to)).await;
        let about_reference =
            |failure: &ApiError| failure.is(code::INVALID_FORM) || failure.is(code::CANNOT_READ_ANSWERED);
        if reply_to.is_some() && answer.as_ref().is_err_and(about_reference) {
            // What is said is worth more than what it refers to.
            self.may_go_on().await?;
            answer = self.call(self.post_with_own_nonce(text, None)).await;
        }
        posted(&answer.map_err(|failure| failure.outcome())?).map(|posted| posted.id)
    }

    /// Makes a message and its further pieces show a text.
    async fn edit(&self, message_id: &str, text: &str) -> Result<String, Outcome> {
        if address::snowflake(message_id).is_none() {
            return Err(refused("there is no such message of yours in this chat"));
        }
        let parts = parts(text);
        if parts.is_empty() {
            return Err(refused("there is no text to show"));
        }
        let Discord { ports, account, .. } = self.discord;
        let known = ports.records.pieces(&account.key, self.channel, message_id).await;
        let mut pieces = known.map_err(|error| store_failed(&error))?;
        fail::point("action_sending");
        let until = clock::mono() + PATIENCE;
        for step in plan(message_id, &pieces, parts) {
            match step {
                Step::Edit { part: 0, text, .. } => {
                    self.edit_first(message_id, &text).await?;
                    self.progress.first_part(message_id);
                }
                Step::Edit { part, message_id: piece, text } => {
                    if let Some(instead) = self.edit_further(message_id, part, &piece, &text, until).await? {
                        pieces[part - 1] = instead;
                        self.keep(message_id, &pieces).await;
                    }
                }
                Step::Post { part, text } => {
                    pieces.push(self.post_further(message_id, part, &text, until).await?);
                    self.keep(message_id, &pieces).await;
                }
                Step::Delete { part, message_id: piece } => {
                    self.delete(&piece, until).await?;
                    self.discord.gone.note(message_id, part);
                    pieces.retain(|known| *known != piece);
                    self.keep(message_id, &pieces).await;
                }
            }
        }
        Ok(message_id.to_owned())
    }

    async fn edit_first(&self, message_id: &str, text: &str) -> Result<(), Outcome> {
        let Discord { sent, .. } = self.discord;
        if sent.shows(message_id, text) {
            return Ok(());
        }
        sent.forget(message_id);
        self.call(self.patch(message_id, text)).await.map_err(|failure| failure.outcome())?;
        sent.note(message_id, text);
        Ok(())
    }

    /// Edits a further piece; one that somebody deleted is posted anew, and its id answered.
    async fn edit_further(
        &self,
        first: &str,
        part: usize,
        piece: &str,
        text: &str,
        until: clock::Mono,
    ) -> Result<Option<String>, Outcome> {
        let Discord { sent, gone, .. } = self.discord;
        if sent.shows(piece, text) {
            return Ok(None);
        }
        sent.forget(piece);
        match self.further(self.patch(piece, text), until).await? {
            Ok(_) => {
                sent.note(piece, text);
                Ok(None)
            }
            Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => {
                gone.note(first, part);
                self.post_further(first, part, text, until).await.map(Some)
            }
            Err(failure) => Err(failure.outcome()),
        }
    }

    /// Posts the `part`-th piece of the text that begins with `first`. One that an
    /// earlier attempt posted, of which nobody here knows, is found by its nonce
    /// and shows this text from then on.
    async fn post_further(
        &self,
        first: &str,
        part: usize,
        text: &str,
        until: clock::Mono,
    ) -> Result<String, Outcome> {
        let posted = self.post_piece(first, part, text, until).await?;
        posted.map_err(|failure| failure.outcome())
    }

    /// The same; tells what Discord refused it with.
    pub(super) async fn post_piece(
        &self,
        first: &str,
        part: usize,
        text: &str,
        until: clock::Mono,
    ) -> Result<Result<String, ApiError>, Outcome> {
        let Discord { sent, gone, .. } = self.discord;
        for _ in 0..MAX_ANEW {
            let nonce = piece_nonce(first, part, gone.times(first, part));
            let posted = match self.further(post(self.channel, text, Some(nonce), None), until).await? {
                Ok(answer) => posted(&answer)?,
                Err(failure) => return Ok(Err(failure)),
            };
            if !posted.shows(text) {
                match self.further(self.patch(&posted.id, text), until).await? {
                    Ok(_) => {}
                    Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => {
                        gone.note(first, part);
                        continue;
                    }
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            sent.note(&*posted.id, text);
            return Ok(Ok(posted.id));
        }
        Err(Outcome::Unknown { why: "Discord names a message that is not there".into() })
    }

    async fn delete(&self, piece: &str, until: clock::Mono) -> Result<(), Outcome> {
        self.discord.sent.forget(piece);
        let call = Call::delete(format!("channels/{}/messages/{piece}", self.channel));
        match self.further(call, until).await? {
            Ok(_) => Ok(()),
            // It is gone, which is all that was wanted.
            Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => Ok(()),
            Err(failure) => Err(failure.outcome()),
        }
    }

    /// A call after the first: what Discord asks to wait for is waited for here,
    /// because the beginning is out already. An outer error ends the action. What
    /// may have been done is not done again when its nonce may be forgotten, or if
    /// it has none.
    pub(super) async fn further(
        &self,
        call: Call,
        until: clock::Mono,
    ) -> Result<Result<Vec<u8>, ApiError>, Outcome> {
        let (mut begun, mut doubt) = (None, None);
        loop {
            self.may_go_on().await?;
            let known_until = *begun.get_or_insert_with(clock::mono) + NONCE_LIFE;
            let is_late = || doubt.is_some() && clock::mono() >= known_until;
            let may = || !is_late() && self.progress.still_allowed();
            let failure = match self.discord.rest.call_if(call.clone(), may).await {
                Err(ApiError::Withdrawn) if is_late() => None,
                Err(unknown @ (ApiError::Unknown { .. } | ApiError::Unreadable)) if call.is_once() => {
                    return Ok(Err(unknown));
                }
                Err(failure) if !matches!(failure, ApiError::Refused { .. } | ApiError::Withdrawn) => {
                    Some(failure)
                }
                done => return Ok(done),
            };
            let pause = failure.as_ref().map_or(Duration::MAX, ApiError::pause);
            let outcome = failure.map(|failure| failure.outcome());
            match &outcome {
                Some(Outcome::Unknown { .. }) => doubt = outcome.clone(),
                // Nobody else shall call into it meanwhile.
                Some(Outcome::Later { reach, .. }) => self.progress.pause(*reach, pause),
                _ => {}
            }
            if pause >= until.since(clock::mono()) {
                return Err(doubt.or(outcome).unwrap_or_else(|| ApiError::Withdrawn.outcome()));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// To be asked before every call but the first.
    pub(super) async fn may_go_on(&self) -> Result<(), Outcome> {
        match self.progress.next_call().await {
            true => Ok(()),
            false => Err(ApiError::Withdrawn.outcome()),
        }
    }

    /// Makes a call, if its sender may still write there when its turn comes.
    pub(super) async fn call(&self, call: Call) -> Result<Vec<u8>, ApiError> {
        self.discord.rest.call_if(call, || self.progress.still_allowed()).await
    }

    pub(super) fn post_with_own_nonce(&self, text: &str, reply_to: Option<&str>) -> Call {
        post(self.channel, text, Some(nonce(self.prefix, self.id)), reply_to)
    }

    fn patch(&self, message_id: &str, text: &str) -> Call {
        let body = json!({ "content": text, "allowed_mentions": { "parse": [] } });
        Call::patch(format!("channels/{}/messages/{message_id}", self.channel), body)
    }

    /// Notes the further pieces. Should that fail, a later edit finds them by their
    /// nonces for as long as Discord knows those, and afterwards leaves them behind:
    /// `false`.
    pub(super) async fn keep(&self, message_id: &str, pieces: &[String]) -> bool {
        let Discord { ports, account, .. } = self.discord;
        account.keep_pieces(&*ports.records, self.channel, message_id, pieces).await
    }
}

/// The call that posts a text: nobody is pinged by what an agent writes, and
/// the same nonce posts it once.
fn post(channel: &str, text: &str, nonce: Option<String>, reply_to: Option<&str>) -> Call {
    let mut body = json!({ "content": text, "allowed_mentions": { "parse": [], "replied_user": false } });
    if let Some(nonce) = nonce {
        body["nonce"] = nonce.into();
        body["enforce_nonce"] = true.into();
    }
    if let Some(answered) = reply_to.filter(|id| address::snowflake(id).is_some()) {
        // The answer survives what it answers.
        body["message_reference"] = json!({ "message_id": answered, "fail_if_not_exists": false });
    }
    Call::post(format!("channels/{channel}/messages"), Some(body))
}

pub(super) fn posted(answer: &[u8]) -> Result<Posted, Outcome> {
    serde_json::from_slice(answer).map_err(|_| ApiError::Unreadable.outcome())
}

/// What a failure of the store means: nothing was sent.
fn store_failed(error: &Error) -> Outcome {
    let why = format!("the connector's store does not answer: {error}");
    Outcome::Later { after: STORE_AGAIN, reach: Reach::Action, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_discord_trims_is_still_shown() {
        let shows = |content: Option<&str>, text: &str| {
            Posted { id: "1".into(), content: content.map(str::to_owned) }.shows(text)
        };
        assert!(shows(Some("a b"), " a b\n") && shows(None, "a"));
        assert!(!shows(Some("a"), "a b"));
    }
}
