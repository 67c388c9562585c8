//! A command typed or a button pressed, in neutral form: the socket decides
//! whether it goes as an event or as the request it came as.

use angelia_contract::event::Event;
use angelia_contract::passthrough::PassthroughForward;
use serde::{Deserialize, Serialize};

/// What an entry of kind [`EntryKind::Interaction`](super::EntryKind::Interaction) holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interaction {
    /// What it says.
    pub event: Event,
    /// The request it came as, without anything that acts as the bot.
    pub request: Request,
    /// The name of the command, if it is one. What an earlier release kept does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A request without its credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path that was called.
    pub path: String,
    /// Header names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body, stripped and written anew: JSON, so it is text.
    pub body: String,
}

/// How interactions of a bot go to gateways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rendering {
    /// As a forward, except to peers known to lose one.
    #[default]
    Auto,
    /// As a forward.
    Passthrough,
    /// As an event.
    Event,
}

impl Interaction {
    /// Reads an entry's body.
    pub fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The request, as a gateway gets it.
    pub fn into_forward(self, platform: &str, bot: &str) -> PassthroughForward {
        let Request { method, path, headers, body } = self.request;
        PassthroughForward {
            platform: platform.to_owned(),
            bot_id: bot.to_owned(),
            method,
            path,
            headers,
            body: body.into_bytes(),
            profile: None,
        }
    }
}
