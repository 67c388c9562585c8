//! Albums in company: the mention stands in one caption, and is meant for all of the pictures.

use super::telegram_stage::{SOON, Stage, heard, too_many, unlimited};
use angelia_testkit::socket::{Next, Socket, fetch_file};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

/// A group with Ann and Bob, where an agent hears what names it.
struct Company {
    stage: Stage,
    group: i64,
    ann: i64,
    bob: i64,
}

impl Company {
    async fn new(story: &str, more: &str) -> Self {
        let stage = Stage::with(story, &unlimited(), more, "").await;
        stage.route_all().await;
        let (ann, bob) = (stage.telegram.person("Ann").await, stage.telegram.person("Bob").await);
        let group = stage.telegram.supergroup("lab", &[ann, bob]).await;
        Self { stage, group, ann, bob }
    }

    /// One picture of an album, which ends with this number.
    async fn shows(&self, who: i64, album: u32, number: u8, caption: Option<&str>) {
        let bytes = STANDARD.encode([PNG, &[number]].concat());
        let mut said =
            json!({ "chat": self.group, "from": who, "photo": { "content": bytes }, "album": album });
        if let Some(caption) = caption {
            said["caption"] = self.stage.to_bot(caption).into();
        }
        self.stage.telegram.say_with(&said).await;
    }

    /// What is said until this ends comes in one answer of Telegram's.
    async fn hold(&self, socket: &mut Socket) {
        let telegram = &self.stage.telegram;
        self.stage.until_asking().await;
        telegram.answer_next("getUpdates", 1, 429, &too_many(2)).await;
        telegram.say(self.ann, self.ann, "hold").await;
        assert_eq!(heard(socket).await["text"], "hold");
        telegram.wait_for_state("a refusal", SOON, |state| state["faults"] == 0).await;
    }

    /// The numbers of an event's pictures.
    async fn numbers(&self, event: &Value) -> Vec<u8> {
        let mut numbers = Vec::new();
        for url in event["media_urls"].as_array().unwrap() {
            let answer = fetch_file(url.as_str().unwrap(), &self.stage.gateway).await;
            numbers.extend(answer.bytes().await.unwrap().last());
        }
        numbers
    }

    /// The next event is this album, whole and once.
    async fn is_whole(&self, socket: &mut Socket, pictures: &[u8]) {
        let event = heard(socket).await;
        let text = event["text"].as_str().unwrap();
        assert!(text.contains("what are these?"), "{event:#}");
        assert_eq!(text.matches("[photo").count(), pictures.len(), "{event:#}");
        assert!(
            event["context"].as_array().is_none_or(Vec::is_empty),
            "they are not what others said: {event:#}"
        );
        assert_eq!(self.numbers(&event).await, pictures);
        assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence, "and nothing else");
    }
}

const ASKED: Option<&str> = Some("what are these?");

#[tokio::test]
async fn an_album_in_company_is_whole_wherever_the_mention_stands() {
    let company = Company::new("album-company", "").await;
    let Company { stage, group, ann, bob } = &company;
    let mut socket = stage.join().await;
    for (album, spoken) in [(1, 0), (2, 2)] {
        company.hold(&mut socket).await;
        for number in 0..3_u8 {
            company.shows(*ann, album, number, ASKED.filter(|_| number == spoken)).await;
        }
        company.is_whole(&mut socket, &[0, 1, 2]).await;
    }
    // One by one, each confirmed before the next is said.
    for (album, spoken) in [(3, 0), (4, 2)] {
        for number in 0..3_u8 {
            company.shows(*ann, album, number, ASKED.filter(|_| number == spoken)).await;
            stage.until_heard().await;
        }
        company.is_whole(&mut socket, &[0, 1, 2]).await;
    }
    // What names nobody, and what others say is part of it, is for nobody.
    company.shows(*ann, 5, 0, None).await;
    company.shows(*bob, 6, 1, None).await;
    stage.until_heard().await;
    company.shows(*ann, 6, 2, ASKED).await;
    company.shows(*bob, 6, 3, None).await;
    let event = heard(&mut socket).await;
    assert_eq!(company.numbers(&event).await, [2], "{event:#}");
    stage.telegram.say(*group, *bob, &stage.to_bot("and now?")).await;
    assert_eq!(heard(&mut socket).await["text"], "and now?");
    stage.close().await;
}

#[tokio::test]
async fn a_posted_album_in_company_is_whole() {
    let company = Company::new("album-posted", "ingest = \"webhook\"").await;
    let Company { stage, ann, .. } = &company;
    let posted = |state: &Value| state["webhook"]["url"].as_str().is_some_and(|url| !url.is_empty());
    stage.telegram.wait_for_state("the webhook", SOON, posted).await;
    let mut socket = stage.join().await;
    for (album, spoken) in [(1, 0), (2, 1), (3, 2)] {
        for number in 0..3_u8 {
            company.shows(*ann, album, number, ASKED.filter(|_| number == spoken)).await;
        }
        company.is_whole(&mut socket, &[0, 1, 2]).await;
    }
    stage.close().await;
}

#[tokio::test]
async fn pictures_that_waited_for_their_caption_survive_a_store_that_refuses() {
    let company = Company::new("album-refused", "").await;
    let Company { stage, ann, .. } = &company;
    let mut socket = stage.join().await;
    company.shows(*ann, 1, 0, None).await;
    stage.until_heard().await;
    let stopped = angelia_engines::inspect::Inspect::of(&stage.folder.join("data")).stop_commits();
    company.shows(*ann, 1, 1, ASKED).await;
    let down = stage.until_bot("down").await;
    assert!(down["why"].as_str().is_some_and(|why| why.contains("committed")), "{down}");
    drop(stopped);
    company.is_whole(&mut socket, &[0, 1]).await;
    stage.close().await;
}

#[tokio::test]
async fn where_each_conversation_opens_a_topic_pictures_without_words_are_no_questions() {
    let stage = Stage::new("album-topics").await;
    let ann = stage.telegram.person("Ann").await;
    let group = stage.telegram.managed_forum("lab", &[ann]).await;
    stage.route("acme", group, &["--allow", "any", "--threads", "auto"]).await;
    let company = Company { stage, group, ann, bob: ann };
    let mut socket = company.stage.join().await;
    for number in 0..3_u8 {
        company.shows(ann, 1, number, ASKED.filter(|_| number == 1)).await;
    }
    let event = heard(&mut socket).await;
    assert_eq!((&event["source"]["chat_type"], company.numbers(&event).await), (&json!("forum"), vec![1]));
    assert_eq!(company.stage.telegram.topics(group).await.len(), 1, "one topic for them all");
    assert_eq!(socket.next(Duration::from_millis(1_500)).await, Next::Silence, "nothing in General");
    // A group without topics has no such place.
    let plain = company.stage.telegram.supergroup("plain", &[ann]).await;
    company.stage.route("acme", plain, &["--allow", "any", "--threads", "auto"]).await;
    let company = Company { group: plain, ..company };
    for number in 0..3_u8 {
        company.shows(ann, 2, number, ASKED.filter(|_| number == 1)).await;
    }
    company.is_whole(&mut socket, &[0, 1, 2]).await;
    company.stage.close().await;
}
