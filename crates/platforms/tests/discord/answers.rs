//! From what an agent says to somebody who waits to what that person sees.

use super::edge::{BOT, Edge, TOKEN};
use super::world::{edit, push_commands, send};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::egress::Dedupe;
use angelia_core::error::Kind;
use angelia_core::secret::Secret;
use angelia_core::vault::{LIVES_FOR, Way};
use angelia_platforms::{Answer, Earlier, Outcome, Platform, Reach};
use serde_json::json;
use std::time::Duration;

fn answer(way: Way) -> Answer {
    // Of an interaction of a minute ago.
    ends(way, clock::wall().after(LIVES_FOR - Duration::from_secs(60)))
}

fn ends(way: Way, expires_at: UnixMillis) -> Answer {
    Answer { way, credential: Secret::new(format!("{BOT}/{TOKEN}")), expires_at }
}

fn id(outcome: Outcome) -> String {
    match outcome {
        Outcome::Sent { message_id, .. } => message_id,
        other => panic!("{other:?}"),
    }
}

const MESSAGES: &str = "POST channels/111/messages";

fn original() -> String {
    format!("PATCH webhooks/{BOT}/{TOKEN}/messages/@original")
}

fn further() -> String {
    format!("POST webhooks/{BOT}/{TOKEN}?wait=true")
}

#[tokio::test]
async fn an_answer_takes_its_place_and_the_rest_goes_behind_it() {
    let edge = Edge::new().await;
    let long = "x".repeat(4_500);
    let first = id(edge.deliver(1, send("111", &long, Some("901")), Some(answer(Way::Original))).await);
    assert_eq!(first, "5000");
    assert_eq!(edge.api.calls(), [original(), MESSAGES.into(), MESSAGES.into()]);
    let made = edge.api.made.lock().unwrap().clone();
    let by_bot: Vec<bool> = made.iter().map(|made| made.by_bot).collect();
    assert_eq!(by_bot, [false, true, true], "the bot's own token does not go where another does");
    assert!(made.iter().all(|made| made.body["allowed_mentions"]["parse"] == json!([])));
    assert!(made[1].body["enforce_nonce"] == true && made[1].body["nonce"] != made[2].body["nonce"]);
    assert_eq!(made[2].body["content"].as_str().unwrap().len(), 500);
    id(edge.deliver(2, send("111", "more", Some("901")), Some(answer(Way::Further))).await);
    assert_eq!(edge.api.calls().last(), Some(&further()));
    // Later it is a message like any other, with its pieces.
    id(edge.deliver(3, edit("111", &first, "short"), None).await);
    assert_eq!(
        edge.api.calls()[4..],
        [
            "PATCH channels/111/messages/5000",
            "DELETE channels/111/messages/5001",
            "DELETE channels/111/messages/5002"
        ]
    );
}

#[tokio::test]
async fn what_cannot_be_answered_any_more_is_said_in_the_chat() {
    let edge = Edge::new().await;
    id(edge.deliver(1, send("111", "late", Some("901")), Some(ends(Way::Original, clock::wall()))).await);
    assert_eq!(edge.api.calls(), [MESSAGES], "what is over is not tried");
    for (status, code) in [(404, 10_062), (401, 50_027), (401, 0)] {
        let before = edge.api.calls().len();
        edge.api.answer_next(status, json!({"code": code, "message": "gone"}));
        id(edge.deliver(2, send("111", "gone", Some("901")), Some(answer(Way::Original))).await);
        assert_eq!(edge.api.calls()[before..], [original(), MESSAGES.to_owned()], "{code}");
    }
    let made = edge.api.made.lock().unwrap().last().unwrap().clone();
    assert!(made.by_bot, "the bot's own token is still good");
    assert_eq!(made.body["enforce_nonce"], true);
    assert!(made.body.get("message_reference").is_none(), "an interaction is no message");
    // Deleted by somebody, its place is gone; by the credential it can still be said.
    let deleted = || edge.api.answer_next(404, json!({"code": 10_008, "message": "gone"}));
    let before = edge.api.calls().len();
    deleted();
    id(edge.deliver(3, send("111", "x", None), Some(answer(Way::Original))).await);
    deleted();
    deleted();
    id(edge.deliver(4, send("111", "x", None), Some(answer(Way::Original))).await);
    let calls = [original(), further(), original(), further(), MESSAGES.into()];
    assert_eq!(edge.api.calls()[before..], calls);
    // Other refusals are about what is said.
    for (status, code) in [(403, 50_013), (403, 200_000), (404, 0), (400, 50_035)] {
        edge.api.answer_next(status, json!({"code": code, "message": "no"}));
        let refused = edge.deliver(5, send("111", "no", None), Some(answer(Way::Original))).await;
        assert!(matches!(refused, Outcome::Refused { .. }), "{code} {refused:?}");
        assert_eq!(edge.api.calls().last(), Some(&original()), "{code}");
    }
}

#[tokio::test]
async fn what_may_have_been_answered_is_not_said_in_the_chat() {
    let edge = Edge::new().await;
    let long = || send("111", &"x".repeat(2_500), None);
    for (status, code) in [(404, 10_062), (401, 50_027), (404, 10_008)] {
        for earlier in [Earlier::Perhaps, Earlier::CutOff(Duration::ZERO)] {
            edge.api.answer_next(status, json!({"code": code, "message": "gone"}));
            let open = edge.deliver_after(earlier, 1, long(), Some(answer(Way::Original))).await;
            assert!(matches!(open, Outcome::Open { .. }), "{code} {open:?}");
        }
    }
    let over = Some(ends(Way::Original, clock::wall()));
    let open = edge.deliver_after(Earlier::Perhaps, 1, long(), over).await;
    assert!(matches!(open, Outcome::Open { .. }), "{open:?}");
    assert!(edge.api.calls().iter().all(|call| *call == original()), "{:?}", edge.api.calls());
    // In its own place it may be said as often as it takes; the rest only while its nonce is known.
    let before = edge.api.calls().len();
    let minute = Earlier::CutOff(Duration::from_secs(60));
    id(edge.deliver_after(minute, 1, long(), Some(answer(Way::Original))).await);
    let hour = Earlier::CutOff(Duration::from_secs(3_600));
    id(edge.deliver_after(hour, 2, send("111", "x", None), Some(answer(Way::Original))).await);
    let open = edge.deliver_after(hour, 3, long(), Some(answer(Way::Original))).await;
    assert!(matches!(open, Outcome::Open { .. }), "{open:?}");
    assert_eq!(edge.api.calls()[before..], [original(), MESSAGES.into(), original(), original()]);
}

#[tokio::test]
async fn an_answer_can_be_faster_than_its_deferral() {
    let edge = Edge::new().await;
    let early = || edge.api.answer_next(404, json!({"code": 10_015, "message": "Unknown Webhook"}));
    early();
    early();
    // Whatever the clocks here and there say.
    id(edge.deliver(1, send("111", "quick", Some("901")), Some(answer(Way::Original))).await);
    assert_eq!(edge.api.calls(), [original(), original(), original()], "nobody is left waiting");
    (0..7).for_each(|_| early());
    id(edge.deliver(2, send("111", "gone", Some("901")), Some(answer(Way::Original))).await);
    let calls = edge.api.calls();
    assert_eq!((calls.len(), calls.last().unwrap().as_str()), (11, MESSAGES), "in the end it is gone");
}

#[tokio::test]
async fn the_rest_of_an_answer_goes_behind_it_where_the_bot_may_not_write() {
    let edge = Edge::new().await;
    let long = || send("111", &"x".repeat(4_500), None);
    let shut = || {
        edge.api.answer_next(200, json!({"id": "6000"}));
        edge.api.answer_next(403, json!({"code": 50_001, "message": "Missing Access"}));
    };
    shut();
    id(edge.deliver(1, long(), Some(answer(Way::Original))).await);
    assert_eq!(edge.api.calls(), [original(), MESSAGES.into(), further(), further()], "asked once");
    // There Discord recognises nothing.
    for (status, code) in [(502, 0), (404, 10_015)] {
        let before = edge.api.calls().len();
        edge.api.answer_next(200, json!({"id": "7000"}));
        edge.api.answer_next(403, json!({"code": 50_013, "message": "Missing Permissions"}));
        edge.api.answer_next(status, json!({"code": code, "message": "m"}));
        let outcome = edge.deliver(2, long(), Some(answer(Way::Original))).await;
        assert!(matches!((&outcome, status), (Outcome::Open { .. }, 502) | (Outcome::Refused { .. }, 404)));
        assert_eq!(edge.api.calls()[before..], [original(), MESSAGES.into(), further()]);
    }
    let before = edge.api.calls().len();
    edge.api.answer_next(200, json!({"id": "8000"}));
    edge.api.answer_next(403, json!({"code": 50_001, "message": "Missing Access"}));
    let cut_off = Earlier::CutOff(Duration::ZERO);
    let open = edge.deliver_after(cut_off, 3, long(), Some(answer(Way::Original))).await;
    assert!(matches!(open, Outcome::Open { .. }), "{open:?}");
    assert_eq!(edge.api.calls()[before..], [original(), MESSAGES.into()]);
}

#[tokio::test]
async fn what_may_have_been_said_is_not_said_again() {
    let edge = Edge::new().await;
    edge.api.answer_next(502, json!({}));
    let unknown = edge.deliver(1, send("111", "x", None), Some(answer(Way::Further))).await;
    assert!(matches!(unknown, Outcome::Unknown { .. }), "{unknown:?}");
    for (is_global, reach) in [(false, Reach::Action), (true, Reach::Bot)] {
        for way in [Way::Original, Way::Further] {
            let slow = json!({"message": "slow", "retry_after": 0.05, "global": is_global});
            edge.api.answer_next(429, slow);
            let later = edge.deliver(2, send("111", "x", None), Some(answer(way))).await;
            assert!(matches!(later, Outcome::Later { reach: told, .. } if told == reach), "{later:?}");
        }
    }
    // Where its place is gone it takes no other twice.
    edge.api.answer_next(404, json!({"code": 10_008, "message": "gone"}));
    edge.api.answer_next(502, json!({}));
    let open = edge.deliver(3, send("111", "x", None), Some(answer(Way::Original))).await;
    assert!(matches!(open, Outcome::Open { .. }), "{open:?}");
    let sent = send("111", "x", None);
    assert_eq!(edge.bot.dedupe(&sent, Some(Way::Further)), Dedupe::No);
    assert_eq!(edge.bot.dedupe(&sent, Some(Way::Original)), Dedupe::Yes);
    assert!(matches!(edge.bot.dedupe(&sent, None), Dedupe::For(_)));
}

#[tokio::test]
async fn whoever_waits_in_vain_is_told() {
    let edge = Edge::new().await;
    edge.bot.tell_waiting(&answer(Way::Original), "nothing came").await.unwrap();
    edge.bot.tell_waiting(&answer(Way::Further), "nothing came").await.unwrap();
    assert_eq!(edge.api.calls(), [original(), further()]);
    let flags: Vec<_> = edge.api.made.lock().unwrap().iter().map(|made| made.body["flags"].clone()).collect();
    assert_eq!(flags, [json!(null), json!(64)], "the others there do not wait");
    let mut kinds = Vec::new();
    for (way, status) in
        [(Way::Original, 502), (Way::Further, 502), (Way::Original, 429), (Way::Original, 404)]
    {
        edge.api.answer_next(status, json!({"code": 10_015, "message": "m", "retry_after": 1}));
        let error = edge.bot.tell_waiting(&answer(way), "x").await.unwrap_err();
        assert!(!error.to_string().contains(TOKEN), "{error}");
        kinds.push(error.kind());
    }
    assert_eq!(kinds, [Kind::Unavailable, Kind::Internal, Kind::Unavailable, Kind::NotFound]);
}

#[tokio::test]
async fn commands_are_registered_for_the_application() {
    let edge = Edge::new().await;
    let shown = push_commands(&*edge.bot).await;
    let names: Vec<&str> = shown.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(names, ["ask", "new", "stop", "status", "help"]);
    assert!(shown[0].options[0].required);
    let asked = ["GET applications/@me", "GET applications/78/commands"];
    assert_eq!(
        edge.api.calls(),
        [&asked[..], &["GET applications/@me", "PUT applications/78/commands"]].concat()
    );
    assert_eq!(edge.bot.shown_commands().await.unwrap().len(), 1);
}
