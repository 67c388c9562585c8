use super::*;
use crate::admission::{Admitted, Approve, DropReason, RouteOptions};
use crate::own_words::OwnWords;
use angelia_contract::action::Action;
use serde_json::{Value, json};

fn asked(more: Value) -> Action {
    let mut ask = json!({
        "op": "prompt", "chat_id": "7", "prompt_kind": "approval", "prompt_id": "a1b2c3.deadbeef",
        "content": "May I?", "options": [{"id": "once", "label": "Once"}, {"id": "deny", "label": "No"}],
    });
    for (key, value) in more.as_object().unwrap() {
        ask[key] = value.clone();
    }
    Action::from_value(ask)
}

fn written(action: &Action) -> NewPrompt {
    let place = (BotKey::new("telegram", "77"), "7".to_owned());
    NewPrompt::of(action, ActionId(5), ("acme", InstanceId(1)), place).unwrap().unwrap()
}

fn prompt(more: Value) -> Prompt {
    let new = written(&asked(more));
    Prompt {
        number: new.number,
        tenant: new.tenant,
        instance: new.instance,
        bot: new.bot,
        chat_id: new.chat_id,
        prompt_id: new.prompt_id,
        kind: new.kind,
        choices: new.choices,
        asked_of: new.asked_of,
        expires_at: UnixMillis(1_000),
        answered: None,
    }
}

#[test]
fn a_question_that_cannot_be_shown_is_refused_with_the_reason() {
    assert_eq!(usable(&asked(json!({}))), Ok(()));
    let many: Vec<Value> = (0..26).map(|n| json!({"id": format!("c{n}"), "label": "x"})).collect();
    for odd in [
        json!({"content": " \n"}),
        json!({"options": []}),
        json!({"options": many}),
        json!({"prompt_id": "a b"}),
        json!({"prompt_id": ""}),
        json!({"options": [{"id": "x", "label": "1"}, {"id": "x", "label": "2"}]}),
        json!({"options": [{"id": "ö", "label": "1"}]}),
    ] {
        assert!(usable(&asked(odd.clone())).is_err(), "{odd}");
    }
    assert_eq!(usable(&Action::GetChatInfo { chat_id: "7".into() }), Ok(()), "that is no question");
}

#[test]
fn labels_are_one_line_and_not_too_long() {
    let long = "x".repeat(200);
    let options = json!({"options": [{"id": "a", "label": " two\n lines "}, {"id": "b", "label": ""}, {"id": "c", "label": long}]});
    let labels: Vec<String> = written(&asked(options)).choices.into_iter().map(|it| it.label).collect();
    assert_eq!(&labels[..2], ["two lines", "b"]);
    assert!(labels[2].chars().count() == MAX_LABEL && labels[2].ends_with('…'));
}

#[test]
fn a_question_lasts_as_long_as_its_gateway_waits() {
    let lasts = |timeout: Value| written(&asked(json!({"timeout_s": timeout}))).open_for;
    assert_eq!(lasts(Value::Null), OPEN_FOR);
    assert_eq!(lasts(json!(90)), Duration::from_secs(90));
    assert_eq!(lasts(json!(1e12)), OPEN_AT_MOST);
    assert_eq!((lasts(json!(0)), lasts(json!(-5))), (OPEN_FOR, OPEN_FOR));
}

#[test]
fn whose_turn_it_is_the_connector_knows_better() {
    let mut action = asked(json!({"metadata": {"user_id": "99"}}));
    assert_eq!(written(&action).asked_of, ["99"], "nobody's turn is known");
    note_asked_of(&mut action, &[]);
    assert_eq!(written(&action).asked_of, ["99"]);
    note_asked_of(&mut action, &["81".into(), "82".into()]);
    assert_eq!(written(&action).asked_of, ["81", "82"]);
    // What is stored is read again as any action is.
    let again = Action::from_value(serde_json::to_value(&action).unwrap());
    assert_eq!(written(&again).asked_of, ["81", "82"]);
    let crowd: Vec<String> = (0..1_000).map(|n| format!("{n:018}")).collect();
    note_asked_of(&mut action, &crowd);
    let again = Action::from_value(serde_json::to_value(&action).unwrap());
    assert!(!written(&again).asked_of.is_empty(), "some of them still fit");
    assert_eq!(written(&asked(json!({}))).asked_of, Vec::<String>::new());
}

#[test]
fn a_button_says_what_it_means_and_nothing_else_does() {
    let button = Button { number: ActionId(i64::MAX), option: 24 };
    assert!(button.token().len() <= 40);
    assert_eq!(Button::read(&button.token()), Some(button));
    for other in
        ["", "hp1:a:b", "angelia:", "angelia:1", "angelia:1:", "angelia:+1:0", "angelia:01:0", "angelia:1:0 "]
    {
        assert_eq!(Button::read(other), None, "{other:?}");
    }
}

#[test]
fn a_number_or_the_words_of_an_option_are_its_press() {
    let labels = ["Allow Once", "Deny"];
    let means = |said: &str| picked(said, labels);
    assert_eq!(
        (means("1"), means(" 2. "), means("2)"), means("deny"), means("ALLOW once!")),
        (Some(0), Some(1), Some(1), Some(1), Some(0))
    );
    for other in ["0", "3", "-1", "one", "1 please", "", "18446744073709551616"] {
        assert_eq!(means(other), None, "{other:?}");
    }
    assert_eq!((picked("2", ["10", "5", "2"]), picked("2024", ["2023", "2024"])), (None, Some(1)));
    let choices = choices(&[]);
    assert_eq!(numbered("Which?\n", &choices), "Which?\n");
    let text = numbered("Which?", &prompt(json!({})).choices);
    assert_eq!(text, "Which?\n\n1. Once\n2. No");
}

struct Case {
    person: &'static str,
    chat: &'static str,
    private: bool,
    to: Admitted,
}

fn case() -> Case {
    Case { person: "81", chat: "7", private: false, to: Admitted::to("acme", InstanceId(1)) }
}

fn judged(prompt: Option<&Prompt>, option: usize, case: &Case, now: i64) -> Verdict {
    let admitted = Ok(case.to.clone());
    let by = Presser { chat_id: case.chat, person: case.person, private: case.private, admitted: &admitted };
    judge(prompt, option, by, UnixMillis(now))
}

fn says(verdict: &Verdict) -> Option<OwnWords> {
    match verdict {
        Verdict::Say(words) => Some(*words),
        _ => None,
    }
}

#[test]
fn an_approval_is_given_by_whose_turn_it_is() {
    let asked = prompt(json!({"metadata": {"user_id": "81"}}));
    let Verdict::Answers(answer) = judged(Some(&asked), 1, &case(), 0) else {
        panic!("it is theirs to give");
    };
    let Answer { to, press, response, label } = *answer;
    assert_eq!((to.instance, press.option_id.as_str(), press.by.as_str()), (InstanceId(1), "deny", "81"));
    assert_eq!((response.prompt_id.as_str(), response.option_id.as_str()), ("a1b2c3.deadbeef", "deny"));
    assert_eq!(label, "No");
    let bob = Case { person: "82", ..case() };
    assert_eq!(says(&judged(Some(&asked), 1, &bob, 0)), Some(OwnWords::PromptNotYours));
    let alone = Case { private: true, ..bob };
    assert!(says(&judged(Some(&asked), 1, &alone, 0)).is_none(), "nobody else is there");
    let options = RouteOptions { approve: Approve::Any, ..RouteOptions::default() };
    let any = Case { person: "82", to: Admitted { options, ..case().to }, ..case() };
    assert!(says(&judged(Some(&asked), 1, &any, 0)).is_none(), "the route lets anybody");
    let nobodys = prompt(json!({}));
    assert_eq!(
        says(&judged(Some(&nobodys), 1, &case(), 0)),
        Some(OwnWords::PromptNotYours),
        "nobody knows whose"
    );
    let clarify = prompt(json!({"prompt_kind": "clarify"}));
    assert!(says(&judged(Some(&clarify), 1, &Case { person: "82", ..case() }, 0)).is_none());
}

#[test]
fn a_press_goes_to_whoever_asked_and_nobody_else() {
    let asked = prompt(json!({"metadata": {"user_id": "81"}}));
    let over = |prompt: Option<&Prompt>, option, case: &Case, now| {
        says(&judged(prompt, option, case, now)) == Some(OwnWords::PromptOver)
    };
    assert!(over(None, 0, &case(), 0), "it is forgotten");
    assert!(over(Some(&asked), 2, &case(), 0), "there is no such button");
    assert!(over(Some(&asked), 0, &case(), 1_000), "it waited too long");
    let given = |option: &str, by: &str| {
        let answered = Some(Given { option_id: option.into(), by: by.into() });
        Prompt { answered, ..asked.clone() }
    };
    assert!(over(Some(&given("once", "82")), 0, &case(), 0), "somebody else was first");
    assert!(over(Some(&given("deny", "81")), 0, &case(), 0), "it was answered otherwise");
    assert!(!over(Some(&given("once", "81")), 0, &case(), 5_000), "by the same press, or the same person");
    assert!(over(Some(&asked), 0, &Case { chat: "8", ..case() }, 0), "somewhere else");
    let other = Case { to: Admitted::to("bolt", InstanceId(9)), ..case() };
    assert!(over(Some(&asked), 0, &other, 0), "the chat is another tenant's by now");
    let sibling = Case { to: Admitted::to("acme", InstanceId(2)), ..case() };
    let Verdict::Answers(answer) = judged(Some(&asked), 0, &sibling, 0) else {
        panic!("it may answer there")
    };
    assert_eq!(
        answer.to.instance,
        InstanceId(1),
        "what is said there goes to another of the tenant's, the press does not"
    );
    let named = Case { to: Admitted { named: true, ..Admitted::to("acme", InstanceId(2)) }, ..case() };
    assert!(over(Some(&asked), 0, &named, 0), "only that one answers there by now");
    let nobody = Err(DropReason::AuthorNotAllowed);
    let by = Presser { chat_id: "7", person: "81", private: false, admitted: &nobody };
    assert_eq!(judge(Some(&asked), 0, by, UnixMillis(0)), Verdict::Nobody(DropReason::AuthorNotAllowed));
}
