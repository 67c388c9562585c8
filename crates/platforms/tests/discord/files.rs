//! Files on their way to Discord.

use super::world::{Hand, World};
use angelia_contract::action::Action;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::media::{FileId, Holder, MediaKind};
use angelia_core::store::ActionId;
use angelia_platforms::{Delivery, Earlier, FileContent, Outcome, OutgoingFile, Platform, Reach};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

/// A picture, or one that cannot be read.
struct Picture(bool);

impl FileContent for Picture {
    fn open(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<Bytes>>>> {
        let here = self.0;
        async move {
            if !here {
                return Err(angelia_core::error::Error::unavailable("the disk does not answer"));
            }
            Ok(stream::once(async { Ok(Bytes::from_static(PNG)) }).boxed())
        }
        .boxed()
    }
}

impl World {
    /// Gives the bot a picture of a tenant to send.
    async fn shows(
        &self,
        id: i64,
        channel: &str,
        (tenant, here): (&str, bool),
        reply_to: Option<&str>,
    ) -> Outcome {
        let action = Action::SendMedia {
            chat_id: channel.into(),
            media_kind: "image".into(),
            source_url: "https://angelia.example/relay/media/abc".into(),
            content: "look".into(),
            reply_to: reply_to.map(str::to_owned),
            filename: None,
            metadata: Default::default(),
        };
        let file = OutgoingFile {
            name: "chart.png".into(),
            media_type: "image/png".into(),
            kind: MediaKind::Image,
            size: PNG.len() as u64,
            duration: None,
            link: "https://angelia.example/media/abc".into(),
            file: FileId::mint(),
            owner: (tenant.into(), Holder::Instance(InstanceId(1))),
            content: Arc::new(Picture(here)),
        };
        let delivery = Delivery {
            id: ActionId(id),
            received_at: angelia_core::clock::wall(),
            target: Target::chat(channel),
            action,
            answer: None,
            file: Some(file),
            earlier: Earlier::Nothing,
            progress: Arc::new(Hand::default()),
        };
        self.bot().deliver(delivery).await
    }
}

#[tokio::test]
async fn a_picture_survives_what_it_answers() {
    let world = World::started(json!({})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    let asked = world.fake.say(&channel, &ann, "show me").await;
    for (id, code) in [(1, 50035), (2, 160_002)] {
        let refusal = json!({ "message": "Cannot reply", "code": code });
        world
            .fake
            .fault(json!({"path": "messages$", "method": "POST", "status": 400, "json": refusal}))
            .await;
        let shown = world.shows(id, &channel, ("acme", true), Some(&asked)).await;
        assert!(matches!(shown, Outcome::Sent { .. }), "{code}: {shown:?}");
    }
    let shown = world.shows(3, &channel, ("acme", true), Some(&asked)).await;
    assert!(matches!(shown, Outcome::Sent { .. }), "{shown:?}");
    let answers = world.fake.answers(&channel).await;
    let referred: Vec<_> = answers.iter().map(|answer| answer.reference.as_deref()).collect();
    assert_eq!(referred, [None, None, Some(asked.as_str())], "each once");
    assert!(answers.iter().all(|answer| answer.content == "look"));
    // What cannot be read here is nobody else's trouble.
    let later = world.shows(4, &channel, ("acme", false), None).await;
    assert!(matches!(later, Outcome::Later { reach: Reach::Action, .. }), "{later:?}");
}

#[tokio::test]
async fn pictures_on_a_slow_line_leave_room_for_texts() {
    let world = World::started(json!({})).await;
    let guild = world.fake.guild("ops").await;
    let mut channels = Vec::new();
    for number in 0..60 {
        channels.push(world.fake.channel(&guild.id, &format!("slow-{number}")).await);
    }
    let text = world.fake.channel(&guild.id, "text").await;
    let slow = format!("/channels/(?!{text}/)\\d+/messages$");
    world
        .fake
        .fault(json!({"path": slow, "method": "POST", "how": "hang", "seconds": 600, "count": 1_000}))
        .await;
    let pictures =
        channels.iter().zip(1..).map(|(channel, id)| world.shows(id, channel, ("acme", true), None));
    let pictures = futures_util::future::join_all(pictures);
    let texts = async {
        let deadline = tokio::time::Instant::now() + super::world::SOON;
        while world.fake.requests(0).await.iter().filter(|call| call.path.ends_with("/messages")).count() < 4
        {
            assert!(tokio::time::Instant::now() < deadline, "nothing is on its way");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Fixed pause: all that can go on its way is, and nothing tells of what waits.
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let sent = world.deliver(100, Target::chat(&text), super::world::send(&text, "hello", None)).await;
        assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
        let files = world.fake.requests(0).await;
        let of_tenant = files.iter().filter(|call| call.path.ends_with("/messages")).count() - 1;
        assert_eq!(of_tenant, 4, "one tenant has its share of them");
        // The other half of them is for others.
        let sent = async { world.shows(101, &text, ("globex", true), None).await };
        let sent = tokio::time::timeout(Duration::from_secs(10), sent).await.expect("there is room");
        assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
    };
    tokio::select! {
        _ = pictures => panic!("they are on a slow line"),
        () = texts => {}
    }
}
