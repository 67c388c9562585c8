//! `Question`: asking people with buttons, and the press that answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use angelia_contract::action::PromptOption;
use angelia_contract::{PromptResponse, Source};
use tokio::sync::oneshot;

use crate::calls::random;

/// How long an answer is waited for, if nothing else is said.
const WITHIN: Duration = Duration::from_secs(3_600);

/// Something to ask with buttons; see [`Conversation::ask`](crate::Conversation::ask).
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    pub(crate) options: Vec<PromptOption>,
    pub(crate) within: Duration,
}

impl Question {
    /// Asks for leave: connectors let only whoever asked for it give that.
    pub fn approval(text: impl Into<String>) -> Self {
        Self { kind: "approval", text: text.into(), options: Vec::new(), within: WITHIN }
    }

    /// Asks what is meant: anybody who may speak there can say.
    pub fn clarify(text: impl Into<String>) -> Self {
        Self { kind: "clarify", ..Self::approval(text) }
    }

    /// One more button. Ids are of letters, digits and `_.-`, at most 32 of them.
    pub fn option(self, id: &str, label: &str) -> Self {
        self.push(id, label, None)
    }

    /// The same, for what one is meant to press.
    pub fn primary(self, id: &str, label: &str) -> Self {
        self.push(id, label, Some("primary"))
    }

    /// The same, for what cannot be taken back.
    pub fn danger(self, id: &str, label: &str) -> Self {
        self.push(id, label, Some("danger"))
    }

    /// How long an answer is waited for; without it an hour.
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    fn push(mut self, id: &str, label: &str, style: Option<&str>) -> Self {
        let (id, label) = (id.to_owned(), label.to_owned());
        self.options.push(PromptOption { id, label, style: style.map(str::to_owned) });
        self
    }
}

/// What somebody chose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chosen {
    /// The option.
    pub option_id: String,
    /// Who chose it, where the platform tells.
    pub user_id: Option<String>,
    /// What people call them.
    pub user_name: Option<String>,
}

/// Questions that wait for their press.
pub(crate) struct Questions {
    waiting: Mutex<HashMap<String, oneshot::Sender<Chosen>>>,
    /// Marks what this process asked.
    process: u64,
    count: AtomicU64,
}

/// A question that waits; dropping it ends that.
pub(crate) struct Waiting<'a> {
    questions: &'a Questions,
    pub(crate) id: String,
    pub(crate) chosen: oneshot::Receiver<Chosen>,
}

impl Questions {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), process: random() & 0xff_ffff, count: AtomicU64::new(0) }
    }

    pub(crate) fn open(&self) -> Waiting<'_> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:06x}.{:08x}", self.process, count & 0xffff_ffff);
        let (answer, chosen) = oneshot::channel();
        self.waiting().insert(id.clone(), answer);
        Waiting { questions: self, id, chosen }
    }

    /// Gives a press to whoever waits for it; `false` if nobody does.
    pub(crate) fn answer(&self, response: &PromptResponse, source: &Source) -> bool {
        let Some(answer) = self.waiting().remove(&response.prompt_id) else { return false };
        let user_name = source.user_display_name.clone().or_else(|| source.user_name.clone());
        let (option_id, user_id) = (response.option_id.clone(), source.user_id.clone());
        answer.send(Chosen { option_id, user_id, user_name }).is_ok()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Chosen>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.questions.waiting().remove(&self.id);
    }
}
