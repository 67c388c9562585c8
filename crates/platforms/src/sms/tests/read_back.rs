//! What Twilio's list brings that no webhook brought.

use super::*;
use angelia_core::store::{Missed, StreamStore};
use futures_util::FutureExt;
use serde_json::{Value, json};

/// A date as Twilio writes them, so many seconds from now.
fn date(from_now: i64) -> String {
    let written = super::super::date::write(clock_seconds() + from_now);
    let (day, clock) = written.trim_end_matches('Z').split_once('T').unwrap();
    let [year, month, day]: [&str; 3] = day.split('-').collect::<Vec<_>>().try_into().unwrap();
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month: usize = month.parse().unwrap();
    format!("Sun, {day} {} {year} {clock} +0000", &MONTHS[3 * month - 3..3 * month])
}

fn clock_seconds() -> i64 {
    angelia_core::clock::wall().seconds() as i64
}

pub(super) fn listed(sid: &str, body: &str, from_now: i64) -> Value {
    json!({
        "sid": sid, "from": ANN, "to": OWN, "body": body, "direction": "inbound", "num_media": "0",
        "date_sent": date(from_now),
    })
}

pub(super) fn page(messages: &[Value], next: Option<&str>) -> Value {
    json!({ "messages": messages, "next_page_uri": next })
}

fn next_page(query: &str) -> String {
    format!("/2010-04-01/Accounts/{ACCOUNT}/Messages.json?{query}")
}

#[tokio::test]
async fn what_is_missing_comes_in_its_order_and_once() {
    let world = World::new().await;
    let mut picture = listed("MM3", "", 3);
    picture["num_media"] = "1".into();
    let mut ours = listed("SM9", "our own words", 5);
    ours["direction"] = "outbound-api".into();
    let mut strange = listed("SM8", "from nowhere", 5);
    strange["from"] = "a b".into();
    let first = page(&[ours, strange, listed("SM4", "four", 4), picture], Some(&next_page("Page=1")));
    let second = page(
        &[listed("SM2", "two", 2), listed("SM1", "one", 1), listed("SM0", "history", -3_600)],
        Some(&next_page("Page=2")),
    );
    world.twilio.answers(200, &first);
    world.twilio.answers(200, &second);
    world.twilio.answers(200, json!({ "media_list": [{ "sid": "ME1", "content_type": "image/png" }] }));
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.texts().await, ["one", "two", "[photo]", "four"]);
    let picture = &world.events().await[2];
    // The address would be the operator's own.
    assert_eq!((picture.media[0].mime.as_deref(), picture.media_urls.len()), (Some("image/png"), 0));
    assert_eq!((world.count("read_back"), world.count("unreadable")), (4, 1));
    let asked: Vec<String> = world.twilio.asked().into_iter().map(|asked| asked.what).collect();
    assert!(asked[0].contains("To=%2B15550100&DateSent%3E=20"), "{asked:?}");
    assert_eq!(asked[1], format!("GET {}", next_page("Page=1")));
    assert_eq!(asked.len(), 3, "nothing older is asked for: {asked:?}");

    // Again: all of them are known, and the picture is not fetched again.
    world.twilio.answers(200, &first);
    world.twilio.answers(200, &second);
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!((world.events().await.len(), world.count("read_back")), (4, 4));
    assert_eq!(world.twilio.asked().len(), 2);
}

#[tokio::test]
async fn a_list_that_breaks_off_is_read_again_as_a_whole() {
    let world = World::new().await;
    world.twilio.answers(200, page(&[listed("SM2", "two", 2)], Some(&next_page("Page=1"))));
    world.twilio.answers(503, "");
    assert!(world.sms.catch_up(&world.ingress).await.is_err());
    assert!(world.texts().await.is_empty(), "the newer one does not come first");
    world.twilio.answers(200, page(&[listed("SM2", "two", 2), listed("SM1", "one", 1)], None));
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.texts().await, ["one", "two"]);
}

#[tokio::test]
async fn the_credential_goes_nowhere_else() {
    let world = World::new().await;
    for next in [
        "http://evil.example.com/",
        "//evil.example.com/x",
        "@evil.example.com/",
        "/2010-04-01/Accounts/AC9/Messages.json?x",
    ] {
        world.twilio.answers(200, page(&[listed("SM1", "one", 1)], Some(next)));
        world.sms.catch_up(&world.ingress).await.unwrap();
        assert_eq!(world.twilio.asked().len(), 1, "{next}");
    }
    // Nor is it taken for the end of the list.
    let missed = world.ingress.ports.records.missed(&world.sms.account.key, 9).await.unwrap();
    assert_eq!(missed.len(), 4);
    assert!(missed.iter().all(|missed| missed.why.contains("another address")), "{missed:?}");
}

#[tokio::test]
async fn files_that_twilio_does_not_name_hold_nothing_back() {
    let world = World::new().await;
    let mut list: Vec<Value> = (1..=5).map(|n| listed(&format!("MM{n}"), "", n)).collect();
    list.iter_mut().for_each(|message| message["num_media"] = "2".into());
    list.push(listed("SM6", "six", 6));
    list.reverse();
    world.twilio.answers(200, page(&list, None));
    let files = json!({ "media_list": [{ "sid": "ME1", "content_type": "image/png" }] });
    // The first is named when it is asked for again; then nothing helps.
    world.twilio.answers(500, "oops");
    world.twilio.answers(200, &files);
    for _ in 0..6 {
        world.twilio.answers(500, "oops");
    }
    world.sms.catch_up(&world.ingress).await.unwrap();
    let unnamed = "[document] [document]";
    assert_eq!(world.texts().await, ["[photo]", unnamed, unnamed, unnamed, unnamed, "six"]);
    assert!(world.events().await[1].media.iter().all(|media| media.url.is_empty()));
    assert_eq!(
        (world.count("files_unnamed"), world.twilio.asked().len()),
        (4, 9),
        "the last was not asked for"
    );
}

#[tokio::test]
async fn more_than_can_be_read_is_noted_as_missed() {
    let world = World::new().await;
    for number in (0..60).rev() {
        let sid = format!("SM{number}");
        world.twilio.answers(200, page(&[listed(&sid, &sid, number)], Some(&next_page("Page=x"))));
    }
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.events().await.len(), 50);
    assert_eq!(world.texts().await[0], "SM10", "the newest, oldest first");
    let missed: Vec<Missed> = world.ingress.ports.records.missed(&world.sms.account.key, 9).await.unwrap();
    assert_eq!((missed.len(), missed[0].chat_id.as_deref()), (1, None));
    assert!(missed[0].since < missed[0].until && missed[0].why.contains("Twilio's console"));
}

#[tokio::test]
async fn what_reached_nobody_stays_there_and_what_somebody_got_is_not_dropped() {
    let world = World::new().await;
    let both = page(&[listed("SM2", "two", 2), listed("SM1", "one", 1)], None);
    world.twilio.answers(200, page(&[listed("SM1", "one", 1)], None));
    *world.door.open.lock() = false;
    world.sms.catch_up(&world.ingress).await.unwrap();
    *world.door.open.lock() = true;
    world.twilio.answers(200, &both);
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.texts().await, ["two"]);
    *world.door.open.lock() = false;
    world.twilio.answers(200, &both);
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(*world.door.dropped.lock(), [("SM1".to_owned(), DropReason::NoRoute)]);

    // Another process knows that too.
    let next = Sms::new(world.sms.config.clone(), world.ingress.ports.clone()).unwrap();
    *world.door.open.lock() = true;
    world.twilio.answers(200, &both);
    next.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.texts().await, ["two"]);
}

#[tokio::test]
async fn what_is_posted_at_the_start_waits_for_what_came_before_it() {
    let world = World::new().await;
    let waits = world.sms.after_first_look();
    tokio::pin!(waits);
    assert!((&mut waits).now_or_never().is_none());
    world.twilio.answers(200, page(&[], None));
    let (sms, ingress) = (world.sms.clone(), world.ingress.clone());
    let listening = tokio::spawn(async move { sms.keep_up(&ingress).await });
    waits.await;
    assert!(*world.sms.looked.borrow(), "it was not for the time that passed");
    listening.abort();
}
