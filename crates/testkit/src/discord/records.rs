//! What the stand-in tells of its guilds, messages and requests.

use serde_json::Value;

/// A guild, and the role Discord manages for the bot there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guild {
    /// The guild's id.
    pub id: String,
    /// The bot's managed role.
    pub role: String,
}

/// One message of a channel as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Who wrote it.
    pub author: String,
    /// Whether the bot wrote it.
    pub own: bool,
    /// Discord's number of its type: 0 plain, 19 reply, others are notices.
    pub kind: u64,
    /// What it says now.
    pub content: String,
    /// How often it was edited.
    pub edits: u64,
    /// What the bot marked it with.
    pub reactions: Vec<String>,
    /// The nonce it was sent with.
    pub nonce: Option<String>,
    /// The message it answers.
    pub reference: Option<String>,
    /// Whom it was allowed to mention, as sent.
    pub allowed_mentions: Value,
    /// What its files are called, and where they are.
    pub files: Vec<(String, String)>,
    /// Whether it is shown as a recording.
    pub voice: bool,
    /// Whether it is an answer still to come.
    pub loading: bool,
    /// Whether only one person sees it.
    pub ephemeral: bool,
    /// The interaction it answers or follows.
    pub interaction: Option<String>,
}

/// One request that the API got, whatever it answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its number, from 1.
    pub n: u64,
    /// When it came, in seconds since 1970.
    pub at: f64,
    /// The address it came from.
    pub from: String,
    /// HTTP method.
    pub method: String,
    /// Path below `/api/v10`.
    pub path: String,
    /// The answer's status; `None` while it is open, 499 when it was cut.
    pub status: Option<u64>,
    /// The fault that met it.
    pub fault: Option<String>,
    /// The channel in its path.
    pub channel: Option<String>,
    /// The channel that one belongs to: a thread's parent, a channel's category.
    pub parent: Option<String>,
    /// The guild in its path, or that of the channel.
    pub guild: Option<String>,
    /// The person of a direct-message channel.
    pub person: Option<String>,
    /// Every id that the path and the body name.
    pub ids: Vec<String>,
    /// The text it carried.
    pub content: Option<String>,
}

pub(super) fn message(shown: &Value) -> Message {
    Message {
        id: text(shown, "id"),
        author: text(shown, "author"),
        own: shown["own"].as_bool().unwrap_or_default(),
        kind: shown["type"].as_u64().unwrap_or_default(),
        content: text(shown, "content"),
        edits: shown["edits"].as_u64().unwrap_or_default(),
        reactions: texts(&shown["reactions"]),
        nonce: optional(shown, "nonce"),
        reference: optional(shown, "reference"),
        allowed_mentions: shown["allowed_mentions"].clone(),
        files: texts(&shown["attachments"]).into_iter().zip(texts(&shown["files"])).collect(),
        voice: shown["voice"].as_bool().unwrap_or_default(),
        loading: shown["loading"].as_bool().unwrap_or_default(),
        ephemeral: shown["ephemeral"].as_bool().unwrap_or_default(),
        interaction: optional(shown, "interaction"),
    }
}

pub(super) fn request(shown: &Value) -> Request {
    Request {
        n: shown["n"].as_u64().unwrap_or_default(),
        at: shown["at"].as_f64().unwrap_or_default(),
        from: optional(shown, "from").unwrap_or_default(),
        method: text(shown, "method"),
        path: text(shown, "path"),
        status: shown["status"].as_u64(),
        fault: optional(shown, "fault"),
        channel: optional(shown, "channel"),
        parent: optional(shown, "parent"),
        guild: optional(shown, "guild"),
        person: optional(shown, "person"),
        ids: texts(&shown["ids"]),
        content: optional(shown, "content"),
    }
}

fn texts(shown: &Value) -> Vec<String> {
    shown.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

pub(super) fn text(shown: &Value, name: &str) -> String {
    optional(shown, name).unwrap_or_else(|| panic!("no text {name:?} in {shown}"))
}

pub(super) fn optional(shown: &Value, name: &str) -> Option<String> {
    shown[name].as_str().map(str::to_owned)
}
