//! Listening: who the bot is, and its updates, asked for one batch after the other.

use super::address::Me;
use super::api::{CALL_WITHIN, CONFLICT};
use super::parse::{Raw, Sender};
use super::{Ingest, STREAM, Telegram};
use crate::health::BotState;
use crate::ingress::{Halted, Ingress, STORE_AGAIN};
use crate::kit::{ApiError, ErrorKind};
use angelia_core::clock;
use angelia_core::limit::{Backoff, spread};
use angelia_core::secret::random_bytes;
use angelia_core::store::StreamStore;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The updates that are asked for; others are not for us, and Telegram keeps
/// the last choice for good.
pub(super) const KINDS: [&str; 6] =
    ["message", "edited_message", "channel_post", "edited_channel_post", "my_chat_member", "callback_query"];

/// How long Telegram holds a question for updates when there are none.
const HELD_FOR: Duration = Duration::from_secs(30);
/// Updates asked for at once: Telegram's most.
const BATCH: usize = 100;
/// Pause after an empty answer that was not held, so that it is not asked in circles.
const BREATH: Duration = Duration::from_millis(500);
/// The first and the longest pause while Telegram does not answer.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause while somebody else polls: each question cuts theirs off.
const LONGEST_CONFLICT: Duration = Duration::from_secs(60);

/// The longest pause before a bot that Telegram does not know asks again who it
/// is: @BotFather may have it back.
const LONGEST_STOP: Duration = Duration::from_secs(300);

const BAD_TOKEN: &str = "Telegram does not know this token: ask @BotFather for the bot's token (/mybots, API Token), \
put it into the configuration and restart; if it is right, the bot is asked for again every few minutes and comes back \
by itself";
const OTHER_POLLER: &str = "another program polls this bot: stop it, or take another token for one of the two \
(@BotFather, /revoke, makes the old token useless)";

/// A pause that grows up to `longest`.
pub(super) fn backoff(longest: Duration) -> Backoff {
    Backoff::new(LEAST_PAUSE, longest)
}

/// A bot at its ingress.
pub(super) struct Listener {
    pub(super) bot: Arc<Telegram>,
    pub(super) ingress: Ingress,
}

impl Listener {
    /// Listens until the ingress says stop.
    pub(super) async fn run(&self) {
        // Whoever listens first says whom to ask; it is the same for all.
        let _ = self.bot.admission.set(self.ingress.admission.clone());
        self.begin_anew().await;
        // Whatever ended it, nobody else listens before it is time.
        let _ = self.receive().await;
        self.ingress.stop.wait().await;
    }

    /// Another node may have read the bot since it was last read here: what was remembered of
    /// the last update is not known any more.
    async fn begin_anew(&self) {
        if self.bot.ports.shared {
            *self.bot.reading.lock().await = None;
            *self.bot.settled.lock().await = None;
        }
    }

    /// Waits, each time longer.
    pub(super) async fn wait(&self, backoff: &mut Backoff) -> Result<(), Halted> {
        self.ingress.stop.pause(spread(backoff.pause(), u64::from_ne_bytes(random_bytes()))).await
    }

    /// Asks who the bot is, and listens if it is the one that is configured.
    async fn receive(&self) -> Result<(), Halted> {
        let user: Sender = self.until_answered("getMe", &json!({}), ApiError::to_string).await?;
        if user.id.to_string() != self.bot.config.id {
            let why = format!(
                "the token belongs to bot {}, the configuration says {}: correct one of the two and restart",
                user.id, self.bot.config.id
            );
            tracing::error!(bot = %self.bot.config.name, %why, "a Telegram bot gave up");
            self.bot.account.health.stopped(why);
            return Ok(());
        }
        let me = Me { id: user.id, username: user.username.0.unwrap_or_default() };
        let me = self.bot.me.get_or_init(|| me);
        match self.bot.config.ingest {
            Ingest::Poll => self.poll(me).await,
            Ingest::Webhook => self.keep_webhook().await,
        }
    }

    /// Calls a method until Telegram does what it says; meanwhile tells of every failure.
    pub(super) async fn until_answered<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        tell: impl Fn(&ApiError) -> String,
    ) -> Result<T, Halted> {
        let mut backoff = backoff(LONGEST_PAUSE);
        loop {
            match self.ingress.stop.unless_halted(self.bot.api.call(method, body)).await? {
                Ok(answer) => return Ok(answer),
                Err(ApiError { kind: ErrorKind::Setup, .. }) => self.until_known().await?,
                Err(error) => {
                    self.fell_silent(&tell(&error));
                    self.wait(&mut backoff).await?;
                }
            }
        }
    }

    /// Telegram does not know the token: says so, and asks from time to time
    /// whether it does.
    async fn until_known(&self) -> Result<(), Halted> {
        tracing::error!(bot = %self.bot.config.name, why = BAD_TOKEN, "a Telegram bot stopped");
        self.bot.account.health.stopped(BAD_TOKEN);
        let mut backoff = backoff(LONGEST_STOP);
        loop {
            self.wait(&mut backoff).await?;
            if self.bot.api.call::<Sender>("getMe", &json!({})).await.is_ok() {
                tracing::info!(bot = %self.bot.config.name, "Telegram knows the bot again");
                return Ok(());
            }
        }
    }

    async fn poll(&self, me: &Me) -> Result<(), Halted> {
        let mut offset = self.position().await?;
        self.without_webhook().await?;
        let mut line = Line::default();
        loop {
            let asked_at = clock::mono();
            let updates = match self.ingress.stop.unless_halted(self.updates(offset, line.limit)).await? {
                Ok(updates) => updates,
                Err(error) => {
                    self.failed(error, &mut line).await?;
                    continue;
                }
            };
            self.bot.account.health.heard();
            let numbered = updates.iter().any(|update| update.id.is_some());
            let empty = updates.is_empty();
            if numbered || empty {
                line = Line::default();
            }
            // What comes next is what follows the last one, even if that
            // is less: after a week of silence numbers start anywhere.
            let next = next_offset(offset, &updates);
            self.take_all(me, updates.into()).await?;
            offset = next;
            if empty && clock::mono().since(asked_at) < BREATH {
                self.ingress.stop.pause(BREATH).await?;
            } else if !empty && !numbered {
                // Without numbers the same may come again at once, and for ever.
                self.wait(&mut line.backoff).await?;
            }
        }
    }

    async fn updates(&self, offset: Option<i64>, limit: usize) -> Result<Vec<Raw>, ApiError> {
        // Whoever has not heard yet asks for an answer at once: it tells that all is well.
        let held_for =
            if self.bot.account.health.health().state == BotState::Up { HELD_FOR } else { Duration::ZERO };
        let mut question = json!({ "timeout": held_for.as_secs(), "limit": limit, "allowed_updates": KINDS });
        if let Some(offset) = offset {
            question["offset"] = offset.into();
        }
        let within = held_for + CALL_WITHIN;
        let updates: Vec<Box<RawValue>> = self.bot.api.call_within("getUpdates", &question, within).await?;
        Ok(updates.iter().map(|update| Raw::new(update.get())).collect())
    }

    /// Takes a batch in, however long the store refuses to commit: nothing is
    /// read on before.
    async fn take_all(&self, me: &Me, mut line: VecDeque<Raw>) -> Result<(), Halted> {
        let _turn = self.bot.reading.lock().await;
        while let Err(error) = self.take_in(me, &mut line).await {
            tracing::error!(bot = %self.bot.config.name, %error, "updates wait to be committed");
            self.bot.account.health.down(format!("what was received could not be committed: {error}"));
            self.ingress.stop.pause(STORE_AGAIN).await?;
        }
        Ok(())
    }

    /// Does what a failed question calls for.
    async fn failed(&self, error: ApiError, line: &mut Line) -> Result<(), Halted> {
        match error.kind {
            ErrorKind::Setup => self.until_known().await,
            ErrorKind::Limited { after, .. } => {
                self.fell_silent(&error.why);
                self.ingress.stop.pause(after).await
            }
            CONFLICT if error.why.contains("webhook") => {
                self.fell_silent(
                    "a webhook was set for this bot, so it cannot be polled: it is taken away again",
                );
                self.wait(&mut line.conflict).await?;
                self.without_webhook().await
            }
            CONFLICT => {
                self.bot.account.health.count("conflicts");
                self.fell_silent(OTHER_POLLER);
                self.wait(&mut line.conflict).await
            }
            kind => {
                // It may have been too much at once: too large, or too slow on its way.
                if kind == ErrorKind::Unknown {
                    line.limit = (line.limit / 2).max(1);
                }
                self.fell_silent(&error.why);
                self.wait(&mut line.backoff).await
            }
        }
    }

    /// How far the updates were read before, as the store has it.
    pub(super) async fn position(&self) -> Result<Option<i64>, Halted> {
        let cursors = || async {
            let cursors = self.ingress.ports.records.cursors(&self.bot.account.key).await;
            cursors.inspect_err(|error| self.fell_silent(&error.to_string()))
        };
        let cursors = self.ingress.stop.until_stored(cursors).await?;
        let cursor = cursors.into_iter().find(|cursor| cursor.stream == STREAM);
        Ok(cursor.and_then(|cursor| cursor.position.parse().ok()))
    }

    /// Makes sure that updates wait to be asked for.
    async fn without_webhook(&self) -> Result<(), Halted> {
        let body = json!({ "drop_pending_updates": false });
        self.until_answered::<Value>("deleteWebhook", &body, ApiError::to_string).await.map(drop)
    }

    /// Says once what is wrong, as long as it is the same thing.
    pub(super) fn fell_silent(&self, why: &str) {
        if self.bot.account.health.is_news(why) {
            tracing::warn!(bot = %self.bot.config.name, why, "a Telegram bot does not hear");
        }
        self.bot.account.health.down(why);
    }
}

/// How patient a poller is at the moment.
struct Line {
    backoff: Backoff,
    conflict: Backoff,
    /// Updates asked for at once.
    limit: usize,
}

impl Default for Line {
    fn default() -> Self {
        let (backoff, conflict) = (backoff(LONGEST_PAUSE), backoff(LONGEST_CONFLICT));
        Self { backoff, conflict, limit: BATCH }
    }
}

/// What to ask for after these. Where none has a number, one is passed over:
/// the same would come again for ever.
fn next_offset(offset: Option<i64>, updates: &[Raw]) -> Option<i64> {
    let last = updates.iter().rev().find_map(|update| update.id);
    match last {
        Some(last) => last.checked_add(1),
        None if updates.is_empty() => offset,
        None => offset.map(|offset| offset.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_offset_follows_the_last_update_wherever_it_is() {
        let raw = |id: Option<i64>| Raw { id, json: String::new() };
        assert_eq!(next_offset(None, &[]), None);
        assert_eq!(next_offset(Some(9), &[]), Some(9));
        assert_eq!(next_offset(Some(9), &[raw(Some(9)), raw(Some(12))]), Some(13));
        assert_eq!(next_offset(Some(900), &[raw(Some(4)), raw(Some(5))]), Some(6), "numbers started anew");
        assert_eq!(next_offset(Some(9), &[raw(Some(9)), raw(None)]), Some(10));
        assert_eq!(next_offset(Some(9), &[raw(None)]), Some(10), "not the same for ever");
        assert_eq!(next_offset(None, &[raw(None)]), None);
    }
}
