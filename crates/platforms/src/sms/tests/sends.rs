//! What becomes of texts, by what Twilio answers.

use super::*;
use crate::sms::parse::Status;
use angelia_core::clock;
use angelia_core::egress::{ActionState, Bot, Owner, Whereabouts};
use angelia_core::store::{ActionOutcome, JournalStore, NewAction};
use serde_json::json;

const STATUS: &str = "https://bots.example.com/webhooks/sms/main/status";

fn taken(sid: &str) -> serde_json::Value {
    json!({ "sid": sid, "status": "queued" })
}

fn fields(body: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

#[tokio::test]
async fn a_text_is_posted_with_the_accounts_credential() {
    let world = World::new().await;
    world.twilio.answers(201, taken("SM1"));
    assert_eq!(world.send("hi & bye + é").await, Outcome::Sent { message_id: "SM1".into(), recorded: false });
    let asked = world.twilio.asked();
    assert_eq!(asked[0].what, format!("POST /2010-04-01/Accounts/{ACCOUNT}/Messages.json"));
    let expected = [("To", ANN), ("From", OWN), ("Body", "hi & bye + é"), ("StatusCallback", STATUS)];
    assert_eq!(fields(&asked[0].body), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(asked[0].headers["authorization"].to_str().unwrap().starts_with("Basic "));
}

#[tokio::test]
async fn every_answer_has_its_outcome() {
    let world = World::new().await;
    let refused = |code: u64| json!({ "code": code, "message": format!("no, {ANN}"), "status": 400 });
    world.twilio.answers(400, refused(21610));
    let Outcome::Refused { why } = world.send("hi").await else { panic!("taken") };
    assert!(why.contains("STOP") && !why.contains("5550199"), "{why}");
    world.twilio.answers(400, refused(12345));
    let Outcome::Refused { why } = world.send("hi").await else { panic!("taken") };
    assert!(why.contains("error 12345") && !why.contains("5550199"), "{why}");
    world.twilio.answers(401, json!({ "code": 20003, "message": "Authenticate" }));
    let Outcome::Refused { why } = world.send("hi").await else { panic!("taken") };
    assert!(why.contains("auth_token") && !why.contains("hunter2"), "{why}");
    world.twilio.answers_with(429, &[("retry-after", "7")], "{}");
    let later = world.send("hi").await;
    assert!(
        matches!(later, Outcome::Later { after, reach: Reach::Bot, .. } if after == Duration::from_secs(7))
    );
    for (status, body) in [(500, "oops"), (503, "{}"), (201, "not json"), (201, "{\"sid\":\"../x\"}")] {
        world.twilio.answers(status, body);
        assert!(matches!(world.send("hi").await, Outcome::Unknown { .. }), "{status} {body}");
    }
    world.twilio.asked();
    // Nobody is led elsewhere with the credential.
    world.twilio.answers_with(307, &[("location", "/elsewhere")], "");
    assert!(matches!(world.send("hi").await, Outcome::Later { reach: Reach::Action, .. }));
    assert_eq!(world.twilio.asked().len(), 1);
    assert!(matches!(world.send(" \n").await, Outcome::Refused { .. }));
    assert!(world.twilio.asked().is_empty(), "there was nothing to say");

    // Nobody is there at all.
    let closed = angelia_testkit::process::free_port();
    let world = World::at(Twilio::default(), &format!("http://127.0.0.1:{closed}")).await;
    assert!(matches!(world.send("hi").await, Outcome::Later { reach: Reach::Action, .. }));
}

#[tokio::test]
async fn receipts_are_given_up_where_twilio_cannot_bring_them() {
    let world = World::new().await;
    world.twilio.answers(400, json!({ "code": 21609, "message": "The StatusCallback URL is not valid" }));
    world.twilio.answers(201, taken("SM1"));
    world.twilio.answers(201, taken("SM2"));
    assert!(matches!(world.send("one").await, Outcome::Sent { .. }));
    assert!(matches!(world.send("two").await, Outcome::Sent { .. }));
    let with = |asked: &Asked| asked.body.contains("StatusCallback");
    assert_eq!(world.twilio.asked().iter().map(with).collect::<Vec<_>>(), [true, false, false]);
}

/// Counts what it is asked, and lets a further call through or not.
struct Counted(std::sync::atomic::AtomicUsize, bool);

impl Progress for Counted {
    fn first_part(&self, _message_id: &str) {}

    fn next_call(&self) -> BoxFuture<'_, bool> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let may = self.1;
        Box::pin(async move { may })
    }

    fn pause(&self, _reach: Reach, _pause: Duration) {}

    fn still_allowed(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_link_in_the_place_of_a_refused_picture_is_a_further_call() {
    let world = World::new().await;
    for (may, calls) in [(true, 2), (false, 1)] {
        world.twilio.answers(400, json!({ "code": 21612, "message": "no pictures there" }));
        world.twilio.answers(201, taken("SM1"));
        let progress = Arc::new(Counted(Default::default(), may));
        let action = Action::SendMedia {
            chat_id: ANN.into(),
            media_kind: "image".into(),
            source_url: String::new(),
            content: "look".into(),
            reply_to: None,
            filename: None,
            metadata: Default::default(),
        };
        let delivery = Delivery {
            id: ActionId(1),
            received_at: angelia_core::clock::wall(),
            target: Target::chat(ANN),
            action,
            answer: None,
            file: Some(crate::kit::upload::tests::picture("acme", Some(b"\x89PNG\r\n\x1a\n"))),
            earlier: crate::platform::Earlier::Nothing,
            progress: progress.clone(),
        };
        let sent = world.sms.deliver(delivery).await;
        assert_eq!(matches!(sent, Outcome::Sent { .. }), may, "{sent:?}");
        assert_eq!(progress.0.load(std::sync::atomic::Ordering::Relaxed), 1, "it asked");
        let asked = world.twilio.asked();
        assert_eq!(asked.len(), calls);
        assert!(
            asked[0].body.contains("MediaUrl")
                && asked.iter().skip(1).all(|it| !it.body.contains("MediaUrl"))
        );
        world.twilio.answers.lock().clear();
    }
}

#[tokio::test]
async fn the_rest_of_a_text_waits_where_twilio_wants_that() {
    let world = World::new().await;
    world.twilio.answers(201, taken("SM1"));
    world.twilio.answers_with(429, &[("retry-after", "0")], "");
    world.twilio.answers(201, taken("SM2"));
    let text = format!("{}\n\n{}", "x".repeat(1_400), "y".repeat(400));
    assert_eq!(world.send(&text).await, Outcome::Sent { message_id: "SM1".into(), recorded: false });
    let said: Vec<usize> =
        world.twilio.asked().iter().map(|asked| fields(&asked.body)[2].1.trim().len()).collect();
    assert_eq!(said, [1_400, 400, 400]);
}

#[tokio::test]
async fn only_who_wrote_is_somewhere() {
    let world = World::new().await;
    let places = |chat_id: &str| world.sms.places(&Target::chat(chat_id));
    assert_eq!(places(ANN), Whereabouts::Unknown);
    world.sms.recall(&Target::chat(ANN)).await.unwrap();
    assert_eq!(places(ANN), Whereabouts::Unknown, "the store does not know either");
    assert!(!world.sms.look_up(&Target::chat(ANN)).await.unwrap(), "nobody is asked");
    let received = super::super::parse::Received {
        sid: "SM1".into(),
        from: ANN.into(),
        to: OWN.into(),
        body: "hi".into(),
        ..Default::default()
    };
    assert_eq!(world.sms.take(&world.ingress, &received).await.unwrap(), Took::Message);
    assert_eq!(world.sms.take(&world.ingress, &received).await.unwrap(), Took::Nothing, "once");
    let expected = [format!("{OWN}/{ANN}"), OWN.to_owned(), "*".to_owned()];
    assert_eq!(places(ANN), Whereabouts::Places(expected.to_vec()));
    for odd in ["AMAZON", "+1555 0199", "+15550199/1", ""] {
        assert_eq!(places(odd), Whereabouts::Nowhere, "{odd}");
    }
    let thread = Target { chat_id: ANN.into(), thread_id: Some("1".into()) };
    assert_eq!(world.sms.places(&thread), Whereabouts::Nowhere);
}

#[tokio::test]
async fn a_receipt_may_be_earlier_than_what_it_is_for() {
    let world = World::new().await;
    let ports = world.ingress.ports.clone();
    let status = |word: &str| Status { sid: "SM1".into(), word: word.into(), error: None };
    world.sms.receipt(ports.clone(), status("sent")).await.unwrap();
    world.sent("SM1").await;
    let receipt = async || ports.records.explain_action("SM1").await.unwrap()[0].receipt.clone();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while receipt().await.as_deref() != Some("sent") {
        assert!(tokio::time::Instant::now() < deadline, "it was lost");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for (word, kept) in [("delivered", "delivered"), ("queued", "delivered"), ("read", "read")] {
        world.sms.receipt(ports.clone(), status(word)).await.unwrap();
        assert_eq!(receipt().await.as_deref(), Some(kept), "{word}");
    }
}

#[tokio::test]
async fn a_text_in_parts_arrived_only_if_all_of_it_did() {
    let world = World::new().await;
    for sid in ["SM1", "SM2", "SM3"] {
        world.twilio.answers(201, taken(sid));
    }
    let text = format!("{0}\n\n{0}\n\n{0}", "x".repeat(1_400));
    assert!(matches!(world.send(&text).await, Outcome::Sent { message_id, .. } if message_id == "SM1"));
    world.sent("SM1").await;
    let ports = world.ingress.ports.clone();
    // The number is another node's by the time that receipts come.
    let next = Sms::new(world.sms.config.clone(), ports.clone()).unwrap();
    let receipt = async |sid: &str, word: &str| {
        let status = Status { sid: sid.into(), word: word.into(), error: None };
        next.receipt(ports.clone(), status).await.unwrap();
        ports.records.explain_action("SM1").await.unwrap()[0].receipt.clone()
    };
    assert_eq!(receipt("SM2", "delivered").await, None, "the first did not");
    assert_eq!(receipt("SM1", "delivered").await.as_deref(), Some("delivered"));
    assert_eq!(receipt("SM3", "undelivered").await.as_deref(), Some("undelivered"));
    assert_eq!(receipt("SM1", "read").await.as_deref(), Some("undelivered"));
    assert_eq!(next.early.available_permits(), crate::sms::receipt::EARLY, "nothing waits");
}

#[tokio::test]
async fn receipts_on_two_nodes_never_take_a_message_back() {
    let world = World::new().await;
    world.sent("SM1").await;
    let ports = world.ingress.ports.clone();
    let other = Sms::new(world.sms.config.clone(), ports.clone()).unwrap();
    let words = ["accepted", "queued", "sending", "sent", "delivered", "read"];
    let receipts = words.iter().rev().cycle().take(48).enumerate().map(|(n, word)| {
        let sms = if n % 2 == 0 { &world.sms } else { &other };
        let status = Status { sid: "SM1".into(), word: (*word).into(), error: None };
        sms.receipt(ports.clone(), status)
    });
    for noted in futures_util::future::join_all(receipts).await {
        noted.unwrap();
    }
    let known = ports.records.explain_action("SM1").await.unwrap();
    assert_eq!(known[0].receipt.as_deref(), Some("read"));
}

impl World {
    /// An action is written down that sent this message.
    async fn sent(&self, sid: &str) {
        let action = NewAction {
            tenant: "acme".into(),
            gateway_id: None,
            thread_id: None,
            edits: None,
            instance: self.door.instance,
            platform: NAME.into(),
            bot: OWN.into(),
            chat_id: ANN.into(),
            op: "send".into(),
            reply_to: None,
            body: Vec::new(),
            answering: None,
            received_at: clock::wall(),
        };
        let id = self.ingress.ports.ledger.accept(Owner(1), vec![action]).await.unwrap()[0].id;
        let outcome = ActionOutcome { state: ActionState::Sent, message_id: Some(sid.into()), error: None };
        self.ingress.ports.ledger.finish(Owner(1), vec![(id, outcome)]).await.unwrap();
    }
}
