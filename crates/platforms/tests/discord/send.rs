//! From an agent's action to what people see.

use super::world::{World, edit, send};
use angelia_core::egress::Target;
use angelia_core::store::DirectoryStore;
use angelia_platforms::{Outcome, Platform, Reach};
use serde_json::json;

fn id(outcome: Outcome) -> String {
    match outcome {
        Outcome::Sent { message_id, .. } => message_id,
        other => panic!("{other:?}"),
    }
}

async fn world(options: serde_json::Value) -> (World, String, String) {
    let world = World::started(options).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    (world, ann, channel)
}

#[tokio::test]
async fn a_long_text_is_several_messages_that_grow_and_shrink() {
    let (world, ann, channel) = world(json!({})).await;
    let asked = world.fake.say(&channel, &ann, "tell me").await;
    let at = || Target::chat(&channel);
    let long: String = (0..900).map(|n| format!("{n:04}\n")).collect();
    let first = id(world.deliver(1, at(), send(&channel, &long, Some(&asked))).await);
    let answers = world.fake.answers(&channel).await;
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0].id, first);
    assert_eq!(
        answers.iter().map(|part| part.content.trim_end()).collect::<Vec<_>>().join("\n"),
        long.trim_end()
    );
    assert!(answers.iter().all(|part| part.content.chars().count() <= 2000));
    assert_eq!(answers[0].reference.as_deref(), Some(asked.as_str()));
    assert_eq!(answers[1].reference, None);
    assert!(answers.iter().all(|part| part.allowed_mentions["parse"] == json!([])));
    let longer = format!("{long}{}", "and more\n".repeat(300));
    id(world.deliver(2, at(), edit(&channel, &first, &longer)).await);
    let grown = world.fake.answers(&channel).await;
    assert_eq!(grown.len(), 4);
    assert_eq!(grown[0].edits, 0, "what stays is not sent again");
    id(world.deliver(3, at(), edit(&channel, &first, "short")).await);
    let shrunk = world.fake.answers(&channel).await;
    assert_eq!((shrunk.len(), shrunk[0].content.as_str()), (1, "short"));
    let calls = world.fake.requests(0).await.len();
    id(world.deliver(4, at(), edit(&channel, &first, "short")).await);
    assert_eq!(world.fake.requests(0).await.len(), calls, "nothing to change");
    let parts = |letters: &str| letters.chars().map(|one| one.to_string().repeat(2_000)).collect::<String>();
    let shown = || async {
        let answers = world.fake.answers(&channel).await;
        answers.iter().map(|part| format!("{}{}", &part.content[..1], part.edits)).collect::<Vec<_>>()
    };
    id(world.deliver(5, at(), edit(&channel, &first, &parts("abc"))).await);
    assert_eq!(shown().await, ["a2", "b0", "c0"], "one is edited, two are posted");
    id(world.deliver(6, at(), edit(&channel, &first, &parts("de"))).await);
    assert_eq!(shown().await, ["d3", "e1"], "two are edited, the last is deleted");
    assert_eq!(world.fake.count("/rest/limited").await, 0);
}

#[tokio::test]
async fn an_answer_survives_what_it_answers() {
    let (world, ann, channel) = world(json!({})).await;
    let asked = world.fake.say(&channel, &ann, "tell me").await;
    world.fake.order("delete", json!({"channel": channel, "message": asked})).await;
    id(world.deliver(1, Target::chat(&channel), send(&channel, "told", Some(&asked))).await);
    let odd = send(&channel, "odd", Some("not an id"));
    id(world.deliver(2, Target::chat(&channel), odd).await);
    let form = json!({"message": "Invalid Form Body", "code": 50035});
    world.fake.fault(json!({"path": "messages$", "method": "POST", "status": 400, "json": form})).await;
    let asked = world.fake.say(&channel, &ann, "again").await;
    id(world.deliver(3, Target::chat(&channel), send(&channel, "told again", Some(&asked))).await);
    let answers = world.fake.answers(&channel).await;
    assert_eq!((answers.len(), answers[2].reference.as_deref()), (3, None));
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_not_doubled() {
    let (world, _ann, channel) = world(json!({})).await;
    let at = || Target::chat(&channel);
    world.fake.fault(json!({"path": "messages$", "method": "POST", "perform": true, "how": "drop"})).await;
    let lost = world.deliver(7, at(), send(&channel, "once", None)).await;
    assert!(matches!(lost, Outcome::Unknown { .. }), "{lost:?}");
    let again = id(world.deliver(7, at(), send(&channel, "once", None)).await);
    let answers = world.fake.answers(&channel).await;
    assert_eq!((answers.len(), &answers[0].id), (1, &again));
    // The further parts of a text are seen to at once.
    let two = "x".repeat(2_500);
    world
        .fake
        .fault(json!({"path": "messages$", "method": "POST", "perform": true, "how": "drop", "skip": 1}))
        .await;
    id(world.deliver(8, at(), send(&channel, &two, None)).await);
    assert_eq!(world.fake.answers(&channel).await.len(), 3);
}

#[tokio::test]
async fn limits_are_kept_and_refusals_understood() {
    let (world, _ann, channel) = world(json!({})).await;
    let at = || Target::chat(&channel);
    for n in 0..7 {
        id(world.deliver(n, at(), send(&channel, &format!("{n}"), None)).await);
    }
    assert_eq!(world.fake.count("/rest/limited").await, 0, "the sixth waited for its turn");
    let html = json!({"path": "messages", "status": 429, "html": "<html>error 1015</html>"});
    world.fake.fault(html).await;
    let stormy = world.deliver(20, at(), send(&channel, "backoff", None)).await;
    assert!(matches!(stormy, Outcome::Later { reach: Reach::Bot, .. }), "{stormy:?}");
    let limited = json!({"message": "You are being rate limited.", "retry_after": 1.5, "global": false});
    world.fake.fault(json!({"path": "messages", "status": 429, "json": limited})).await;
    let limited = world.deliver(20, at(), send(&channel, "backoff", None)).await;
    assert!(matches!(limited, Outcome::Later { reach: Reach::Chat, .. }), "{limited:?}");
    world.fake.fault(json!({"path": "messages", "status": 502, "html": "bad gateway"})).await;
    let down = world.deliver(20, at(), send(&channel, "backoff", None)).await;
    assert!(matches!(down, Outcome::Unknown { .. }), "{down:?}");
    world.fake.fault(json!({"path": "messages", "status": 503, "html": "unavailable"})).await;
    let down = world.deliver(20, at(), send(&channel, "backoff", None)).await;
    assert!(matches!(down, Outcome::Later { reach: Reach::Action, .. }), "{down:?}");
    world.fake.fault(json!({"path": "messages", "status": 403, "html": "<html>blocked</html>"})).await;
    let blocked = world.deliver(20, at(), send(&channel, "backoff", None)).await;
    assert!(matches!(blocked, Outcome::Later { reach: Reach::Bot, .. }), "{blocked:?}");
    let gone = world.deliver(21, at(), edit(&channel, "1234", "x")).await;
    assert!(matches!(&gone, Outcome::Refused { why } if why.contains("10008")), "{gone:?}");
    world.fake.order("hide", json!({"channel": channel, "hidden": true})).await;
    let hidden = world.deliver(22, at(), send(&channel, "secret", None)).await;
    assert!(
        matches!(&hidden, Outcome::Refused { why } if why.contains("5000") && !why.contains("secret")),
        "{hidden:?}"
    );
}

#[tokio::test]
async fn a_thread_is_written_to_and_typed_in() {
    let (world, ann, channel) = world(json!({})).await;
    let thread = world.fake.thread(&channel, "plan", &ann, None).await;
    let at = Target { chat_id: channel.clone(), thread_id: Some(thread.clone()) };
    assert!(world.bot().typing(&at, None).await.unwrap().success);
    id(world.deliver(1, at, send(&channel, "here", None)).await);
    assert_eq!(world.fake.answers(&thread).await.len(), 1);
    assert!(world.fake.answers(&channel).await.is_empty());
}

#[tokio::test]
async fn a_mark_is_put_on_a_message_and_taken_away() {
    let (world, ann, channel) = world(json!({})).await;
    let thread = world.fake.thread(&channel, "plan", &ann, None).await;
    let message = world.fake.say(&thread, &ann, "what is up").await;
    let at = Target { chat_id: channel.clone(), thread_id: Some(thread.clone()) };
    let bot = world.bot();
    let mark = async |message: &str, emoji: &str, remove| {
        let done = bot.react(&at, message, emoji, remove).unwrap().await.unwrap();
        let messages = world.fake.messages(&thread).await;
        let marked = messages.into_iter().find(|one| one.content == "what is up").unwrap();
        (done.success, marked.reactions)
    };
    let shown = |emojis: &[&str]| (true, emojis.iter().map(|emoji| (*emoji).to_owned()).collect::<Vec<_>>());
    assert_eq!(mark(&message, "👀", false).await, shown(&["👀"]));
    assert_eq!(mark(&message, "✅", false).await, shown(&["👀", "✅"]));
    assert_eq!(mark(&message, "👀", true).await, shown(&["✅"]));
    assert_eq!(mark("175928847299117063", "👀", false).await, shown(&["✅"]), "an interaction is no message");
    assert_eq!(world.fake.count("/rest/limited").await, 0, "Discord never had to refuse");
}

#[tokio::test]
async fn pieces_that_were_not_noted_are_found_again() {
    let (world, _ann, channel) = world(json!({})).await;
    let at = || Target::chat(&channel);
    let first = id(world.deliver(1, at(), send(&channel, &"a".repeat(2_500), None)).await);
    // As a crash before they were noted, or a store that failed, leaves it.
    let (bot, ports) = (world.key(), &world.ports);
    assert_eq!(ports.records.pieces(&bot, &channel, &first).await.unwrap().len(), 1);
    ports.records.keep_pieces(&bot, &channel, &first, Vec::new()).await.unwrap();
    assert!(ports.records.pieces(&bot, &channel, &first).await.unwrap().is_empty());
    id(world.deliver(2, at(), edit(&channel, &first, &"b".repeat(2_700))).await);
    let answers = world.fake.answers(&channel).await;
    let lengths: Vec<usize> = answers.iter().map(|part| part.content.len()).collect();
    assert_eq!(lengths, [2_000, 700], "none is doubled");
    assert!(answers.iter().all(|part| part.content.starts_with('b')));
    for round in 0..2 {
        id(world.deliver(3 + 2 * round, at(), edit(&channel, &first, "short")).await);
        id(world.deliver(4 + 2 * round, at(), edit(&channel, &first, &"c".repeat(2_300))).await);
        let answers = world.fake.answers(&channel).await;
        assert_eq!(answers.last().unwrap().content, "c".repeat(300), "a piece that went comes again");
        assert_eq!(answers.len(), 2);
    }
}

#[tokio::test]
async fn a_repeated_text_goes_on_after_the_pieces_that_are_noted() {
    let (world, _ann, channel) = world(json!({})).await;
    let at = || Target::chat(&channel);
    let long = "x".repeat(4_500);
    let refused = json!({"message": "no", "code": 50_013});
    let third = json!({"path": "messages$", "method": "POST", "status": 403, "json": refused, "skip": 2});
    world.fake.fault(third).await;
    let stuck = world.deliver(1, at(), send(&channel, &long, None)).await;
    assert!(matches!(stuck, Outcome::Refused { .. }), "{stuck:?}");
    let posts = async || {
        let requests = world.fake.requests(0).await;
        requests
            .iter()
            .filter(|request| request.method == "POST" && request.path.ends_with("messages"))
            .count()
    };
    let before = posts().await;
    id(world.deliver(1, at(), send(&channel, &long, None)).await);
    assert_eq!(posts().await - before, 2, "the first, which its nonce finds, and the one that was missing");
    let lengths: Vec<usize> =
        world.fake.answers(&channel).await.iter().map(|part| part.content.len()).collect();
    assert_eq!(lengths, [2_000, 2_000, 500]);
}

#[tokio::test]
async fn others_do_not_call_into_a_limit_that_is_waited_out() {
    let (world, _ann, channel) = world(json!({})).await;
    let limited = json!({"message": "You are being rate limited.", "retry_after": 0.5, "global": false});
    let limited = json!({"path": "messages$", "method": "POST", "status": 429, "json": limited, "skip": 1});
    world.fake.fault(limited).await;
    id(world.deliver(1, Target::chat(&channel), send(&channel, &"x".repeat(2_500), None)).await);
    assert_eq!(*world.pauses.lock().unwrap(), [(Reach::Chat, std::time::Duration::from_millis(500))]);
    assert_eq!(world.fake.answers(&channel).await.len(), 2);
}
