use super::open::{ME, Opened, entry};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::egress::ActionState;
use angelia_core::inbox::{Seq, SettledBy};
use angelia_core::ports::log::{OpenTurn, Ownership, TurnNote};
use angelia_core::store::{
    ActionId, ActionOutcome, IdentityStore, JournalStore, LineEdit, NewAction, NewEntry, NewLine, PageSize,
    Settlement,
};
use angelia_core::turns::ConversationKey;

async fn action(opened: &Opened, op: &str) -> NewAction {
    let instance = match opened.store.gateways().await.unwrap().first() {
        Some(gateway) => gateway.instance,
        None => opened.instance("a").await,
    };
    NewAction {
        tenant: "acme".into(),
        gateway_id: None,
        thread_id: None,
        edits: None,
        instance,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        op: op.into(),
        reply_to: Some("m1".into()),
        body: b"{\"op\":\"send\"}".to_vec(),
        answering: None,
        received_at: clock::wall(),
    }
}

pub(super) async fn accept(opened: &Opened, op: &str) -> ActionId {
    let accepted = opened.store.accept(ME, vec![action(opened, op).await]).await;
    accepted.unwrap()[0].id
}

async fn state(opened: &Opened) -> Option<ActionState> {
    opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap().first().map(|action| action.state)
}

async fn begun_at(opened: &Opened) -> Option<UnixMillis> {
    opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap()[0].begun_at
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
        files: Vec::new(),
        undelivered: None,
        buttons: None,
        thread: None,
        thread_name: None,
        at: clock::wall(),
    }
}

#[tokio::test]
async fn an_accepted_action_is_found_after_a_restart_until_it_is_finished() {
    let opened = Opened::new();
    let first = accept(&opened, "send").await;
    let second = accept(&opened, "send").await;
    let opened = opened.reopen();
    let found = opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap();
    assert_eq!(found.iter().map(|a| a.id).collect::<Vec<_>>(), [first, second]);
    let body = opened.store.body(first).await.unwrap();
    assert_eq!((found[0].state, found[0].bytes), (ActionState::Accepted, 13));
    assert_eq!(body.as_deref(), Some(&b"{\"op\":\"send\"}"[..]));
    let failed = ActionOutcome { state: ActionState::Failed, message_id: None, error: Some("no".into()) };
    opened.store.finish(ME, vec![(first, failed)]).await.unwrap();
    opened.store.say_lines(vec![said("wa2")], second).await.unwrap();
    assert!(opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap().is_empty());
    let story = opened.store.explain_action("wa2").await.unwrap();
    assert_eq!((story[0].state.as_str(), story[0].reply_to.as_deref()), ("sent", Some("m1")));
}

#[tokio::test]
async fn the_same_line_said_twice_is_one_line() {
    let opened = Opened::new();
    let id = accept(&opened, "send").await;
    opened.store.say_lines(vec![said("wa1")], id).await.unwrap();
    opened.store.say_lines(vec![said("wa1")], id).await.unwrap();
    assert_eq!(opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap().len(), 1);
    assert_eq!(opened.witness.lines.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_edit_moves_a_line_behind_the_readers_and_only_agents_lines_are_edited() {
    let opened = Opened::new();
    let id = accept(&opened, "send").await;
    opened.store.say_lines(vec![said("wa1")], id).await.unwrap();
    let seen = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap()[0].id;
    let edit = |message: &str| LineEdit {
        room: "lab".into(),
        message_id: message.into(),
        parts: vec!["new".into()],
    };
    let id = accept(&opened, "edit").await;
    assert!(opened.store.edit_line(edit("wa1"), id).await.unwrap());
    let lines = opened.store.lines("lab", seen, PageSize::of(10)).await.unwrap();
    assert_eq!((lines.len(), lines[0].text.as_str(), lines[0].edited), (1, "new", true));
    let parts = |parts: &[&str]| LineEdit {
        parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        ..edit("wa1")
    };
    for (given, shown) in [(&["a", "b", "c"][..], 3), (&["a", "b"], 2), (&["a"], 1)] {
        let id = accept(&opened, "edit").await;
        assert!(opened.store.edit_line(parts(given), id).await.unwrap());
        assert_eq!(
            opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap().len(),
            shown,
            "parts come and go"
        );
    }
    let person = NewLine { from_agent: false, author: "ann".into(), ..said("wp1") };
    let opened = opened.with_ann_in_lab().await;
    opened.store.post_line(person, None).await.unwrap();
    let id = accept(&opened, "edit").await;
    assert!(!opened.store.edit_line(edit("wp1"), id).await.unwrap());
    assert!(
        opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap().is_empty(),
        "a failed edit is finished too"
    );
}

#[tokio::test]
async fn actions_accepted_together_are_numbered_in_order() {
    let opened = Opened::new();
    let mut actions = Vec::new();
    for n in 0..20 {
        actions.push(NewAction { chat_id: format!("c{n}"), ..action(&opened, "send").await });
    }
    let accepted = opened.store.accept(ME, actions).await.unwrap();
    let ids: Vec<_> = accepted.iter().map(|accepted| accepted.id).collect();
    assert!(ids.is_sorted());
    let found = opened.store.unfinished(ME, ActionId(0), 1_000).await.unwrap();
    let found: Vec<_> = found.iter().map(|stored| (stored.id, stored.chat_id.clone())).collect();
    let expected: Vec<_> = ids.iter().enumerate().map(|(n, id)| (*id, format!("c{n}"))).collect();
    assert_eq!(found, expected);
    assert!(opened.store.accept(ME, Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_action_goes_to_and_fro_until_it_has_ended() {
    let opened = Opened::new();
    let id = accept(&opened, "send").await;
    opened.store.postpone(ME, id).await.unwrap();
    assert_eq!(state(&opened).await, Some(ActionState::Accepted));
    assert_eq!(begun_at(&opened).await, None);
    let before = clock::wall();
    opened.store.begin(ME, id).await.unwrap();
    let opened = opened.reopen();
    assert_eq!(state(&opened).await, Some(ActionState::Sending));
    let begun = begun_at(&opened).await;
    assert!(begun.is_some_and(|at| before <= at && at <= clock::wall()), "{begun:?}");
    opened.sql("UPDATE actions SET begun_at = 7");
    opened.store.begin(ME, id).await.unwrap();
    assert_eq!(begun_at(&opened).await, Some(UnixMillis(7)), "the first time counts");
    opened.store.postpone(ME, id).await.unwrap();
    assert_eq!(state(&opened).await, Some(ActionState::Accepted));
    assert_eq!(begun_at(&opened).await, None, "it was not begun");
    let end = |state, message_id: &str| ActionOutcome {
        state,
        message_id: Some(message_id.to_owned()),
        error: None,
    };
    opened.store.finish(ME, vec![(id, end(ActionState::Superseded, "m9"))]).await.unwrap();
    opened.store.begin(ME, id).await.unwrap();
    opened.store.finish(ME, vec![(id, end(ActionState::Sent, "m10"))]).await.unwrap();
    assert_eq!(state(&opened).await, None, "what has ended is not begun again");
    let story = opened.store.explain_action("m9").await.unwrap();
    assert_eq!(story[0].state, "superseded", "nor does its end change");
}

#[tokio::test]
async fn what_nobody_knows_the_end_of_is_shown() {
    let opened = Opened::new();
    let (sure, unsure) = (accept(&opened, "send").await, accept(&opened, "send").await);
    let end =
        |state, error: Option<&str>| ActionOutcome { state, message_id: None, error: error.map(Into::into) };
    opened.store.finish(ME, vec![(sure, end(ActionState::Sent, None))]).await.unwrap();
    opened.store.finish(ME, vec![(unsure, end(ActionState::Ambiguous, Some("no answer")))]).await.unwrap();
    let shown = opened.store.ambiguous_actions(10).await.unwrap();
    assert_eq!(shown.iter().map(|action| action.id).collect::<Vec<_>>(), [unsure]);
    assert_eq!(shown[0].error.as_deref(), Some("no answer"));
}

#[tokio::test]
async fn what_became_of_a_message_is_noted_with_what_sent_it() {
    let opened = Opened::new();
    let (sent, other) = (accept(&opened, "send").await, accept(&opened, "send").await);
    let end =
        |id: &str| ActionOutcome { state: ActionState::Sent, message_id: Some(id.to_owned()), error: None };
    opened.store.finish(ME, vec![(sent, end("wa1"))]).await.unwrap();
    opened.store.finish(ME, vec![(other, end("wa2"))]).await.unwrap();
    let webchat = BotKey::new("webchat", "webchat");
    let note = async |bot: &BotKey, message: &str, before: Option<&str>, receipt: &str| {
        opened.store.note_receipt(bot, message, before, receipt).await.unwrap()
    };
    assert!(note(&webchat, "wa1", None, "sent").await);
    assert!(note(&webchat, "wa1", Some("sent"), "delivered").await);
    assert!(!note(&webchat, "wa1", Some("sent"), "queued").await, "it is something else by now");
    assert!(!note(&webchat, "wa3", None, "failed").await, "nobody sent that");
    for stranger in [BotKey::new("webchat", "second"), BotKey::new("sms", "webchat")] {
        assert!(!note(&stranger, "wa1", Some("delivered"), "failed").await);
    }
    let receipt = async |id: &str| opened.store.explain_action(id).await.unwrap().remove(0).receipt;
    assert_eq!(receipt("wa1").await.as_deref(), Some("delivered"), "the latest counts");
    assert_eq!(receipt("wa2").await, None);
}

#[tokio::test]
async fn a_message_is_told_by_its_chat_where_ids_repeat() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let in_chat = |chat: &str| NewEntry { chat_id: chat.into(), ..entry(a, "m1") };
    for chat in ["web-lab", "web-den", "-5/7"] {
        opened.store.append(in_chat(chat)).await.unwrap();
    }
    let elsewhere = NewEntry { bot: "other".into(), ..in_chat("web-lab") };
    opened.store.append(elsewhere).await.unwrap();
    for chat in ["web-lab", "web-den"] {
        let answer = NewAction { chat_id: chat.into(), ..action(&opened, "send").await };
        let id = opened.store.accept(ME, vec![answer]).await.unwrap()[0].id;
        let sent = ActionOutcome { state: ActionState::Sent, message_id: Some("wa1".into()), error: None };
        opened.store.finish(ME, vec![(id, sent)]).await.unwrap();
    }
    let explain = async |message: &str| -> Vec<(String, String, usize)> {
        let stories = opened.store.explain(message).await.unwrap();
        stories.into_iter().map(|story| (story.chat_id, story.bot, story.replies.len())).collect()
    };
    let row = |chat: &str, bot: &str, replies| (chat.to_owned(), bot.to_owned(), replies);
    let all = [
        row("web-lab", "webchat", 1),
        row("web-den", "webchat", 1),
        row("-5/7", "webchat", 0),
        row("web-lab", "other", 0),
    ];
    assert_eq!(explain("m1").await, all);
    assert_eq!(explain("web-den/m1").await, all[1..2]);
    assert_eq!(explain("-5/7/m1").await, all[2..3], "a topic has a / of its own");
    assert_eq!(explain("elsewhere/m1").await, []);
    let number = opened.store.explain("m1").await.unwrap()[3].seq.buffer_id();
    assert_eq!(explain(&number).await, all[3..]);
    assert_eq!(opened.store.explain_action("wa1").await.unwrap().len(), 2);
    let told = opened.store.explain_action("web-den/wa1").await.unwrap();
    assert_eq!(told.iter().map(|action| action.chat_id.as_str()).collect::<Vec<_>>(), ["web-den"]);
}

#[tokio::test]
async fn a_story_tells_what_was_held_and_what_was_interrupted() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for message in ["m1", "m2", "m3"] {
        opened.store.append(entry(a, message)).await.unwrap();
    }
    let epoch = opened.store.claim(a, "one").await.unwrap().epoch;
    let (first, second) = (Seq(1), Seq(2));
    let turn = OpenTurn {
        conversation: ConversationKey { chat_id: "web-lab".into(), session_key: None },
        platform: "webchat".into(),
        bot: "webchat".into(),
        thread_id: None,
        seq: first,
        message_id: "m1".into(),
        author: None,
        asks: false,
    };
    // As a rule what began a turn is settled by the time it is interrupted.
    let settled = Settlement { seq: first, by: SettledBy::Ack, pushed_at: None };
    opened.store.settle(a, epoch, vec![settled]).await.unwrap();
    let notes = vec![TurnNote::Held(second), TurnNote::Interrupted(turn)];
    assert_eq!(opened.store.note_turns(a, epoch, notes).await.unwrap(), Ownership::Ours);
    let told = async |message: &str| {
        let story = opened.store.explain(message).await.unwrap().remove(0);
        (story.held_at.is_some(), story.interrupted_at.is_some())
    };
    assert_eq!(told("m1").await, (false, true));
    assert_eq!(told("m2").await, (true, false));
    assert_eq!(told("m3").await, (false, false));
}
