//! People asking and agents answering in every order: no answer ever goes by
//! another's credential, and nobody's place is taken twice.

use super::platform::{Scripted, later, sent, unknown};
use super::vault::{Asks, asks, follow_up};
use super::world::{Agent, World};
use angelia_core::egress::Dedupe;
use angelia_core::vault::{Deferral, Way};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::runtime::Runtime;

const CASES: u32 = 24;
const STEPS: usize = 30;
/// Who takes part; a name is also the beginning of all it asks and says.
const WHO: [(&str, &str); 3] = [("acme", "gw"), ("acme", "twin"), ("other", "foe")];
/// The first belongs to all of `acme`, the second to `twin` alone, the third to `other`.
const CHATS: [&str; 3] = ["x-lab", "x-twin", "x-den"];
const USERS: [&str; 2] = ["1", "2"];

#[derive(Clone, Debug)]
enum Step {
    /// Somebody asks an instance, wherever that may write.
    Ask { who: usize, chat: usize, user: usize, pressed: bool },
    /// An instance says something, in answer to one of what was asked, or to nothing.
    Send { who: usize, chat: usize, answers: Option<prop::sample::Index>, notify: bool, user: Option<usize> },
    /// An instance names a conversation.
    FollowUp { who: usize, chat: usize, user: Option<usize> },
    /// The provider stumbles over the next call.
    Stumble { unknown: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let place = (0..WHO.len(), 0..CHATS.len());
    let user = prop::option::of(0..USERS.len());
    prop_oneof![
        4 => (place.clone(), 0..USERS.len(), prop::bool::weighted(0.2))
            .prop_map(|((who, chat), user, pressed)| Step::Ask { who, chat, user, pressed }),
        5 => (place.clone(), prop::option::of(any::<prop::sample::Index>()), any::<bool>(), user.clone())
            .prop_map(|((who, chat), answers, notify, user)| Step::Send { who, chat, answers, notify, user }),
        4 => (place, user).prop_map(|((who, chat), user)| Step::FollowUp { who, chat, user }),
        1 => any::<bool>().prop_map(|unknown| Step::Stumble { unknown }),
    ]
}

struct Stage {
    world: World,
    agents: Vec<Agent>,
    /// Everything that was ever asked.
    asked: Vec<String>,
    count: usize,
}

impl Stage {
    async fn new() -> Self {
        let world = World::new(Scripted::new(Dedupe::No)).await;
        let mut agents = Vec::new();
        for (tenant, name) in WHO {
            let credentials = world.gateway(tenant, name).await;
            agents.push(world.join(&credentials).await);
        }
        let twins = json!({ "place": "fake:twin", "tenant": "acme", "gateway": "twin", "allow": ["any"] });
        world.admin("routes", twins).await;
        world.admin("routes", json!({ "place": "fake:den", "tenant": "other", "allow": ["any"] })).await;
        Self { world, agents, asked: Vec::new(), count: 0 }
    }

    async fn run(&mut self, steps: &[Step]) {
        let mut open = Vec::new();
        for step in steps {
            self.count += 1;
            let number = self.count;
            match step.clone() {
                Step::Ask { who, chat, user, pressed } => {
                    let ((tenant, gateway), chat) = (WHO[who], CHATS[chat]);
                    let deferral = if pressed { Deferral::Update } else { Deferral::Message };
                    let id = format!("{gateway}-{number}");
                    self.world
                        .take(&Asks { tenant, gateway, chat, deferral, ..asks(&id, USERS[user]) })
                        .await;
                    self.asked.push(id);
                }
                Step::Send { who, chat, answers, notify, user } => {
                    let answers = answers.filter(|_| !self.asked.is_empty()).map(|it| it.get(&self.asked));
                    let text = format!("{}-{number}", WHO[who].1);
                    let metadata = json!({"notify": notify, "user_id": user.map(|user| USERS[user])});
                    let action = json!({"op": "send", "chat_id": CHATS[chat], "content": text,
                                        "reply_to": answers, "metadata": metadata});
                    self.agents[who].ask(&text, action).await;
                    open.push((who, text));
                }
                Step::FollowUp { who, chat, user } => {
                    let text = format!("{}-{number}", WHO[who].1);
                    let person = user.map(|user| format!(":{}", USERS[user])).unwrap_or_default();
                    let key = format!("agent:main:fake:group:{}{person}", CHATS[chat]);
                    self.agents[who].ask(&text, follow_up(&key, &text)).await;
                    open.push((who, text));
                }
                Step::Stumble { unknown: true } => self.world.platform.give([unknown()]),
                Step::Stumble { unknown: false } => {
                    self.world.platform.give([later(Duration::from_millis(20)), sent("m")]);
                }
            }
        }
        for (who, text) in open {
            self.agents[who].answer(&text).await;
        }
    }

    /// How many calls were made by way of a capability.
    fn judge(&self) -> Result<usize, TestCaseError> {
        let owner = |text: &str| text.split('-').next().map(str::to_owned);
        let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut used = 0;
        for call in self.world.platform.calls() {
            let Some((way, credential)) = call.answer else { continue };
            used += 1;
            let asked = credential.trim_start_matches("token of ");
            prop_assert_eq!(owner(asked), owner(&call.text), "{} said by {}", asked, call.text);
            if way == Way::Original && call.taken {
                taken.entry(credential).or_default().insert(call.text);
            }
        }
        for (credential, texts) in &taken {
            prop_assert_eq!(texts.len(), 1, "{} was answered by {:?}", credential, texts);
        }
        Ok(used)
    }
}

#[test]
fn no_answer_goes_by_anothers_credential_or_twice_to_one_place() {
    let runtime = Runtime::new().unwrap();
    let stage = RefCell::new(runtime.block_on(Stage::new()));
    // The stage is one for all cases, so that a case cannot be made smaller on its own.
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let judged = runner.run(&prop::collection::vec(step(), STEPS), |steps| {
        let stage = &mut *stage.borrow_mut();
        runtime.block_on(stage.run(&steps));
        stage.judge().map(drop)
    });
    judged.unwrap();
    let used = stage.borrow().judge().unwrap();
    assert!(used > 50, "only {used} answers went by a capability");
    runtime.block_on(async { drop(stage) });
}
