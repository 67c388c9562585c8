//! Places: the routes that give them away, and the people in rooms of the web chat.

use angelia_core::clock::UnixMillis;
use angelia_core::ports::Invited;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A route to be made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddRoute {
    /// The place, as `platform:path`.
    pub place: String,
    /// Whose place it becomes.
    pub tenant: String,
    /// Only messages to this bot.
    pub bot: Option<String>,
    /// The gateway that answers there, if not the tenant's default.
    pub gateway: Option<String>,
    /// Who may speak there: ids, or the word `any`.
    pub allow: Option<Vec<String>>,
    /// Whether messages that do not address the bot are delivered too.
    #[serde(default)]
    pub free: bool,
}

/// A route to be taken away.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveRoute {
    /// The place.
    pub place: String,
    /// The route of this bot, where it has one of its own.
    pub bot: Option<String>,
}

/// A route that is gone.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RemovedRoute {
    /// Its place.
    pub removed: String,
}

/// Every route.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Routes {
    /// In the order they were made.
    pub routes: Vec<Route>,
}

/// A route.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Route {
    /// Its place.
    pub place: String,
    /// The bot it is for; `null` for any.
    pub bot: Option<String>,
    /// Whose place it is.
    pub tenant: String,
    /// The gateway that answers there, if not the tenant's default.
    pub gateway: Option<String>,
    /// Who may speak there: ids, or the word `any`.
    pub allow: Vec<String>,
    /// Whether messages that do not address the bot are delivered too.
    pub free: bool,
}

/// The last places that spoke without a route.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unrouted {
    /// The one heard of last first.
    pub unrouted: Vec<UnroutedPlace>,
}

/// A place that spoke without a route.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnroutedPlace {
    /// The command that gives it to a tenant.
    pub add: String,
    /// The place.
    pub place: String,
    /// The bot that heard it.
    pub bot: String,
    /// How many messages.
    pub count: u64,
    /// When the last one came.
    pub last_at: UnixMillis,
}

/// A code to be made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeCode {
    /// Whose the place becomes where it is typed.
    pub tenant: String,
    /// The gateway that answers there, if not the tenant's default.
    pub gateway: Option<String>,
    /// Who may speak there; without it only whoever types the code.
    pub allow: Option<Vec<String>>,
    /// Whether messages that do not address the bot are delivered too.
    #[serde(default)]
    pub free: bool,
}

/// A code that gives away the place where it is typed, once.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteCode {
    /// The code.
    pub code: String,
    /// Until when it is good.
    pub expires_at: UnixMillis,
    /// What to type.
    pub say: String,
}

/// Somebody to be let in. Without a room it is a private chat with the agent.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Invite {
    /// Their name.
    pub user: String,
    /// The room.
    pub room: Option<String>,
    /// The gateway that answers there.
    pub gateway: Option<String>,
    /// The tenant the room belongs to.
    pub tenant: Option<String>,
}

/// The one answer that shows an invitation.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Invitation {
    /// The room.
    pub room: String,
    /// Who was invited.
    pub user: String,
    /// The key; it is not shown again.
    pub key: String,
    /// The link that signs them in.
    pub link: String,
    /// The room, for scripts.
    pub url: String,
    /// The route of the room, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
}

/// Which room's people.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub struct OfRoom {
    /// Only of this room.
    pub room: Option<String>,
}

/// Who has keys of rooms.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct People {
    /// By room and name.
    pub people: Vec<Invited>,
}

/// Somebody whose keys are to be void. Without a room those of their private chat.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokePerson {
    /// Their name.
    pub user: String,
    /// The room.
    pub room: Option<String>,
}

/// Somebody whose keys of a room are void.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RevokedPerson {
    /// The room.
    pub room: String,
    /// Who they are.
    pub user: String,
}
