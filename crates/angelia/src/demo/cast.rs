//! Who is in the demo, and where: a tenant, three gateways, three rooms.
//!
//! All of it is made through the admin API, and only what is not there yet. The
//! server is the truth: a secret or key that is remembered counts if the server
//! has what it belongs to.

use super::kept::Kept;
use crate::remote::{Remote, Reply};
use angelia_connector::admin::api;
use angelia_connector::admin::types::{CreateGateway, CreateTenant, Invite, RotateGateway};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::secret::Secret;
use angelia_platforms::webchat::chat_id;
use reqwest::StatusCode;
use std::time::Duration;

const TENANT: &str = "demo";
/// The visitor's name in every room.
const VISITOR: &str = "you";
/// Whoever answers in the lobby.
pub(super) const IRIS: &str = "iris";
/// Whoever answers in the private chat.
pub(super) const METIS: &str = "metis";
/// The gateway nobody runs yet, and its room.
pub(super) const HERMES: &str = "hermes";
/// How long the server may take to say whether a key opens a room.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

const URL: &str = "GATEWAY_RELAY_URL";
const SECRET: &str = "GATEWAY_RELAY_SECRET";
/// The chat where hermes-agent reports what nobody asked for, timed jobs for example.
const HOME: &str = "RELAY_HOME_CHANNEL";

/// A gateway and the room where it answers; without a name the private chat.
const PARTS: [(&str, Option<&str>); 3] = [(IRIS, Some("lobby")), (METIS, None), (HERMES, Some(HERMES))];

/// A gateway with what it needs to dial in, and the visitor's key to its room.
pub(super) struct Part {
    gateway: &'static str,
    /// What `gateway create` answered: one `NAME=value` each.
    env: Vec<String>,
    pub(super) room: String,
    key: Secret,
}

/// Everybody.
pub(super) struct Cast {
    parts: Vec<Part>,
}

/// A room, as the welcome tells of it.
pub(super) struct Room {
    pub(super) name: String,
    pub(super) gateway: &'static str,
    pub(super) key: Secret,
}

impl Cast {
    /// Makes everything that is not there yet.
    pub(super) async fn assemble(remote: &Remote, url: &str, kept: &Kept) -> Result<Self> {
        let tenant = CreateTenant { tenant: TENANT.into(), ..CreateTenant::default() };
        unless_there(remote.call(api::CREATE_TENANT.ask(&tenant)?).await)?;
        let mut parts = Vec::new();
        for (gateway, room) in PARTS {
            let mut env = enrol(remote, gateway, kept).await?;
            // The port may be another one than last time.
            for line in env.iter_mut().filter(|line| line.starts_with(URL)) {
                *line = format!("{URL}={url}");
            }
            let name = room.map_or_else(|| format!("dm:{VISITOR}"), str::to_owned);
            let key = match kept.keys.get(&name) {
                Some(key) if opens(url, &name, key).await? => Secret::new(key.as_str()),
                _ => invite(remote, gateway, room).await?,
            };
            parts.push(Part { gateway, env, room: name, key });
        }
        Ok(Self { parts })
    }

    /// What the next run has to know.
    pub(super) fn kept(&self) -> Kept {
        Kept {
            port: None,
            gateways: self.parts.iter().map(|part| (part.gateway.to_owned(), part.env.clone())).collect(),
            keys: self.parts.iter().map(|part| (part.room.clone(), part.key.expose().to_owned())).collect(),
        }
    }

    /// The secret with which a gateway dials in.
    pub(super) fn secret(&self, gateway: &str) -> Result<Secret> {
        let part = self.parts.iter().find(|part| part.gateway == gateway);
        let lines = part.map_or(&[] as &[String], |part| &part.env);
        let secret = lines.iter().find_map(|line| line.strip_prefix(SECRET)?.strip_prefix('='));
        secret.map(Secret::new).ok_or_else(|| Error::internal(format!("gateway {gateway:?} has no secret")))
    }

    /// What somebody pastes into a shell for their own hermes-agent to join.
    pub(super) fn guide_lines(&self) -> Vec<String> {
        let part = self.parts.iter().find(|part| part.gateway == HERMES);
        let env = part.into_iter().flat_map(|part| &part.env);
        let mut lines: Vec<String> = env.map(|line| format!("export {line}")).collect();
        // Without a home hermes-agent asks for one before its first answer.
        lines.push(format!("export {HOME}={}", chat_id(HERMES)));
        lines.push("hermes gateway run".into());
        lines
    }

    /// The rooms, in the order in which they are best visited.
    pub(super) fn rooms(&self) -> Vec<Room> {
        let room =
            |part: &Part| Room { name: part.room.clone(), gateway: part.gateway, key: part.key.clone() };
        self.parts.iter().map(room).collect()
    }
}

/// Makes a gateway, or finds it with what is remembered of it. One whose secret
/// nobody remembers, because a run before was cut short, gets a new one.
async fn enrol(remote: &Remote, gateway: &str, kept: &Kept) -> Result<Vec<String>> {
    let tenant = Some(TENANT.to_owned());
    let create = CreateGateway {
        tenant: tenant.clone(),
        gateway_id: Some(gateway.to_owned()),
        ..CreateGateway::default()
    };
    let made = match remote.call(api::CREATE_GATEWAY.ask(&create)?).await {
        Err(error) if error.kind() == Kind::Conflict => match kept.gateways.get(gateway) {
            Some(env) => return Ok(env.clone()),
            None => {
                let rotate = RotateGateway { tenant, now: false };
                remote.call(api::ROTATE_GATEWAY.ask(gateway, &rotate)?).await?
            }
        },
        made => made?,
    };
    Ok(made.read?.env)
}

async fn invite(remote: &Remote, gateway: &str, room: Option<&str>) -> Result<Secret> {
    let invite = Invite {
        user: VISITOR.into(),
        room: room.map(Into::into),
        gateway: Some(gateway.into()),
        tenant: Some(TENANT.into()),
    };
    let invited = remote.call(api::INVITE.ask(&invite)?).await?;
    Ok(Secret::new(invited.read?.key))
}

/// Whether a key from the run before still opens its room: it may be revoked.
async fn opens(url: &str, room: &str, key: &str) -> Result<bool> {
    let failed =
        |e: reqwest::Error| Error::unavailable(format!("the demo's own server: {}", e.without_url()));
    let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN).build().map_err(failed)?;
    let lines = format!("{url}/chat/api/rooms/{room}/messages?after={}", i64::MAX);
    let answer = client.get(lines).bearer_auth(key).send().await.map_err(failed)?;
    Ok(answer.status() != StatusCode::UNAUTHORIZED)
}

/// What is there already need not be made.
fn unless_there<A>(made: Result<Reply<A>>) -> Result<()> {
    match made {
        Err(error) if error.kind() == Kind::Conflict => Ok(()),
        made => made.map(drop),
    }
}
