//! Where the bytes of files rest: a folder in the data directory, or a bucket.

use super::SecretRef;
use angelia_core::error::{Error, Result};
use angelia_core::media::{FILE_BYTES, TENANT_BYTES};
use angelia_engines::blobs::BucketOptions;
use angelia_platforms::settings::{BadValue, Given};
use ipnet::IpNet;
use std::fmt;
use std::path::Path;
use url::Url;

/// How the address of a bucket begins.
const SCHEME: &str = "s3://";
/// The region of servers that know no regions, and Amazon's first.
const REGION: &str = "us-east-1";

/// Where the bytes of files rest, and how many a tenant may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The bucket; without it a folder in the data directory.
    pub url: Option<BucketUrl>,
    /// The server that has it; if not given, Amazon's of the region.
    pub endpoint: Option<Url>,
    /// The region that requests are signed for.
    pub region: String,
    /// The name of the key.
    pub access_key_id: Option<String>,
    /// The key.
    pub secret_access_key: Option<SecretRef>,
    /// The most one tenant may have.
    pub tenant_bytes: u64,
    /// Private ranges that agents may send files from.
    pub source_networks: Vec<IpNet>,
}

impl Default for Media {
    fn default() -> Self {
        Self {
            url: None,
            endpoint: None,
            region: REGION.into(),
            access_key_id: None,
            secret_access_key: None,
            tenant_bytes: TENANT_BYTES,
            source_networks: Vec::new(),
        }
    }
}

/// A bucket, and what names in it begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUrl {
    bucket: String,
    /// Nothing, or something that ends with a slash.
    prefix: String,
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix } = self;
        let way =
            if prefix.is_empty() { String::new() } else { format!("/{}", prefix.trim_end_matches('/')) };
        write!(to, "{SCHEME}{bucket}{way}")
    }
}

impl BucketUrl {
    /// One that somebody wrote; `None` if it cannot be one. What passes is the same in an address.
    fn parse(text: &str) -> Option<Self> {
        let (bucket, way) =
            text.strip_prefix(SCHEME).map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        let is_bucket = (3..=63).contains(&bucket.len()) && bucket.bytes().all(plain);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
        let way = way.trim_end_matches('/');
        let is_way = way.is_empty() || (way.len() <= 512 && way.split('/').all(is_part));
        let prefix = if way.is_empty() { String::new() } else { format!("{way}/") };
        (is_bucket && is_way).then(|| Self { bucket: bucket.to_owned(), prefix })
    }
}

impl Media {
    /// How the bucket is used, if it is one; `folder` is for files that are not whole yet.
    pub fn bucket(&self, folder: &Path) -> Result<Option<BucketOptions>> {
        let (Some(url), Some(access_key_id), Some(secret)) =
            (&self.url, &self.access_key_id, &self.secret_access_key)
        else {
            return Ok(None);
        };
        let secret = secret.resolve();
        let secret =
            secret.map_err(|e| Error::invalid(format!("media.secret_access_key: {e}")).caused_by(e))?;
        Ok(Some(BucketOptions {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            bucket: url.bucket.clone(),
            prefix: url.prefix.clone(),
            access_key_id: access_key_id.clone(),
            secret_access_key: secret,
            folder: folder.to_owned(),
        }))
    }

    /// What does not go together.
    pub(super) fn fault(&self) -> Option<BadValue> {
        let given = [
            ("media.endpoint", self.endpoint.is_some()),
            ("media.access_key_id", self.access_key_id.is_some()),
            ("media.secret_access_key", self.secret_access_key.is_some()),
        ];
        let bad = |key: &str, message: &str| BadValue { key: key.into(), message: message.into() };
        if self.url.is_none() {
            let idle = given.into_iter().find(|(_, is_given)| *is_given);
            return idle.map(|(key, _)| {
                bad(key, "is for a bucket, and media.url names none; write url = \"s3://BUCKET\" beside it")
            });
        }
        let missing = given[1..].iter().find(|(_, is_given)| !is_given);
        missing.map(|(key, _)| {
            bad(key, "is missing: a bucket is asked with a key, its name and where its secret is kept")
        })
    }
}

pub(super) fn url(given: &Given<'_>) -> Result<BucketUrl, BadValue> {
    // Not repeated: it may hold a key.
    BucketUrl::parse(given.text()?).ok_or_else(|| {
        given.bad(
            "is not a bucket; write something like \"s3://angelia-files\" or \"s3://bucket/prefix\", in letters, \
             digits, dots and hyphens. Its server is media.endpoint, its key media.access_key_id and \
             media.secret_access_key",
        )
    })
}

/// A server. Plain http will do: what travels is sealed, and signed.
pub(super) fn endpoint(given: &Given<'_>) -> Result<Url, BadValue> {
    let why = |why: &str| {
        given.bad(format!(
            "is not the address of a server ({why}); write something like \"https://s3.example.org\" or \
             \"http://10.0.0.7:9000\""
        ))
    };
    // Not repeated: what is wrong with it may be that it holds a password.
    let url = Url::parse(given.text()?).map_err(|error| why(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(why("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(why("it must not hold a user name or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(why("it must not have a query or a fragment"));
    }
    Ok(url)
}

/// A word that goes into a signature: a region, or the name of a key.
pub(super) fn word(given: &Given<'_>) -> Result<String, BadValue> {
    let text = given.text()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=128).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    // Not repeated: it may be the secret, in the wrong place.
    Err(given.bad("must be one word of letters, digits, dots, hyphens and underscores"))
}

/// Less than the largest file is no share.
pub(super) fn tenant_bytes(given: &Given<'_>) -> Result<u64, BadValue> {
    super::values::size(given, FILE_BYTES, "one file can be that large")
}
