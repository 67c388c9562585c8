//! Files that came with a message, fetched from where Discord keeps them.
//!
//! The address of an attachment ends after a day or so; then Discord names a new one.

use super::Discord;
use super::api::{Call, DISCORD, Method};
use crate::kit::ApiError;
use crate::platform::FetchedFile;
use angelia_core::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use url::Url;

/// What stands before the path of a sticker, whose address is the same for everybody.
pub(super) const STICKERS: &str = "stickers/";
/// Where Discord keeps files.
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// How long the transfer of a file may take.
const FETCH_WITHIN: Duration = Duration::from_secs(110);

/// What Discord answers to addresses that have ended.
#[derive(Deserialize)]
struct Refreshed {
    refreshed_urls: Vec<NewAddress>,
}

#[derive(Deserialize)]
struct NewAddress {
    refreshed: Option<String>,
}

impl Discord {
    /// Begins to fetch a file by its address.
    pub(super) async fn fetch(&self, at: &str) -> Result<FetchedFile> {
        let client = self.api.client();
        if let Some(path) = at.strip_prefix(STICKERS) {
            let host = if !client.is_own() {
                client.root()
            } else if path.ends_with(".gif") {
                "https://media.discordapp.net"
            } else {
                "https://cdn.discordapp.com"
            };
            return self.open(&format!("{host}/{STICKERS}{path}")).await;
        }
        match self.open(at).await {
            Err(error) if error.kind() == Kind::NotFound => {
                let ask = Call::new(Method::Post, "attachments/refresh-urls");
                let ask = ask.json(json!({ "attachment_urls": [at] }));
                let Ok(Refreshed { refreshed_urls }) = self.api.read(ask).await else { return Err(error) };
                match refreshed_urls.into_iter().find_map(|url| url.refreshed).filter(|url| url != at) {
                    Some(url) => self.open(&url).await,
                    None => Err(error),
                }
            }
            opened => opened,
        }
    }

    async fn open(&self, url: &str) -> Result<FetchedFile> {
        let client = self.api.client();
        let url = Url::parse(url).ok().filter(|url| client.leads_there(url, &HOSTS));
        let url = url.ok_or_else(|| Error::not_found("it is not among Discord's files"))?;
        let request = client.elsewhere(&url).map_err(ApiError::of_read)?.timeout(FETCH_WITHIN);
        client.open(request).await.map_err(ApiError::of_read)?.file(&DISCORD)
    }
}
