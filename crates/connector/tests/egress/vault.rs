//! People who wait for an answer.

use super::world::{World, master_key};
use angelia_contract::event::{Event, message_type};
use angelia_contract::source::Source;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::inbox::{EntryKind, InstanceId, Interaction, Request};
use angelia_core::seal;
use angelia_core::secret::Secret;
use angelia_core::store::{IdentityStore, Ingest, Intake, NewEntry};
use angelia_core::vault::{Deferral, NewCapability};
use angelia_platforms::discord::INTERACTION_TOKEN;
use serde_json::{Value, json};
use std::time::Duration;

/// Somebody who typed a command, or pressed a button.
#[derive(Clone, Debug)]
pub(crate) struct Asks {
    pub(crate) tenant: &'static str,
    pub(crate) gateway: &'static str,
    pub(crate) chat: &'static str,
    pub(crate) user: &'static str,
    /// The interaction; its credential is `token of <id>`.
    pub(crate) id: String,
    pub(crate) deferral: Deferral,
    pub(crate) lasts: Duration,
    /// Whether it overtakes what waits.
    pub(crate) ahead: bool,
}

/// `user` asks the agent of `acme` in `x-lab`.
pub(crate) fn asks(id: &str, user: &'static str) -> Asks {
    Asks {
        tenant: "acme",
        gateway: "gw",
        chat: "x-lab",
        user,
        id: id.into(),
        deferral: Deferral::Message,
        lasts: Duration::from_secs(600),
        ahead: false,
    }
}

/// What the interaction of that id is answered with.
pub(crate) fn token(id: &str) -> String {
    format!("token of {id}")
}

/// A message for the person.
pub(crate) fn notify(chat: &str, text: &str) -> Value {
    json!({"op": "send", "chat_id": chat, "content": text, "reply_to": null, "metadata": {"notify": true}})
}

/// A message that answers another.
pub(crate) fn reply(chat: &str, text: &str, to: &str) -> Value {
    json!({"op": "send", "chat_id": chat, "content": text, "reply_to": to, "metadata": {"notify": true}})
}

pub(crate) fn follow_up(key: &str, text: &str) -> Value {
    json!({"op": "follow_up", "session_key": key, "kind": INTERACTION_TOKEN, "content": text, "metadata": {}})
}

/// What an entry of that interaction holds.
pub(crate) fn interaction(asks: &Asks) -> Interaction {
    let source = Source {
        platform: "fake".into(),
        chat_id: asks.chat.into(),
        chat_type: "group".into(),
        user_id: Some(asks.user.into()),
        ..Source::default()
    };
    let event = Event {
        text: "/ask why".into(),
        message_type: message_type::COMMAND.into(),
        source,
        message_id: Some(asks.id.clone()),
        ..Event::default()
    };
    let request = Request {
        method: "POST".into(),
        path: "/webhooks/discord/main".into(),
        headers: vec![("content-type".into(), "application/json".into()), ("x-a".into(), "b\"\\ü".into())],
        body: format!("{{\"id\": \"{}\",\n \"data\": {{\"name\": \"ask ü 🙂 \\u0000\"}}}}", asks.id),
    };
    Interaction { event, request, command: None }
}

impl World {
    pub(crate) async fn instance(&self, tenant: &str, name: &str) -> InstanceId {
        let all = self.store.instances().await.unwrap();
        all.iter().find(|it| it.tenant == tenant && it.name == name).unwrap().instance
    }

    /// Lets somebody ask.
    pub(crate) async fn take(&self, asks: &Asks) {
        let body = serde_json::to_vec(&interaction(asks)).unwrap();
        self.take_body(asks, body).await;
    }

    pub(crate) async fn take_body(&self, asks: &Asks, body: Vec<u8>) {
        let (bot, instance) = (BotKey::new("fake", "bot"), self.instance(asks.tenant, asks.gateway).await);
        let now = clock::wall();
        let bound_to = seal::capability(asks.tenant, instance, &bot, [asks.chat, asks.user, &asks.id]);
        let capability = NewCapability {
            kind: INTERACTION_TOKEN,
            chat_id: asks.chat.into(),
            user_id: asks.user.into(),
            interaction_id: asks.id.clone(),
            deferral: asks.deferral,
            sealed: master_key().seal(&Secret::new(token(&asks.id)), &bound_to).unwrap().into(),
            expires_at: now.after(asks.lasts),
        };
        let entry = NewEntry {
            tenant: asks.tenant.into(),
            instance,
            kind: EntryKind::Interaction,
            platform: "fake".into(),
            bot: "bot".into(),
            chat_id: asks.chat.into(),
            message_id: asks.id.clone(),
            session_key: format!("agent:main:fake:group:{}:{}", asks.chat, asks.user).into(),
            body: body.into(),
            ahead: asks.ahead,
            while_busy: None,
            when_full: angelia_core::inbox::WhenFull::MakeRoom,
            received_at: now,
        };
        let intake = Intake { entry: Some(entry), capability: Some(capability), ..Intake::default() };
        self.store.take_in(&bot, None, vec![intake]).await.unwrap();
    }

    /// How far the answer to each interaction is, oldest first.
    pub(crate) fn stages(&self) -> Vec<String> {
        self.disk.capabilities().into_iter().map(|one| one.stage.as_str().to_owned()).collect()
    }

    pub(crate) async fn until_stages(&self, expected: &[&str]) {
        super::world::until(|| self.stages() == expected, || format!("{:?}", self.stages())).await;
    }

    /// Lets the time of an interaction be over in so long from now.
    pub(crate) fn ends_in(&self, id: &str, ms: i64) {
        self.disk.set_expiry(id, UnixMillis(clock::wall().0 + ms));
    }
}
