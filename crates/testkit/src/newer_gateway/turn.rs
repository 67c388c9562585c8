//! One turn, from the 👀 on its message to the ✅.

use std::sync::Arc;
use std::time::Duration;

use angelia_contract::action::{Action, PromptOption};
use angelia_contract::event::Event;
use angelia_contract::source::chat_type;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::diary::Given;
use super::gateway::{Gateway, Nudge, metadata, send};
use super::settings::{ASKS_BACK, DRAWS, NEEDS_APPROVAL, USES_EVERYTHING};

/// Fixed pause: so often it shows that it is at work.
const TYPING_EVERY: Duration = Duration::from_secs(2);
/// How long it waits for the result of that; a deaf reader makes typing slower by so much.
const TYPING_RESULT: Duration = Duration::from_millis(1500);
/// How long an interrupted turn still takes.
const WINDING_UP: Duration = Duration::from_millis(200);
/// Fixed pause: these are before a send that failed for want of a socket is tried again.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(4)];

/// What it says in a conversation it did not have before.
const NO_HOME: &str = "\u{1f4ec} No home channel is set for Relay.";

/// How the work of a turn ended.
enum Work {
    Answer(String),
    Interrupted,
    Cancelled,
}

/// An open turn.
pub(super) struct Turn {
    pub(super) gateway: Arc<Gateway>,
    key: String,
    pub(super) event: Event,
    nudges: mpsc::Receiver<Nudge>,
}

/// Typing goes on while this is kept.
struct Typing(JoinHandle<()>);

impl Drop for Typing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Turn {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        key: String,
        event: Event,
        nudges: mpsc::Receiver<Nudge>,
    ) -> Self {
        Self { gateway, key, event, nudges }
    }

    /// Marks the message, works, answers, marks it again; only then the conversation is free.
    pub(super) async fn run(mut self) {
        if let Some(rest) = self.gateway.starts_for()
            && !self.put_off(rest).await
        {
            return;
        }
        self.gateway.diary.turn_begun(&self.key);
        let mut typing = self.typing();
        self.react("👀", false).await;
        let work = if self.event.text.starts_with('/') {
            Work::Answer(about(&self.event.text))
        } else {
            let work = self.work(&mut typing).await;
            if !matches!(work, Work::Interrupted) {
                self.gateway.answered(&self.key);
            }
            work
        };
        let marked = match work {
            Work::Answer(text) => {
                self.answer(&text).await;
                true
            }
            Work::Interrupted => self.gateway.settings.marks_interrupted,
            Work::Cancelled => false,
        };
        self.react("👀", true).await;
        if marked {
            self.react("✅", false).await;
        }
        drop(typing);
        self.gateway.diary.turn_ended(&self.key);
        self.gateway.close(&self.key);
    }

    /// Marks a message that came too early as done and takes it up later; whether the
    /// conversation was free then. Otherwise it joins the turn that runs.
    async fn put_off(&mut self, rest: Duration) -> bool {
        self.react("👀", false).await;
        self.react("👀", true).await;
        self.react("✅", false).await;
        self.gateway.close(&self.key);
        sleep(rest).await;
        let Some(nudges) = self.gateway.open(&self.key) else {
            self.gateway.nudge(&self.key, Nudge::Redirect(self.event.text.clone()));
            return false;
        };
        self.nudges = nudges;
        true
    }

    /// The agent: it asks what it has to ask, then the model.
    async fn work(&mut self, typing: &mut Option<Typing>) -> Work {
        let text = self.event.text.clone();
        if self.gateway.is_first(&self.key) {
            self.gateway.ask(&self.event, send(&self.event, NO_HOME, None, false)).await;
        }
        self.give(&text);
        if text.contains(NEEDS_APPROVAL) {
            *typing = None;
            let choice = match self.approval().await {
                Ok(choice) => choice,
                Err(end) => return self.wind_up(end).await,
            };
            *typing = self.typing();
            if choice == "deny" {
                return Work::Answer("not done".to_owned());
            }
        }
        if text.contains(ASKS_BACK) {
            *typing = None;
            match self.question().await {
                Ok(reply) => self.give(&reply),
                Err(end) => return self.wind_up(end).await,
            }
            *typing = self.typing();
        }
        if text.contains(DRAWS) {
            self.draw().await;
        }
        if text.contains(USES_EVERYTHING) {
            self.use_everything().await;
        }
        self.think(text).await
    }

    /// The model thinks; a correction makes it begin again.
    async fn think(&mut self, text: String) -> Work {
        let mut latest = text;
        let mut done_at = Instant::now() + self.gateway.settings.turn;
        loop {
            tokio::select! {
                () = sleep_until(done_at) => return Work::Answer(format!("echo: {latest}")),
                nudge = self.nudges.recv() => match nudge {
                    Some(Nudge::Redirect(correction)) => {
                        self.give(&correction);
                        latest = correction;
                        done_at = Instant::now() + self.gateway.settings.turn;
                    }
                    Some(Nudge::Reply(_)) => {}
                    Some(Nudge::Interrupt) => return self.wind_up(Work::Interrupted).await,
                    Some(Nudge::Cancel) | None => return self.wind_up(Work::Cancelled).await,
                },
            }
        }
    }

    async fn wind_up(&self, end: Work) -> Work {
        sleep(WINDING_UP).await;
        end
    }

    /// Hands the model something new, with what an interrupted turn left behind.
    fn give(&self, text: &str) {
        let whole = self.gateway.unanswered(&self.key, text);
        self.gateway.diary.gave(Given {
            at: Instant::now(),
            session: self.key.clone(),
            chat: self.event.source.chat_id.clone(),
            text: text.to_owned(),
            whole,
        });
    }

    /// Asks with buttons where the connector has them, else in words; the choice, if
    /// one is made.
    async fn approval(&mut self) -> Result<String, Work> {
        let id = format!("c0ffee.{:08x}", self.gateway.diary.given().len());
        let shown = self.gateway.is_offered("prompt") && {
            self.gateway.prompt(&id, &self.key);
            let action = approval_prompt(&self.event, &id);
            self.gateway.ask(&self.event, action).await.success
        };
        if !shown {
            self.gateway.pressed(&id);
            let words = "⚠️ **Dangerous command requires approval:**\n```\nrm -rf /tmp/x\n```\n\
                         Reply `/approve` to execute this one operation, or `/deny` to cancel.";
            self.gateway.ask(&self.event, send(&self.event, words, None, false)).await;
        }
        self.gateway.running(&self.key, |running| running.wants_approval = true);
        let choice = self.reply().await;
        self.gateway.running(&self.key, |running| running.wants_approval = false);
        choice
    }

    /// Asks in words; the next text is the answer.
    async fn question(&mut self) -> Result<String, Work> {
        self.gateway.running(&self.key, |running| running.asks = true);
        self.gateway.ask(&self.event, send(&self.event, "❓ Which colour?", None, false)).await;
        self.reply().await
    }

    /// What somebody answers, or how the turn ends without. A text that comes meanwhile, and
    /// that the agent did not ask for, is lost.
    async fn reply(&mut self) -> Result<String, Work> {
        loop {
            match self.nudges.recv().await {
                Some(Nudge::Reply(choice)) => return Ok(choice),
                Some(Nudge::Interrupt) => return Err(Work::Interrupted),
                Some(Nudge::Cancel) | None => return Err(Work::Cancelled),
                Some(Nudge::Redirect(_)) => {}
            }
        }
    }

    /// Sends the final answer; an answer that finds no socket three times is lost.
    async fn answer(&self, text: &str) {
        if self.gateway.settings.streams && self.stream(text).await {
            return;
        }
        let notify = self.gateway.settings.notifies;
        let mut pauses = AGAIN.iter();
        loop {
            let action = send(&self.event, text, self.reply_to(), notify);
            let result = self.gateway.ask(&self.event, action).await;
            let network = result.error.as_deref().is_some_and(|error| error.contains("network"));
            match pauses.next() {
                Some(pause) if network => sleep(*pause).await,
                _ if result.success => return,
                _ => return self.gateway.diary.lost_an_answer(),
            }
        }
    }

    /// In the topics of Telegram's groups an answer names no message.
    pub(super) fn reply_to(&self) -> Option<String> {
        let source = &self.event.source;
        let in_topic = source.thread_id.is_some() && source.chat_type != chat_type::DM;
        self.event.message_id.clone().filter(|_| source.platform != "telegram" || !in_topic)
    }

    /// Marks its message and waits for the result, where marks are offered.
    async fn react(&self, emoji: &str, remove: bool) {
        let Some(message_id) = self.event.message_id.clone() else { return };
        if !self.gateway.settings.reacts || !self.gateway.is_offered("react") {
            return;
        }
        let (chat_id, metadata) = (self.event.source.chat_id.clone(), metadata(&self.event));
        let action = Action::React { chat_id, message_id, emoji: emoji.to_owned(), remove, metadata };
        self.gateway.ask(&self.event, action).await;
    }

    fn typing(&self) -> Option<Typing> {
        let (gateway, event) = (Arc::clone(&self.gateway), self.event.clone());
        self.gateway.settings.types.then(|| {
            Typing(tokio::spawn(async move {
                loop {
                    let (chat_id, metadata) = (event.source.chat_id.clone(), metadata(&event));
                    let action = Action::Typing { chat_id, content: None, metadata };
                    let _ = timeout(TYPING_RESULT, gateway.ask(&event, action)).await;
                    sleep(TYPING_EVERY).await;
                }
            }))
        })
    }
}

/// What it answers to a command.
pub(super) fn about(command: &str) -> String {
    format!("about {command}")
}

fn approval_prompt(event: &Event, id: &str) -> Action {
    let option = |id: &str, label: &str| PromptOption {
        id: id.to_owned(),
        label: label.to_owned(),
        ..PromptOption::default()
    };
    Action::Prompt {
        chat_id: event.source.chat_id.clone(),
        prompt_kind: "approval".to_owned(),
        prompt_id: id.to_owned(),
        content: "⚠️ **Command Approval Required**".to_owned(),
        options: vec![option("once", "Allow Once"), option("deny", "Deny")],
        timeout_s: None,
        reply_to: None,
        metadata: metadata(event),
    }
}
