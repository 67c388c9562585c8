//! An agent's `send` and `edit`, as calls of Discord's API.

use super::api::{Call, Method};
use super::api_error::{ApiError, code};
use super::descriptor::MAX_MESSAGE_CHARS;
use super::pieces::{Pieces, nonce, parts};
use super::platform::NONCE_LIFE;
use super::{Discord, address, press};
use crate::ingress::STORE_AGAIN;
use crate::kit::{NO_FILE, refused};
use crate::platform::{Delivery, Earlier, Outcome, Progress, Reach};
use angelia_contract::action::Action;
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Result};
use angelia_core::fail;
use angelia_core::prompts::{self, Choice};
use angelia_core::secret::random_hex;
use angelia_core::store::{ActionId, DirectoryStore};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the further messages of a text are tried for, once the first is out:
/// an agent waits for the whole, and what it says next waits with it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Where the store keeps what its nonces begin with, beside the positions of streams.
const NONCE: &str = "nonce";

#[derive(Deserialize)]
pub(super) struct Posted {
    pub(super) id: String,
    #[serde(default)]
    content: Option<String>,
}

impl Posted {
    /// Whether it shows this. Discord trims what it is given.
    pub(super) fn shows(&self, text: &str) -> bool {
        let letters = |text: &str| text.chars().filter(|char| !char.is_whitespace()).collect::<String>();
        self.content.as_ref().is_none_or(|content| letters(content) == letters(text))
    }
}

impl Discord {
    /// Performs an action in the channel it was checked for.
    pub(super) async fn perform(&self, delivery: Delivery, channel: &str) -> Outcome {
        let Delivery { id, action, answer, earlier, progress, file, .. } = delivery;
        // What nonces begin with: the same for all of a store's life, another for every
        // store. One that was made anew counts its actions from the start while Discord
        // still remembers what the old one said.
        let prefix = self.nonce.get(&*self.ports.records, &self.account.key, NONCE, random_hex::<4>);
        let work = match prefix.await {
            Ok(prefix) => Work { discord: self, channel, prefix, id, earlier, progress: &*progress },
            Err(error) => return store_failed(&error),
        };
        let done = match (action, &answer) {
            (Action::Send { content, .. }, Some(answer)) => work.answer(&content, answer).await,
            (Action::Send { content, reply_to, .. }, None) => work.send(&content, reply_to.as_deref()).await,
            (Action::Prompt { content, reply_to, options, .. }, _) => {
                work.ask(&content, reply_to.as_deref(), &prompts::choices(&options)).await
            }
            (Action::SendMedia { content, reply_to, .. }, _) => match file {
                Some(file) => work.show_file(&file, &content, reply_to.as_deref()).await,
                None => Err(refused(NO_FILE)),
            },
            (Action::Delete { message_id, .. }, _) => work.delete(&message_id).await,
            (Action::ThreadCreate { thread_name, message_id, .. }, _) => {
                fail::point("action_sending");
                let may = || work.progress.still_allowed();
                let opened = self.open_below(channel, &thread_name, message_id.as_deref(), may).await;
                opened.map(|opened| opened.thread_id)
            }
            (Action::ThreadRename { thread_name, .. }, _) => {
                let renamed = self.rename(channel, &thread_name, || work.progress.still_allowed()).await;
                renamed.map(|()| channel.to_owned())
            }
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
        self.api.call(post(channel, &text, None, reply_to)).await.map(drop)
    }
}

/// One action under way.
pub(super) struct Work<'a> {
    pub(super) discord: &'a Discord,
    pub(super) channel: &'a str,
    prefix: &'a str,
    id: ActionId,
    pub(super) earlier: Earlier,
    pub(super) progress: &'a dyn Progress,
}

impl Work<'_> {
    /// Posts a text; answers the first message's id.
    pub(super) async fn send(&self, text: &str, reply_to: Option<&str>) -> Result<String, Outcome> {
        let mut parts = parts(text).into_iter();
        let first = parts.next().ok_or_else(|| refused("there is no text to send"))?;
        fail::point("action_sending");
        let message_id = self.post_first(&first, reply_to, None).await?;
        self.discord.sent.note(&*message_id, &first);
        self.progress.first_part(&message_id);
        let mut pieces = self.pieces_so_far(&message_id, parts.len()).await;
        for text in parts.skip(pieces.len()) {
            pieces.show(pieces.len() + 1, &text).await?;
        }
        Ok(message_id)
    }

    /// Posts a question with its buttons.
    async fn ask(&self, text: &str, reply_to: Option<&str>, choices: &[Choice]) -> Result<String, Outcome> {
        let [text] = &parts(text)[..] else {
            return Err(refused("the question is too long for one message with buttons"));
        };
        fail::point("action_sending");
        let buttons = press::components(self.id, choices);
        Ok(self.post_first(text, reply_to, Some(&buttons)).await?)
    }

    /// The further pieces that an earlier attempt at this text has posted. Where the
    /// store does not tell, they are found by their nonces while Discord knows those.
    pub(super) async fn pieces_so_far<'a>(&'a self, first: &'a str, wanted: usize) -> Pieces<'a> {
        let Discord { ports, account, .. } = self.discord;
        let mut ids = match wanted {
            0 => Vec::new(),
            _ => ports.records.pieces(&account.key, self.channel, first).await.unwrap_or_default(),
        };
        ids.truncate(wanted);
        Pieces::new(self, first, ids)
    }

    async fn post_first(
        &self,
        text: &str,
        reply_to: Option<&str>,
        buttons: Option<&Value>,
    ) -> Result<String, ApiError> {
        let post = |reply_to: Option<&str>| {
            let post = self.post_with_own_nonce(text, reply_to);
            buttons.into_iter().fold(post, |post, buttons| post.with("components", buttons.clone()))
        };
        self.post_answering(reply_to, post).await
    }

    /// Makes the call that posts the first message, as an answer to another one; without that where
    /// Discord does not let it answer that one: what is said is worth more than what it refers to.
    pub(super) async fn post_answering(
        &self,
        reply_to: Option<&str>,
        post: impl Fn(Option<&str>) -> Call,
    ) -> Result<String, ApiError> {
        let mut answer = self.call(post(reply_to)).await;
        let about_reference =
            |failure: &ApiError| failure.is(code::INVALID_FORM) || failure.is(code::CANNOT_READ_ANSWERED);
        if reply_to.is_some() && answer.as_ref().is_err_and(about_reference) {
            self.may_go_on().await?;
            answer = self.call(post(None)).await;
        }
        posted(&answer?).map(|posted| posted.id)
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
        let mut pieces = Pieces::new(self, message_id, known.map_err(|error| store_failed(&error))?);
        fail::point("action_sending");
        if !self.discord.sent.shows(message_id, &parts[0]) {
            self.show(message_id, &parts[0], None).await?;
        }
        self.progress.first_part(message_id);
        for (part, text) in parts.iter().enumerate().skip(1) {
            pieces.show(part, text).await?;
        }
        pieces.truncate(parts.len() - 1).await?;
        Ok(message_id.to_owned())
    }

    /// Takes a message and its further pieces away. One that is gone is all that was wanted.
    async fn delete(&self, message_id: &str) -> Result<String, Outcome> {
        if address::snowflake(message_id).is_none() {
            return Err(refused("there is no such message of yours in this chat"));
        }
        let Discord { ports, account, sent, .. } = self.discord;
        let known = ports.records.pieces(&account.key, self.channel, message_id).await;
        let mut pieces = Pieces::new(self, message_id, known.map_err(|error| store_failed(&error))?);
        fail::point("action_sending");
        sent.forget(message_id);
        match self.call(Call::new(Method::Delete, self.message_path(message_id))).await {
            Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => {}
            done => drop(done?),
        }
        pieces.truncate(0).await?;
        Ok(message_id.to_owned())
    }

    /// Makes a message show a text; `until` then that is tried, where the beginning is out.
    pub(super) async fn show(
        &self,
        message_id: &str,
        text: &str,
        until: Option<Mono>,
    ) -> Result<(), ApiError> {
        self.discord.sent.forget(message_id);
        let body = json!({ "content": text, "allowed_mentions": { "parse": [] } });
        let call = Call::new(Method::Patch, self.message_path(message_id)).json(body);
        match until {
            None => self.call(call).await?,
            Some(until) => self.call_patiently(call, until).await?,
        };
        self.discord.sent.note(message_id, text);
        Ok(())
    }

    /// A call after the first: what Discord asks to wait for is waited for here,
    /// because the beginning is out already. What may have been done is not done
    /// again when its nonce may be forgotten, or if it has none.
    pub(super) async fn call_patiently(&self, call: Call, until: Mono) -> Result<Vec<u8>, ApiError> {
        let (mut begun, mut doubt) = (None, None);
        loop {
            self.may_go_on().await?;
            let known_until = *begun.get_or_insert_with(clock::mono) + NONCE_LIFE;
            let is_late = || doubt.is_some() && clock::mono() >= known_until;
            let may = || !is_late() && self.progress.still_allowed();
            let failure = match self.discord.api.call_if(call.clone(), may).await {
                Err(ApiError::Withdrawn) if is_late() => return Err(doubt.unwrap_or(ApiError::Withdrawn)),
                Err(failure) => failure,
                done => return done,
            };
            let pause = failure.pause();
            match Outcome::from(failure.clone()) {
                // Nobody else shall call into it meanwhile.
                Outcome::Later { reach, .. } => self.progress.pause(reach, pause),
                Outcome::Unknown { .. } if !call.is_once() => doubt = Some(failure.clone()),
                _ => return Err(failure),
            }
            if pause >= until.since(clock::mono()) {
                return Err(doubt.unwrap_or(failure));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// To be asked before every call but the first.
    async fn may_go_on(&self) -> Result<(), ApiError> {
        self.progress.next_call().await.then_some(()).ok_or(ApiError::Withdrawn)
    }

    /// Makes a call, if its sender may still write there when its turn comes.
    pub(super) async fn call(&self, call: Call) -> Result<Vec<u8>, ApiError> {
        self.discord.api.call_if(call, || self.progress.still_allowed()).await
    }

    pub(super) fn post_with_own_nonce(&self, text: &str, reply_to: Option<&str>) -> Call {
        post(self.channel, text, Some(nonce(self.prefix, self.id)), reply_to)
    }

    pub(super) fn message_path(&self, message_id: &str) -> String {
        format!("channels/{}/messages/{message_id}", self.channel)
    }
}

/// The call that posts a text: nobody is pinged by what an agent writes, and
/// the same nonce posts it once.
pub(super) fn post(channel: &str, text: &str, nonce: Option<String>, reply_to: Option<&str>) -> Call {
    let mut body = json!({ "content": text, "allowed_mentions": { "parse": [], "replied_user": false } });
    if let Some(nonce) = nonce {
        body["nonce"] = nonce.into();
        body["enforce_nonce"] = true.into();
    }
    // What opened a thread has its id, and is in the channel above: it cannot be answered there.
    let is_here = |id: &&str| *id != channel && address::snowflake(id).is_some();
    if let Some(answered) = reply_to.filter(is_here) {
        // The answer survives what it answers.
        body["message_reference"] = json!({ "message_id": answered, "fail_if_not_exists": false });
    }
    Call::new(Method::Post, format!("channels/{channel}/messages")).json(body)
}

pub(super) fn posted(answer: &[u8]) -> Result<Posted, ApiError> {
    serde_json::from_slice(answer).map_err(|_| ApiError::Unreadable)
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
