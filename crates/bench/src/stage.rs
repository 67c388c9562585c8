//! A server with everything in it that a run needs.
//!
//! A thousand gateways are made once for each binary, over its admin API; each run then has a
//! copy of the data, so that it begins where the others began.

use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::webchat::http_client;
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Gateways of one tenant.
const GATEWAYS_EACH: usize = 10;
/// How many things are made at the same time.
const AT_ONCE: usize = 16;
/// How long the server may take to stop.
const STOP: Duration = Duration::from_secs(20);

/// A binary and data it has made.
#[derive(Debug)]
pub struct Stage {
    binary: PathBuf,
    folder: PathBuf,
    pub(crate) rooms: Vec<Room>,
}

/// A web-chat room, who writes in it, and whose gateway answers.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) gateway: Credentials,
}

impl Room {
    /// As gateways name it.
    pub(crate) fn chat_id(&self) -> String {
        format!("web-{}", self.name)
    }
}

impl Stage {
    /// Makes so many gateways, each with a room; `folder` is to be empty.
    ///
    /// # Panics
    ///
    /// When the server does not start, or refuses one.
    pub async fn set(binary: &Path, folder: &Path, gateways: usize) -> Self {
        let mut server = Connector::start(binary, folder).await;
        let rooms = furnish(&server, gateways).await;
        server.process().terminate(STOP).await;
        Self { binary: binary.to_owned(), folder: folder.to_owned(), rooms }
    }

    /// Starts a server over a copy of the data, in an empty folder.
    ///
    /// # Errors
    ///
    /// When the data cannot be copied.
    ///
    /// # Panics
    ///
    /// When the server does not start.
    pub(crate) async fn open(&self, folder: &Path) -> io::Result<Connector> {
        copy(&self.folder.join("data"), &folder.join("data"))?;
        Ok(Connector::start(&self.binary, folder).await)
    }
}

/// Makes so many gateways, each with a room.
pub(crate) async fn furnish(server: &Connector, gateways: usize) -> Vec<Room> {
    let client = http_client();
    let tenants = iter(0..gateways.div_ceil(GATEWAYS_EACH)).map(|number| {
        let client = &client;
        async move { server.admin(client, "tenants", &json!({ "tenant": tenant(number) })).await }
    });
    tenants.buffered(AT_ONCE).for_each(async |_| {}).await;
    let rooms = iter(0..gateways).map(|number| room(server, &client, number));
    rooms.buffered(AT_ONCE).collect().await
}

/// Whose a gateway is.
pub(crate) fn tenant_of(gateway: usize) -> String {
    tenant(gateway / GATEWAYS_EACH)
}

fn tenant(number: usize) -> String {
    format!("tenant-{number}")
}

async fn room(server: &Connector, client: &reqwest::Client, number: usize) -> Room {
    let (id, name) = (format!("gateway-{number}"), format!("room-{number}"));
    let text = |value: &Value, field: &str| {
        value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
    };
    let made = json!({ "tenant": tenant_of(number), "gateway_id": id });
    let made = server.admin(client, "gateways", &made).await;
    let invited = json!({ "room": name, "user": "ann", "gateway": id });
    let invited = server.admin(client, "webchat/invites", &invited).await;
    let gateway = Credentials { gateway_id: id, secret: text(&made, "secret") };
    Room { key: text(&invited, "key"), name, gateway }
}

/// Copies a folder with all that is in it, and who may read it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
