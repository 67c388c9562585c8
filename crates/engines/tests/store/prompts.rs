//! Questions with buttons: each is answered once, by a press that goes to whoever asked.

use super::actions::accept;
use super::directory::bot;
use super::identity::by;
use super::open::{Opened, entry};
use super::people::line;
use angelia_core::admission::Admitted;
use angelia_core::clock;
use angelia_core::error::Kind;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::ActionId;
use angelia_core::prompts::{
    Answer, Choice, KEPT_PER_INSTANCE, NewPrompt, Press, Presser, PromptKind, PromptStore, Verdict, judge,
};
use angelia_core::store::{
    Appended, Buttons, Intake, LineAnswer, NewEntry, NewLine, PageSize, Person, RoomStore,
};
use std::collections::BTreeMap;
use std::time::Duration;

fn question(number: i64, instance: InstanceId, chat_id: &str) -> NewPrompt {
    let choice = |id: &str| Choice { id: id.into(), label: id.to_uppercase(), style: None };
    NewPrompt {
        number: ActionId(number),
        tenant: "acme".into(),
        instance,
        bot: bot(),
        chat_id: chat_id.into(),
        // Two gateways may well make up the same.
        prompt_id: "p1".into(),
        kind: PromptKind::Clarify,
        choices: vec![choice("yes"), choice("no")],
        asked_of: vec!["ann".into()],
        open_for: Duration::from_secs(3_600),
    }
}

fn press(number: i64, option: &str) -> Press {
    Press { number: ActionId(number), option_id: option.into(), by: "ann".into() }
}

/// An answer on its way to an instance.
fn answer(number: i64, instance: InstanceId, message_id: &str) -> Intake {
    let (platform, bot) = ("discord".into(), "main".into());
    let entry = NewEntry { platform, bot, chat_id: "lab".into(), ..entry(instance, message_id) };
    Intake { entry: Some(entry), press: Some(press(number, "yes")), ..Intake::default() }
}

#[tokio::test]
async fn a_question_is_answered_once_across_a_restart() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.ask(question(5, a, "lab")).await.unwrap();
    let open = opened.store.open_prompts(&bot(), "lab").await.unwrap();
    assert_eq!((open.len(), open[0].number, open[0].answered.is_none()), (1, ActionId(5), true));
    let opened = opened.reopen();
    let taken =
        opened.store.take_in(&bot(), None, vec![answer(5, a, "x1"), answer(5, a, "x2")]).await.unwrap();
    assert!(taken[0].appended.is_some() && !taken[0].not_open);
    assert!(taken[1].appended.is_none() && !taken[1].not_open, "the same once more counts as told");
    opened.store.ask(question(4, a, "lab")).await.unwrap();
    let taken = opened.store.take_in(&bot(), None, vec![answer(4, a, "x1")]).await.unwrap();
    assert_eq!(taken[0].appended, Some(Appended::Seen(Seq(1))), "what came before answers nothing again");
    assert!(opened.store.prompt(ActionId(4)).await.unwrap().unwrap().answered.is_none());
    let otherwise = Intake { press: Some(press(5, "no")), ..answer(5, a, "x3") };
    let taken = opened.store.take_in(&bot(), None, vec![otherwise]).await.unwrap();
    assert!(taken[0].appended.is_none() && taken[0].not_open, "it was answered otherwise");
    assert_eq!(opened.seqs(a).await, [Seq(1)]);
    let opened = opened.reopen();
    assert!(opened.store.prompt(ActionId(5)).await.unwrap().unwrap().answered.is_some());
    assert_eq!(opened.store.open_prompts(&bot(), "lab").await.unwrap().len(), 1);
    // It is shown again, because nobody knows whether it was; the answer stays.
    opened.store.ask(question(5, a, "lab")).await.unwrap();
    assert!(opened.store.prompt(ActionId(5)).await.unwrap().unwrap().answered.is_some());
    let taken = opened.store.take_in(&bot(), None, vec![answer(6, a, "x3")]).await.unwrap();
    assert!(taken[0].not_open, "nobody asked that");
}

#[tokio::test]
async fn an_answer_that_is_not_committed_leaves_its_question_open() {
    let opened = Opened::new();
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    opened.store.ask(question(5, a, "lab")).await.unwrap();
    let gone = Intake { entry: answer(5, InstanceId(999), "x1").entry, ..answer(5, a, "x1") };
    assert!(opened.store.take_in(&bot(), None, vec![gone]).await.unwrap()[0].no_instance);
    let open = opened.store.open_prompts(&bot(), "lab").await.unwrap();
    assert_eq!(open.len(), 1, "nobody got it");
    let taken = opened.store.take_in(&bot(), None, vec![answer(5, a, "x1")]).await.unwrap();
    assert!(taken[0].appended.is_some());
    assert!(opened.seqs(b).await.is_empty());
}

#[tokio::test]
async fn the_newest_questions_of_an_instance_are_kept() {
    let opened = Opened::new();
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    opened.store.ask(question(1, b, "den")).await.unwrap();
    for number in 2..=KEPT_PER_INSTANCE as i64 + 3 {
        opened.store.ask(question(number, a, "lab")).await.unwrap();
    }
    let open = opened.store.open_prompts(&bot(), "lab").await.unwrap();
    assert_eq!(open.len(), KEPT_PER_INSTANCE);
    assert_eq!(open[0].number, ActionId(KEPT_PER_INSTANCE as i64 + 3), "the newest comes first");
    assert!(opened.store.prompt(ActionId(2)).await.unwrap().is_none(), "the oldest went");
    assert!(opened.store.prompt(ActionId(1)).await.unwrap().is_some(), "another's stay");
}

#[tokio::test]
async fn the_line_of_a_question_shows_its_answer() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    let a = opened.instance("a").await;
    opened.store.ask(question(5, a, "web-lab")).await.unwrap();
    let choices = question(5, a, "web-lab").choices;
    let buttons = Some(Box::new(Buttons { prompt: ActionId(5), choices }));
    let asks = NewLine { author: "agent".into(), from_agent: true, buttons, ..line("q1", None) };
    let action = accept(&opened, "prompt").await;
    opened.store.say_lines(vec![asks], action).await.unwrap();
    let read = async || opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap().to_vec();
    let before = read().await;
    let shown = serde_json::to_value(&before[0]).unwrap();
    assert_eq!(shown["buttons"][1]["label"], "NO", "{shown}");
    assert!(!shown.to_string().contains("prompt"), "no number is shown: {shown}");
    let answer = |author: &str| LineAnswer {
        room: "lab".into(),
        message_id: "q1".into(),
        author: author.into(),
        shown: "→ YES (ann)".into(),
        press: Press { by: author.into(), ..press(5, "yes") },
        entry: entry(a, "wp1"),
    };
    let stranger = opened.store.answer_line(answer("eve")).await.unwrap_err();
    assert_eq!(stranger.kind(), Kind::Unauthorized);
    assert!(opened.store.answer_line(answer("ann")).await.unwrap());
    assert!(opened.store.answer_line(answer("ann")).await.unwrap(), "the same once more");
    assert_eq!(opened.seqs(a).await.len(), 1);
    let after = read().await;
    assert_eq!(
        (after[0].text.as_str(), after[0].buttons.is_none(), after[0].id),
        ("text of q1\n\n→ YES (ann)", true, 2)
    );
    let bob = Person { room: "lab".into(), user: "bob".into() };
    opened.store.invite(bob, [9; 32], &by()).await.unwrap();
    assert!(!opened.store.answer_line(answer("bob")).await.unwrap());
}

#[tokio::test]
async fn buttons_count_for_what_a_room_keeps() {
    let opened = Opened::new().with_ann_in(&["lab"]).await;
    let choice = |id: usize| Choice { id: format!("c{id}"), label: "🦀".repeat(80), style: None };
    let choices: Vec<Choice> = (0..25).map(choice).collect();
    let question = |number: usize| {
        let buttons = Some(Box::new(Buttons { prompt: ActionId(5), choices: choices.clone() }));
        NewLine { author: "agent".into(), from_agent: true, buttons, ..line(&format!("q{number}"), None) }
    };
    let action = accept(&opened, "send").await;
    opened.store.say_lines((0..1_200).map(question).collect(), action).await.unwrap();
    let kept: i64 = opened.number("SELECT count(*) FROM webchat_lines");
    assert!((500..1_100).contains(&kept), "{kept} of them are within 8 MiB");
    let page =
        opened.store.lines("lab", 0, PageSize { bytes: 100_000, ..PageSize::of(1_000) }).await.unwrap();
    assert!(page.len() < 50, "{} lines in one page", page.len());
}

/// Numbers by chance, the same for a seed each time.
struct Dice(u64);

impl Dice {
    /// One of so many.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// What a model expects of one sequence: who asked what, and what was answered.
#[derive(Default)]
struct Model {
    /// By number: who asked, and in which chat.
    asked: BTreeMap<i64, (InstanceId, &'static str)>,
    answered: BTreeMap<i64, String>,
}

/// Sequences of questions and presses, of which some are of other chats, other tenants, questions
/// that were never asked; in any order, some at the same moment.
#[tokio::test]
async fn a_thousand_sequences_of_questions_and_presses_go_as_a_model_says() {
    let sequences: u64 = if Opened::ERASES { 1_000 } else { 100 };
    let opened = Opened::new();
    let agents = [opened.instance("a").await, opened.instance("b").await];
    let chats = ["lab", "den"];
    let mut next = 1;
    let mut expected: BTreeMap<InstanceId, Vec<String>> = BTreeMap::new();
    for seed in 0..sequences {
        let mut dice = Dice(seed);
        let mut model = Model::default();
        let first = next;
        for step in 0..8 {
            if dice.roll(10) < 4 {
                let (agent, chat) = (dice.one_of(&agents), dice.one_of(&chats));
                opened.store.ask(question(next, agent, chat)).await.unwrap();
                model.asked.insert(next, (agent, chat));
                next += 1;
                continue;
            }
            // The last of them was never asked.
            let number = first + dice.roll((next - first) as u64 + 1) as i64;
            let (chat, presses) = (dice.one_of(&chats), 1 + dice.roll(2));
            let prompt = opened.store.prompt(ActionId(number)).await.unwrap();
            let (tenant, option) = (if dice.roll(10) == 0 { "bolt" } else { "acme" }, dice.roll(3) as usize);
            let to = Ok(Admitted::to(tenant, agents[0]));
            let by = Presser { chat_id: chat, person: "ann", private: false, admitted: &to };
            let verdict = judge(prompt.as_ref(), option, by, clock::wall());
            let is_its = model.asked.get(&number).is_some_and(|(_, of)| *of == chat);
            let is_open = is_its && !model.answered.contains_key(&number);
            let choice = ["yes", "no", "?"][option];
            let again = is_its && model.answered.get(&number).is_some_and(|given| given == choice);
            let counts = (is_open || again) && tenant == "acme" && option < 2;
            assert_eq!(matches!(verdict, Verdict::Answers(_)), counts, "seed {seed}, step {step}");
            let Verdict::Answers(decided) = verdict else { continue };
            let Answer { to, press, .. } = *decided;
            let pressed = (0..presses).map(|twin| {
                let message = format!("s{seed}.{step}.{twin}");
                let entry = answer(number, to.instance, &message).entry;
                let intake = Intake { entry, press: Some(press.clone()), ..Intake::default() };
                opened.store.take_in(&bot(), None, vec![intake])
            });
            let taken = futures_util::future::join_all(pressed).await;
            let won: Vec<usize> = taken
                .iter()
                .enumerate()
                .filter(|(_, taken)| taken.as_ref().unwrap()[0].appended.is_some())
                .map(|(twin, _)| twin)
                .collect();
            assert_eq!(won.len(), usize::from(is_open), "seed {seed}, step {step}: handled once");
            let [twin] = won[..] else { continue };
            assert_eq!(to.instance, model.asked[&number].0, "seed {seed}: it went to whoever asked");
            model.answered.insert(number, press.option_id.clone());
            expected.entry(to.instance).or_default().push(format!("s{seed}.{step}.{twin}"));
        }
    }
    for agent in agents {
        let found =
            opened.sql(&format!("SELECT message_id FROM journal WHERE instance = {} ORDER BY seq", agent.0));
        assert_eq!(found, expected.remove(&agent).unwrap_or_default(), "all of it, in order, nothing else");
    }
}
