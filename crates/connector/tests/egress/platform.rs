//! A provider that does what a test tells it to.

use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_core::egress::{Bot, Dedupe, Rate, Target, Whereabouts};
use angelia_core::error::Error;
use angelia_core::error::Result;
use angelia_core::inbox::Rendering;
use angelia_core::store::ActionId;
use angelia_core::vault::Way;
use angelia_engines::inspect::Inspect;
use angelia_platforms::{Answer, Delivery, Earlier, Ingress, Outcome, Platform, Reach};
use axum::Router;
use futures_util::future::BoxFuture;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// What the provider does with a call.
pub(crate) enum Reaction {
    /// It answers.
    Give(Outcome),
    /// It answers when it is told to.
    Hold(oneshot::Receiver<Outcome>),
    /// It takes the first part, asks whether it may go on, and answers when it is told to.
    Parts(&'static str, oneshot::Receiver<Outcome>),
}

/// Who knows where a room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knows {
    Store,
    Provider,
    Nobody,
}

/// A call as the provider saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) chat: String,
    pub(crate) text: String,
    /// What the ledger said of it on disk in that moment.
    pub(crate) state: String,
    /// How and with which credential it answered.
    pub(crate) answer: Option<(Way, String)>,
    /// What it was told of earlier calls.
    pub(crate) earlier: Earlier,
    /// Whether the provider took it.
    pub(crate) taken: bool,
}

/// What somebody who waits was told by the connector itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) way: Way,
    pub(crate) credential: String,
    pub(crate) text: String,
}

/// The provider. Without a script it takes everything.
pub(crate) struct Scripted {
    dedupe: Dedupe,
    rate: Option<Rate>,
    pub(crate) chat_rate: Mutex<Option<Rate>>,
    /// Rooms whose whereabouts are not at hand, and who could tell.
    pub(crate) elsewhere: Mutex<HashMap<String, Knows>>,
    /// Rooms the store was asked for.
    pub(crate) recalled: Mutex<Vec<String>>,
    /// Rooms the provider was asked for.
    pub(crate) looked_up: Mutex<Vec<String>>,
    script: Mutex<VecDeque<Reaction>>,
    /// What it does when the script is over.
    pub(crate) always: Mutex<Option<Outcome>>,
    calls: Mutex<Vec<Call>>,
    /// What becomes of the next marks and drafts; without a word they are shown.
    marks: Mutex<VecDeque<oneshot::Receiver<ActionResult>>>,
    pub(crate) rendering: Mutex<Rendering>,
    /// How the next attempts to tell somebody who waits fail.
    pub(crate) tell_fails: Mutex<VecDeque<Error>>,
    pub(crate) told: Mutex<Vec<Told>>,
    pub(crate) disk: OnceLock<Inspect>,
    /// What bots work with, if it is to be kept: the server lives as long as it.
    pub(crate) ingress: OnceLock<Ingress>,
    pub(crate) keeps_desk: AtomicBool,
}

pub(crate) fn sent(message_id: &str) -> Outcome {
    Outcome::Sent { message_id: message_id.into(), recorded: false }
}

pub(crate) fn refused() -> Outcome {
    Outcome::Refused { why: "no such chat".into() }
}

pub(crate) fn later(after: Duration) -> Outcome {
    Outcome::Later { after, reach: Reach::Action, why: "too many requests".into() }
}

pub(crate) fn later_for(reach: Reach, after: Duration) -> Outcome {
    Outcome::Later { after, reach, why: "too many requests".into() }
}

pub(crate) fn open() -> Outcome {
    Outcome::Open { why: "the interaction is over".into() }
}

pub(crate) fn unknown() -> Outcome {
    Outcome::Unknown { why: "no answer came".into() }
}

impl Scripted {
    pub(crate) fn new(dedupe: Dedupe) -> Arc<Self> {
        Self::with_rate(dedupe, None)
    }

    pub(crate) fn with_rate(dedupe: Dedupe, rate: Option<Rate>) -> Arc<Self> {
        Arc::new(Self {
            dedupe,
            rate,
            chat_rate: Mutex::default(),
            elsewhere: Mutex::default(),
            recalled: Mutex::default(),
            looked_up: Mutex::default(),
            script: Mutex::default(),
            always: Mutex::default(),
            calls: Mutex::default(),
            marks: Mutex::default(),
            rendering: Mutex::default(),
            tell_fails: Mutex::default(),
            told: Mutex::default(),
            disk: OnceLock::new(),
            ingress: OnceLock::new(),
            keeps_desk: AtomicBool::new(false),
        })
    }

    /// Answers the next calls.
    pub(crate) fn give(&self, outcomes: impl IntoIterator<Item = Outcome>) {
        self.script.lock().unwrap().extend(outcomes.into_iter().map(Reaction::Give));
    }

    /// Holds the next call until it is told how it ends.
    pub(crate) fn hold(&self) -> oneshot::Sender<Outcome> {
        let (end, held) = oneshot::channel();
        self.script.lock().unwrap().push_back(Reaction::Hold(held));
        end
    }

    /// Takes the first part of the next call, and holds the rest.
    pub(crate) fn hold_after(&self, first: &'static str) -> oneshot::Sender<Outcome> {
        let (end, held) = oneshot::channel();
        self.script.lock().unwrap().push_back(Reaction::Parts(first, held));
        end
    }

    /// Holds the next mark until it is told how it ends.
    pub(crate) fn hold_mark(&self) -> oneshot::Sender<ActionResult> {
        let (end, held) = oneshot::channel();
        self.marks.lock().unwrap().push_back(held);
        end
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The texts it was called with.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.text).collect()
    }

    fn state_of(&self, id: ActionId) -> String {
        self.disk.get().map_or_else(String::new, |disk| disk.action(id).state.as_str().to_owned())
    }

    /// Brings to hand where a room is, if `who` knows it.
    fn tells(&self, target: &Target, who: Knows) -> bool {
        let mut elsewhere = self.elsewhere.lock().unwrap();
        let Some(room) = room(target).filter(|room| elsewhere.get(*room) == Some(&who)) else { return false };
        elsewhere.remove(room);
        true
    }

    /// Notes a call that is not in the ledger.
    fn called(&self, chat: &str, text: &str) {
        self.note(Call {
            chat: chat.into(),
            text: text.into(),
            state: String::new(),
            answer: None,
            earlier: Earlier::Nothing,
            taken: true,
        });
    }

    fn note(&self, call: Call) -> usize {
        let mut calls = self.calls.lock().unwrap();
        calls.push(call);
        calls.len() - 1
    }

    async fn respond(&self, delivery: Delivery) -> Outcome {
        let (text, made) = match &delivery.action {
            Action::Send { content, .. } => (content.clone(), format!("m{}", delivery.id.0)),
            Action::Edit { content, message_id, .. } => (content.clone(), message_id.clone()),
            other => panic!("{} was delivered", other.op()),
        };
        let call = self.note(Call {
            chat: delivery.target.chat_id.clone(),
            text,
            state: self.state_of(delivery.id),
            answer: delivery.answer.as_ref().map(|it| (it.way, it.credential.expose().to_owned())),
            earlier: delivery.earlier,
            taken: false,
        });
        let reaction = self.script.lock().unwrap().pop_front();
        let outcome = match reaction {
            Some(Reaction::Give(outcome)) => outcome,
            Some(Reaction::Hold(held)) => held.await.unwrap_or_else(|_| refused()),
            Some(Reaction::Parts(first, held)) => {
                delivery.progress.first_part(first);
                let outcome = held.await.unwrap_or_else(|_| refused());
                if delivery.progress.next_call().await { outcome } else { refused() }
            }
            None => self.always.lock().unwrap().clone().unwrap_or_else(|| sent(&made)),
        };
        self.calls.lock().unwrap()[call].taken = matches!(outcome, Outcome::Sent { .. });
        outcome
    }
}

fn room(target: &Target) -> Option<&str> {
    target.chat_id.strip_prefix("x-").filter(|room| !room.is_empty())
}

impl Bot for Scripted {
    fn platform(&self) -> &str {
        "fake"
    }

    fn id(&self) -> &str {
        "bot"
    }

    /// Chats are `x-<room>`; a thread of a chat is `<chat>/<name>`.
    fn places(&self, target: &Target) -> Whereabouts {
        let Some(room) = room(target) else { return Whereabouts::Nowhere };
        if self.elsewhere.lock().unwrap().contains_key(room) {
            return Whereabouts::Unknown;
        }
        let mine = |thread: &String| thread.starts_with(&format!("{}/", target.chat_id));
        if target.thread_id.as_ref().is_none_or(mine) {
            Whereabouts::Places(vec![room.to_owned(), "*".to_owned()])
        } else {
            Whereabouts::Nowhere
        }
    }
}

impl Platform for Scripted {
    fn descriptor(&self) -> Descriptor {
        let offered = ["send", "edit", "typing", "get_chat_info", "react", "prompt", "delete", "draft"];
        let supported_ops = offered.map(str::to_owned).to_vec();
        Descriptor { platform: "fake".into(), supported_ops, ..Descriptor::default() }
    }

    /// Whoever takes the place of the same thing twice says it once; behind it nothing is recognised.
    fn dedupe(&self, _action: &Action, way: Option<Way>) -> Dedupe {
        match way {
            Some(Way::Original) => Dedupe::Yes,
            Some(Way::Further) => Dedupe::No,
            None => self.dedupe,
        }
    }

    fn rendering(&self) -> Rendering {
        *self.rendering.lock().unwrap()
    }

    fn chat_key(&self, target: &Target) -> String {
        target.thread_id.clone().unwrap_or_else(|| target.chat_id.clone())
    }

    fn tell_waiting<'a>(&'a self, answer: &'a Answer, text: &'a str) -> BoxFuture<'a, Result<()>> {
        let failure = self.tell_fails.lock().unwrap().pop_front();
        if failure.is_none() {
            let (way, credential) = (answer.way, answer.credential.expose().to_owned());
            self.told.lock().unwrap().push(Told { way, credential, text: text.into() });
        }
        Box::pin(async { failure.map_or(Ok(()), Err) })
    }

    fn webhooks(self: Arc<Self>, ingress: Ingress) -> Router {
        if self.keeps_desk.load(Ordering::Relaxed) {
            let _ = self.ingress.set(ingress);
        }
        Router::new()
    }

    fn budget(&self) -> Option<Rate> {
        self.rate
    }

    fn chat_budget(&self, _target: &Target) -> Option<Rate> {
        *self.chat_rate.lock().unwrap()
    }

    fn recall<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<()>> {
        self.recalled.lock().unwrap().push(target.chat_id.clone());
        self.tells(target, Knows::Store);
        Box::pin(async { Ok(()) })
    }

    fn look_up<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<bool>> {
        self.looked_up.lock().unwrap().push(target.chat_id.clone());
        let told = self.tells(target, Knows::Provider);
        Box::pin(async move {
            // Others get to ask meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(told)
        })
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome> {
        Box::pin(self.respond(delivery))
    }

    fn typing<'a>(
        &'a self,
        target: &'a Target,
        _words: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ActionResult>> {
        self.called(&target.chat_id, "(typing)");
        Box::pin(async { Ok(ActionResult::ok()) })
    }

    fn react<'a>(
        &'a self,
        target: &'a Target,
        message_id: &'a str,
        emoji: &'a str,
        remove: bool,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        Some(Box::pin(async move {
            self.called(&target.chat_id, &format!("({}{emoji} {message_id})", if remove { "-" } else { "" }));
            let held = self.marks.lock().unwrap().pop_front();
            Ok(match held {
                Some(held) => held.await.unwrap_or_else(|_| ActionResult::failed("no")),
                None => ActionResult::ok(),
            })
        }))
    }

    fn draft<'a>(
        &'a self,
        target: &'a Target,
        _draft_id: i64,
        text: &'a str,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        Some(Box::pin(async move {
            self.called(&target.chat_id, &format!("({text}…)"));
            let held = self.marks.lock().unwrap().pop_front();
            Ok(match held {
                Some(held) => held.await.unwrap_or_else(|_| ActionResult::failed("no")),
                None => ActionResult::ok(),
            })
        }))
    }

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        self.called(&target.chat_id, "(info)");
        Box::pin(async { Ok(ActionResult::chat("a chat", "group")) })
    }
}
