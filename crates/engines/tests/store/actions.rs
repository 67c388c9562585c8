use super::open::Opened;
use angelia_core::clock;
use angelia_core::egress::ActionState;
use angelia_core::store::{ActionOutcome, LineEdit, NewAction, NewLine};

async fn action(opened: &Opened, op: &str) -> NewAction {
    let instance = match opened.store.gateways().await.unwrap().first() {
        Some(gateway) => gateway.instance,
        None => opened.instance("a").await,
    };
    NewAction {
        tenant: "acme".into(),
        instance,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        op: op.into(),
        reply_to: Some("m1".into()),
        body: b"{\"op\":\"send\"}".to_vec(),
        received_at: clock::wall(),
    }
}

fn said(id: &str) -> NewLine {
    NewLine {
        room: "lab".into(),
        message_id: id.into(),
        author: "agent".into(),
        from_agent: true,
        text: "hello".into(),
        reply_to: None,
        client_id: None,
        at: clock::wall(),
    }
}

#[tokio::test]
async fn an_accepted_action_is_found_after_a_restart_until_it_is_finished() {
    let opened = Opened::new();
    let first = opened.store.accept_action(action(&opened, "send").await).await.unwrap();
    let second = opened.store.accept_action(action(&opened, "send").await).await.unwrap();
    let opened = opened.reopen();
    let found = opened.store.unfinished_actions().await.unwrap();
    assert_eq!(found.iter().map(|a| a.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(
        (found[0].state, &found[0].action.body[..]),
        (ActionState::Accepted, &b"{\"op\":\"send\"}"[..])
    );
    let failed = ActionOutcome { state: ActionState::Failed, message_id: None, error: Some("no".into()) };
    opened.store.finish_action(first, failed).await.unwrap();
    opened.store.say_lines(vec![said("wa2")], second).await.unwrap();
    assert!(opened.store.unfinished_actions().await.unwrap().is_empty());
    let story = opened.store.explain_action("wa2").await.unwrap();
    assert_eq!((story[0].state.as_str(), story[0].reply_to.as_deref()), ("sent", Some("m1")));
}

#[tokio::test]
async fn the_same_line_said_twice_is_one_line() {
    let opened = Opened::new();
    let id = opened.store.accept_action(action(&opened, "send").await).await.unwrap();
    opened.store.say_lines(vec![said("wa1")], id).await.unwrap();
    opened.store.say_lines(vec![said("wa1")], id).await.unwrap();
    assert_eq!(opened.store.lines("lab", 0, 10).await.unwrap().len(), 1);
    assert_eq!(opened.witness.lines.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_edit_moves_a_line_behind_the_readers_and_only_agents_lines_are_edited() {
    let opened = Opened::new();
    let id = opened.store.accept_action(action(&opened, "send").await).await.unwrap();
    opened.store.say_lines(vec![said("wa1")], id).await.unwrap();
    let seen = opened.store.lines("lab", 0, 10).await.unwrap()[0].id;
    let edit = |message: &str| LineEdit {
        room: "lab".into(),
        message_id: message.into(),
        parts: vec!["new".into()],
    };
    let id = opened.store.accept_action(action(&opened, "edit").await).await.unwrap();
    assert!(opened.store.edit_line(edit("wa1"), id).await.unwrap());
    let lines = opened.store.lines("lab", seen, 10).await.unwrap();
    assert_eq!((lines.len(), lines[0].text.as_str(), lines[0].edited), (1, "new", true));
    let parts = |parts: &[&str]| LineEdit {
        parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        ..edit("wa1")
    };
    for (given, shown) in [(&["a", "b", "c"][..], 3), (&["a", "b"], 2), (&["a"], 1)] {
        let id = opened.store.accept_action(action(&opened, "edit").await).await.unwrap();
        assert!(opened.store.edit_line(parts(given), id).await.unwrap());
        assert_eq!(opened.store.lines("lab", 0, 10).await.unwrap().len(), shown, "parts come and go");
    }
    let person = NewLine { from_agent: false, ..said("wp1") };
    opened.store.post_line(person, None).await.unwrap();
    let id = opened.store.accept_action(action(&opened, "edit").await).await.unwrap();
    assert!(!opened.store.edit_line(edit("wp1"), id).await.unwrap());
    assert!(opened.store.unfinished_actions().await.unwrap().is_empty(), "a failed edit is finished too");
}
