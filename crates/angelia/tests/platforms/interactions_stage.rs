//! A bot whose interactions Discord posts, and agents of every kind that get them.

use super::discord_stage::{SOON, Stage};
use angelia_contract::token;
use angelia_testkit::connector::Credentials;
use angelia_testkit::discord::Interaction;
use angelia_testkit::socket::{Next, Socket, now};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// How the published gateways dial, which lose what is forwarded to them.
pub(crate) const PUBLISHED: &str = "Python/3.11 websockets/15.0.1";

/// How a gateway dials that needs no time to settle in.
const SWIFT: &str = "angelia-gateway/test";
/// The line by which such a one is given events as well.
pub(crate) const AS_EVENTS: &str = "interactions = \"event\"";

/// How long something is waited for that must not come.
const A_WHILE: Duration = Duration::from_millis(300);

/// What the stand-in is told: nobody has to wait for limits that are no part of the story.
pub(crate) fn at_ease() -> Value {
    json!({ "identify_seconds": 0, "limits": false })
}

impl Stage {
    /// A bot that Discord posts to, with these lines of the configuration and of
    /// the bot's own, and these environment variables.
    pub(crate) async fn posted_to(
        options: Value,
        lines: &str,
        of_bot: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let key = |discord: &angelia_testkit::discord::FakeDiscord| {
            format!("name = \"main\"\npublic_key = \"{}\"\n{of_bot}\n", discord.public_key())
        };
        let stage = Self::built(options, lines, key, variables).await;
        // Its gateways end no turn, and what they are given is not to wait for one.
        let gateway = stage.acme.gateway_id.clone();
        stage
            .connector
            .command(&["gateway", "set", "--tenant", "acme", &gateway, "--while-busy", "pass"])
            .await;
        stage.discord.set_interactions_url(Some(&stage.endpoint())).await;
        stage
    }

    /// Where Discord posts.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}/webhooks/discord/main", self.connector.url())
    }

    /// A gateway of `acme` of the kind that is published.
    pub(crate) async fn published(&self) -> Peer {
        self.peer(&self.acme, PUBLISHED, false).await
    }

    /// A gateway of `acme` that takes everything as soon as it is there.
    pub(crate) async fn swift(&self) -> Peer {
        self.peer(&self.acme, SWIFT, false).await
    }

    /// A gateway that dials like this and tells its commands or does not.
    pub(crate) async fn peer(&self, credentials: &Credentials, agent: &str, with_manifest: bool) -> Peer {
        let token = token::mint(&credentials.gateway_id, &credentials.secret, now(), 300);
        let bearer = format!("Bearer {token}");
        let mut socket =
            Socket::dial_with(&self.connector.url(), Some(&bearer), agent).await.expect("let in");
        let mut hello = json!({ "type": "hello", "platform": "discord", "botId": self.discord.bot_id() });
        if with_manifest {
            hello["command_manifest"] = json!([]);
        }
        socket.send(&hello).await;
        let mut peer = Peer { socket, later: VecDeque::new(), seen: Vec::new() };
        let descriptor = peer.read().await;
        assert_eq!(descriptor["type"], "descriptor", "{descriptor}");
        peer
    }

    /// What `angelia explain` tells of an interaction.
    pub(crate) async fn explained(&self, id: &str) -> Value {
        self.connector.command(&["explain", id]).await["messages"][0].clone()
    }

    /// What was counted of the bot.
    pub(crate) async fn counted(&self, what: &str) -> u64 {
        self.bot().await["health"]["counts"][what].as_u64().unwrap_or_default()
    }

    /// A message of the bot with a button, as another program may have posted it.
    pub(crate) async fn button(&self, channel: &str, text: &str, custom_id: &str) -> String {
        let button = json!({ "type": 2, "style": 1, "label": "This", "custom_id": custom_id });
        let body = json!({ "content": text, "components": [{ "type": 1, "components": [button] }] });
        let url = format!("{}/api/v10/channels/{channel}/messages", self.discord.url());
        let post = reqwest::Client::new().post(url).json(&body).header("User-Agent", "DiscordBot (test, 1)");
        let answer = post.header("Authorization", format!("Bot {}", self.discord.token())).send().await;
        let posted: Value = answer.unwrap().json().await.unwrap();
        posted["id"].as_str().unwrap_or_else(|| panic!("no message: {posted}")).to_owned()
    }

    /// Waits until somebody sees this in the place of what said that the bot thinks.
    pub(crate) async fn until_says(&self, id: &str, text: &str) -> Interaction {
        let is_said = |one: &Interaction| one.state == "answered" && one.content.as_deref() == Some(text);
        self.discord.until_interaction(id, SOON, is_said).await
    }
}

/// A gateway by hand that keeps every frame it saw.
pub(crate) struct Peer {
    socket: Socket,
    later: VecDeque<Value>,
    pub(crate) seen: Vec<String>,
}

impl Peer {
    async fn read(&mut self) -> Value {
        match self.socket.next(SOON).await {
            Next::Frame(frame) => {
                self.seen.push(frame.to_string());
                frame
            }
            other => panic!("awaited a frame, got {other:?}"),
        }
    }

    /// The next frame that is no answer, not acknowledged.
    pub(crate) async fn frame(&mut self) -> Value {
        match self.later.pop_front() {
            Some(frame) => frame,
            None => self.read().await,
        }
    }

    pub(crate) async fn ack(&mut self, frame: &Value) {
        self.socket.ack(frame).await;
    }

    /// The next event, acknowledged.
    pub(crate) async fn event(&mut self) -> Value {
        let frame = self.frame().await;
        assert_eq!(frame["type"], "inbound", "{frame}");
        self.ack(&frame).await;
        frame["event"].clone()
    }

    /// The next event, acknowledged, if there is one.
    pub(crate) async fn event_if_any(&mut self) -> Option<Value> {
        match self.socket.next(A_WHILE).await {
            Next::Frame(frame) => {
                self.ack(&frame).await;
                Some(frame["event"].clone())
            }
            Next::Silence => None,
            other => panic!("awaited a frame or nothing, got {other:?}"),
        }
    }

    /// The event an interaction makes: its id, and this text.
    pub(crate) async fn takes(&mut self, interaction: &Interaction, text: &str) -> Value {
        let event = self.event().await;
        assert_eq!(
            (&event["text"], &event["message_id"]),
            (&json!(text), &json!(interaction.id)),
            "{event:#}"
        );
        assert_eq!(event["source"]["message_id"], json!(interaction.id), "{event:#}");
        event
    }

    /// The next request that is passed on, and the body it had.
    pub(crate) async fn forward(&mut self) -> (Value, Value) {
        let frame = self.frame().await;
        assert_eq!(frame["type"], "passthrough_forward", "{frame}");
        self.ack(&frame).await;
        let body = BASE64_STANDARD.decode(frame["forward"]["bodyB64"].as_str().unwrap()).unwrap();
        (frame["forward"].clone(), serde_json::from_slice(&body).unwrap())
    }

    /// Nothing comes for a while.
    pub(crate) async fn hears_nothing(&mut self) {
        assert!(self.later.is_empty(), "{:?}", self.later);
        assert_eq!(self.event_if_any().await, None);
    }

    /// Asks for something and waits for what came of it.
    pub(crate) async fn ask(&mut self, action: Value) -> Value {
        self.tell(action).await;
        loop {
            let frame = self.read().await;
            if frame["type"] == "outbound_result" {
                return frame["result"].clone();
            }
            self.later.push_back(frame);
        }
    }

    /// Asks for something and does not wait.
    pub(crate) async fn tell(&mut self, action: Value) {
        self.socket.send(&json!({ "type": "outbound", "requestId": "r", "action": action })).await;
    }

    /// Sends something that has to arrive; its message's id.
    pub(crate) async fn says(
        &mut self,
        chat: &str,
        text: &str,
        reply_to: Option<&str>,
        notify: bool,
    ) -> String {
        let result = self.ask(send(chat, text, reply_to, notify)).await;
        assert_eq!(result["success"], true, "{result}");
        result["message_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn close(self) {
        self.socket.close().await;
    }
}

/// A `send`, as gateways write it.
pub(crate) fn send(chat: &str, text: &str, reply_to: Option<&str>, notify: bool) -> Value {
    let mut action = json!({ "op": "send", "chat_id": chat, "content": text, "reply_to": reply_to });
    if notify {
        action["metadata"] = json!({ "notify": true });
    }
    action
}
