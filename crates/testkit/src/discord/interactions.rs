//! What people do to a bot other than writing, and what they see of it.
//!
//! The head of `python/fake_discord/orders.py` lists what an order can carry
//! beyond what the methods here take.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::records::{optional, text};
use super::{FakeDiscord, POLL};

/// One interaction as the person sees it, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// Its id.
    pub id: String,
    /// Its token, the credential that acts as the bot.
    pub token: String,
    /// Discord's number of its type: 2 command, 3 component, 4 autocomplete, 5 form.
    pub kind: u64,
    /// `http` or `gateway`.
    pub via: String,
    /// Who did it.
    pub user: String,
    /// Where.
    pub channel: String,
    /// The command, or the component's custom id.
    pub name: String,
    /// `waiting`, `deferred`, `answered` or `failed`.
    pub state: String,
    /// Why it failed.
    pub error: Option<String>,
    /// The endpoint's status, over HTTP.
    pub status: Option<u64>,
    /// How long the endpoint took, over HTTP.
    pub took: Option<Duration>,
    /// The first answer as given.
    pub answer: Value,
    /// Whether only this person sees the answer.
    pub ephemeral: bool,
    /// The message of the answer, or the one whose component was used.
    pub message: Option<String>,
    /// What that message says now.
    pub content: Option<String>,
    /// How often it was edited; completing a deferred answer is the first time.
    pub edits: u64,
    /// Suggestions for a field.
    pub choices: Value,
    /// The form that was shown.
    pub modal: Value,
    /// Messages after the answer.
    pub followups: Vec<Followup>,
}

/// A message that followed an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followup {
    /// Its id.
    pub id: String,
    /// What it says now; `None` when it is gone.
    pub content: Option<String>,
    /// Whether only one person sees it.
    pub ephemeral: bool,
    /// How often it was edited.
    pub edits: u64,
}

/// How many interactions at once were answered.
#[derive(Clone, Debug)]
pub struct Volley {
    /// The interactions, in the order they were sent.
    pub ids: Vec<String>,
    /// How many are in which state.
    pub states: BTreeMap<String, u64>,
    /// How many got which type of answer; `None` is none.
    pub types: BTreeMap<String, u64>,
    /// How many got which text at once.
    pub texts: BTreeMap<String, u64>,
    /// How many got which status; `None` is none.
    pub statuses: BTreeMap<String, u64>,
    /// The time that half of the answers did not exceed.
    pub p50: Duration,
    /// The time that 99 of 100 answers did not exceed.
    pub p99: Duration,
    /// The slowest answer.
    pub max: Duration,
    /// How long sending took.
    pub fired: Duration,
    /// How far sending fell behind its plan.
    pub lag: Duration,
    /// Some of the reasons why interactions failed.
    pub errors: Vec<String>,
}

impl Volley {
    /// How many are in this state.
    pub fn state(&self, name: &str) -> u64 {
        self.states.get(name).copied().unwrap_or_default()
    }
}

impl FakeDiscord {
    /// The key that interactions are signed with, in hex, as the developer
    /// portal shows it.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Sets where interactions are posted; `None` sends them over the gateway.
    pub async fn set_interactions_url(&self, url: Option<&str>) {
        self.set(json!({ "interactions_url": url })).await;
    }

    /// Somebody uses a slash command. Over HTTP this waits for the answer.
    pub async fn slash(&self, channel: &str, user: &str, name: &str, options: Value) -> Interaction {
        let ask = json!({ "channel": channel, "user": user, "name": name, "options": options });
        self.interact("slash", ask).await
    }

    /// Somebody presses a button.
    pub async fn press(&self, channel: &str, user: &str, message: &str, custom_id: &str) -> Interaction {
        let ask = json!({ "channel": channel, "user": user, "message": message, "custom_id": custom_id });
        self.interact("press", ask).await
    }

    /// Somebody sends a form with what they wrote in its fields, by custom id.
    pub async fn submit(&self, channel: &str, user: &str, custom_id: &str, fields: Value) -> Interaction {
        let ask = json!({ "channel": channel, "user": user, "custom_id": custom_id, "fields": fields });
        self.interact("modal", ask).await
    }

    /// Somebody types in a field of a slash command.
    pub async fn autocomplete(
        &self,
        channel: &str,
        user: &str,
        name: &str,
        option: &str,
        typed: &str,
    ) -> Interaction {
        let ask = json!({ "channel": channel, "user": user, "name": name, "option": option, "value": typed });
        self.interact("autocomplete", ask).await
    }

    /// An interaction (`slash`, `press`, `modal`, `autocomplete`) with
    /// everything that can be asked for.
    pub async fn interact(&self, what: &str, ask: Value) -> Interaction {
        interaction(&self.order(what, ask).await)
    }

    /// What Discord does before it takes an endpoint; `accepted` tells whether
    /// it would.
    pub async fn ping(&self) -> Value {
        self.order("ping", json!({})).await
    }

    /// Posts an interaction once more, as it was or changed (`tamper`, `age`);
    /// returns `{status, body, took_ms}`.
    pub async fn repost(&self, id: &str, mut ask: Value) -> Value {
        ask["interaction"] = json!(id);
        self.order("repost", ask).await
    }

    /// Many slash commands at once; see `slash_many` of the control API.
    pub async fn volley(&self, ask: Value) -> Volley {
        volley(&self.order("slash_many", ask).await)
    }

    /// All interactions, oldest first.
    pub async fn interactions(&self) -> Vec<Interaction> {
        let shown = self.read("interactions").await;
        shown.as_array().into_iter().flatten().map(interaction).collect()
    }

    /// One interaction as it stands.
    ///
    /// # Panics
    ///
    /// When there is none with this id.
    pub async fn interaction(&self, id: &str) -> Interaction {
        let shown = self.read(&format!("interactions?id={id}")).await;
        shown.get(0).map(interaction).unwrap_or_else(|| panic!("no interaction {id}"))
    }

    /// Waits until the interaction satisfies `enough`.
    ///
    /// # Panics
    ///
    /// When that does not happen in time; the message shows the interaction.
    pub async fn until_interaction(
        &self,
        id: &str,
        limit: Duration,
        enough: impl Fn(&Interaction) -> bool,
    ) -> Interaction {
        let deadline = Instant::now() + limit;
        loop {
            let seen = self.interaction(id).await;
            if enough(&seen) {
                return seen;
            }
            assert!(Instant::now() < deadline, "not within {limit:?}: {seen:#?}");
            sleep(POLL).await;
        }
    }
}

fn interaction(shown: &Value) -> Interaction {
    let followups = shown["followups"].as_array().into_iter().flatten();
    Interaction {
        id: text(shown, "id"),
        token: text(shown, "token"),
        kind: shown["type"].as_u64().unwrap_or_default(),
        via: text(shown, "via"),
        user: text(shown, "user"),
        channel: text(shown, "channel"),
        name: optional(shown, "name").unwrap_or_default(),
        state: text(shown, "state"),
        error: optional(shown, "error"),
        status: shown["status"].as_u64(),
        took: shown["took_ms"].as_f64().map(milliseconds),
        answer: shown["answer"].clone(),
        ephemeral: shown["ephemeral"].as_bool().unwrap_or_default(),
        message: optional(shown, "message"),
        content: optional(shown, "content"),
        edits: shown["edits"].as_u64().unwrap_or_default(),
        choices: shown["choices"].clone(),
        modal: shown["modal"].clone(),
        followups: followups.map(followup).collect(),
    }
}

fn followup(shown: &Value) -> Followup {
    Followup {
        id: text(shown, "id"),
        content: optional(shown, "content"),
        ephemeral: shown["ephemeral"].as_bool().unwrap_or_default(),
        edits: shown["edits"].as_u64().unwrap_or_default(),
    }
}

fn volley(shown: &Value) -> Volley {
    let counts = |name: &str| serde_json::from_value(shown[name].clone()).expect("counts");
    let texts = |name: &str| serde_json::from_value(shown[name].clone()).expect("texts");
    let time = |name: &str| milliseconds(shown[name].as_f64().expect("a time"));
    Volley {
        ids: texts("ids"),
        states: counts("states"),
        types: counts("types"),
        texts: counts("texts"),
        statuses: counts("statuses"),
        p50: time("p50_ms"),
        p99: time("p99_ms"),
        max: time("max_ms"),
        fired: time("fired_ms"),
        lag: time("lag_ms"),
        errors: texts("errors"),
    }
}

fn milliseconds(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1000.0)
}
