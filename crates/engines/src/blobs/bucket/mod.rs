//! Blobs as objects of a bucket, in S3 or anything that speaks its protocol; several nodes share it
//! (docs/decisions/0056).
//!
//! | Question | File |
//! |---|---|
//! | Where are bytes until they are whole? | `spool.rs` |
//! | How is a request made, how long may it take, when is it made again? | `call.rs` |
//! | How does it prove whose it is? | `signature.rs` |
//! | What is in an answer? | `listing.rs` |
//! | What went wrong, and what is to be done? | `failure.rs` |

mod call;
mod failure;
mod listing;
mod signature;
mod spool;

use super::unfinished::Unfinished;
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::media::FileId;
use angelia_core::ports::{BlobReader, BlobWriter, Blobs, BoxFuture, Listing};
use angelia_core::secret::Secret;
use bytes::Bytes;
use call::{Ask, Client};
use failure::Failure;
use listing::{Page, page};
use reqwest::{Method, Url};
use signature::Signer;
use spool::{Spooled, Writer};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of one request for a part of an object. Each piece is asked for by itself: a reader that is
/// slow holds no connection, and one that broke is no end of the file.
const PIECE: u64 = 128 * 1024;
/// Objects of one page.
const PAGE: usize = 200;
/// A page is no longer: names have a kilobyte at the most, and as much is said of each.
const PAGE_BYTES: usize = 512 * 1024;

/// Where a bucket is, and who may use it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server, with its scheme; if not given, Amazon's of the region.
    pub endpoint: Option<Url>,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// What names of objects begin with; nothing, or something that ends with a slash.
    pub prefix: String,
    /// The key's name.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Secret,
    /// The folder of this machine for files that are not whole yet.
    pub folder: PathBuf,
}

impl Options {
    /// The address of the bucket. Amazon's has it in the host; of any other server nobody knows
    /// whether it has names for its buckets.
    fn root(&self) -> Result<Url> {
        let Self { endpoint, region, bucket, .. } = self;
        let root = match endpoint {
            Some(endpoint) => format!("{}/{bucket}", endpoint.as_str().trim_end_matches('/')),
            // No certificate is good for a name with a dot in its first part.
            None if bucket.contains('.') => format!("https://s3.{region}.amazonaws.com/{bucket}"),
            None => format!("https://{bucket}.s3.{region}.amazonaws.com"),
        };
        Url::parse(&root).map_err(|error| Error::invalid(format!("media.endpoint is not good: {error}")))
    }
}

/// Blobs in a bucket.
#[derive(Clone, Debug)]
pub struct BucketBlobs {
    bucket: Arc<Bucket>,
    unfinished: Unfinished,
}

#[derive(Debug)]
struct Bucket {
    client: Client,
    name: String,
    prefix: String,
}

impl BucketBlobs {
    /// Blobs in a bucket that is there and lets us look into it.
    pub async fn open(options: Options) -> Result<Self> {
        // A server of one's own is no use to ask for through somebody else's.
        let (root, proxied) = (options.root()?, options.endpoint.is_none());
        let Options {
            region, bucket: name, prefix, access_key_id, secret_access_key: secret, folder, ..
        } = options;
        let client = Client::new(root, Signer { access_key_id, secret, region }, proxied)?;
        let bucket = Arc::new(Bucket { client, name, prefix });
        let probed = bucket.page("", 1).await;
        probed.map_err(|failure| bucket.failed("look into the bucket of files", &failure))?;
        Ok(Self { bucket, unfinished: Unfinished::open(&folder).await? })
    }
}

impl Bucket {
    fn key(&self, blob: &FileId) -> String {
        format!("{}{blob}", self.prefix)
    }

    fn failed(&self, what: &str, failure: &Failure) -> Error {
        failure.told(what, &self.name, self.client.host())
    }

    async fn put(&self, blob: &FileId, body: &Spooled) -> Result<()> {
        let key = self.key(blob);
        let ask = Ask { body: Some(body), ..Ask::new(Method::PUT, &key) };
        let kept = self.client.ask(&ask).await;
        kept.map(drop).map_err(|failure| self.failed("keep a file in the bucket", &failure))
    }

    /// The bytes of an object from one place up to another; `None` if it is not there.
    async fn part(&self, blob: &FileId, from: u64, to: u64) -> Result<Option<Bytes>> {
        let (key, length) = (self.key(blob), usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX));
        let ask =
            Ask { range: Some((from, to.saturating_sub(1))), longest: length, ..Ask::new(Method::GET, &key) };
        match self.client.ask(&ask).await {
            Ok(bytes) if bytes.len() == length => Ok(Some(bytes.into())),
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) if !failure.is_short() => Err(self.failed("read a file in the bucket", &failure)),
            Ok(_) | Err(_) => Err(Error::internal("a stored file is shorter than it was")),
        }
    }

    async fn remove(&self, blob: &FileId) -> Result<()> {
        match self.client.ask(&Ask::new(Method::DELETE, &self.key(blob))).await {
            Err(failure) if !failure.is_missing() => {
                Err(self.failed("remove a file from the bucket", &failure))
            }
            _ => Ok(()),
        }
    }

    /// Objects after one, by their whole names.
    async fn page(&self, after: &str, limit: usize) -> Result<Page, Failure> {
        let most = limit.min(PAGE).to_string();
        let mut query = vec![("list-type", "2"), ("max-keys", &*most)];
        query.extend((!self.prefix.is_empty()).then_some(("prefix", &*self.prefix)));
        query.extend((!after.is_empty()).then_some(("start-after", after)));
        let ask = Ask { query: &query, longest: PAGE_BYTES, ..Ask::new(Method::GET, "") };
        page(&self.client.ask(&ask).await?).ok_or(Failure::Unreadable)
    }

    /// What is ours of what is in the bucket; whatever else is there is passed over.
    async fn list(&self, after: Option<FileId>, limit: usize) -> Result<Vec<Listing>, Failure> {
        let mut after = after.map(|blob| self.key(&blob)).unwrap_or_default();
        let mut found = Vec::new();
        loop {
            let Page { objects, more } = self.page(&after, limit - found.len()).await?;
            let ours = objects.iter().filter_map(|(key, at)| {
                Some(Listing { blob: FileId::parse(key.strip_prefix(&self.prefix)?)?, at: *at })
            });
            found.extend(ours);
            found.truncate(limit);
            match objects.into_iter().next_back() {
                Some((last, _)) if more && found.len() < limit => after = last,
                _ => return Ok(found),
            }
        }
    }
}

impl Blobs for BucketBlobs {
    fn create(&self, blob: &FileId) -> BoxFuture<'_, Result<Box<dyn BlobWriter>>> {
        let writer = Writer::begin(self.bucket.clone(), self.unfinished.clone(), blob.clone());
        Box::pin(async move { Ok(Box::new(writer.await?) as Box<dyn BlobWriter>) })
    }

    fn read(&self, blob: &FileId, from: u64, to: u64) -> BoxFuture<'_, Result<Option<Box<dyn BlobReader>>>> {
        let blob = blob.clone();
        Box::pin(async move {
            let (bucket, ahead) = (self.bucket.clone(), to.min(from + PIECE));
            let Some(first) = bucket.part(&blob, from, ahead).await? else { return Ok(None) };
            let reader = Reader { bucket, blob, first: Some(first), from: ahead, to };
            Ok(Some(Box::new(reader) as Box<dyn BlobReader>))
        })
    }

    fn remove(&self, blob: &FileId) -> BoxFuture<'_, Result<()>> {
        let blob = blob.clone();
        Box::pin(async move { self.bucket.remove(&blob).await })
    }

    fn list(&self, after: Option<&FileId>, limit: usize) -> BoxFuture<'_, Result<Vec<Listing>>> {
        let after = after.cloned();
        Box::pin(async move {
            let listed = self.bucket.list(after, limit).await;
            listed.map_err(|failure| self.bucket.failed("list the files in the bucket", &failure))
        })
    }

    fn sweep(&self, then: UnixMillis) -> BoxFuture<'_, Result<u64>> {
        Box::pin(self.unfinished.sweep(then))
    }
}

/// A part of an object that is being read.
struct Reader {
    bucket: Arc<Bucket>,
    blob: FileId,
    /// What came first, and told that the object is there.
    first: Option<Bytes>,
    from: u64,
    to: u64,
}

impl BlobReader for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            if let Some(first) = self.first.take() {
                return Ok(Some(first));
            }
            let ahead = self.to.min(self.from + PIECE);
            if self.from >= ahead {
                return Ok(None);
            }
            let piece = self.bucket.part(&self.blob, self.from, ahead).await?;
            self.from = ahead;
            piece.map(Some).ok_or_else(|| Error::internal("a stored file went while it was read"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: Option<&str>, bucket: &str) -> Options {
        Options {
            endpoint: endpoint.map(|url| Url::parse(url).unwrap()),
            region: "eu-west-3".into(),
            bucket: bucket.into(),
            prefix: "media/".into(),
            access_key_id: "id".into(),
            secret_access_key: Secret::new("hunter2"),
            folder: PathBuf::new(),
        }
    }

    #[test]
    fn a_bucket_is_found_at_amazon_and_anywhere_else() {
        for (endpoint, bucket, root) in [
            (None, "files", "https://files.s3.eu-west-3.amazonaws.com/"),
            (None, "my.files", "https://s3.eu-west-3.amazonaws.com/my.files"),
            (Some("http://127.0.0.1:9000"), "files", "http://127.0.0.1:9000/files"),
            (Some("https://store.example/s3/"), "files", "https://store.example/s3/files"),
        ] {
            assert_eq!(options(endpoint, bucket).root().unwrap().as_str(), root);
        }
    }

    #[test]
    fn nobody_sees_the_secret() {
        let told = format!("{:?}", options(None, "files"));
        assert!(!told.contains("hunter2"), "{told}");
    }
}
