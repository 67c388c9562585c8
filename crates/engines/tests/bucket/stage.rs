//! A bucket for a test, and a way to it that breaks off.

use angelia_core::secret::{Secret, random_hex};
use angelia_engines::blobs::{BucketBlobs, BucketOptions};
use angelia_services::S3;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Blobs below a prefix of their own, and the folder they are in until they are whole.
pub(crate) struct Stage {
    pub(crate) s3: &'static S3,
    pub(crate) options: BucketOptions,
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        // What a server does when it starts; here nobody did.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (s3, folder) = (S3::shared().unwrap(), tempfile::tempdir().unwrap());
        let options = BucketOptions {
            endpoint: Some(s3.endpoint().parse().unwrap()),
            region: "us-east-1".into(),
            bucket: S3::BUCKET.into(),
            prefix: format!("{}/", random_hex::<8>()),
            access_key_id: s3.access_key_id().into(),
            secret_access_key: Secret::new(s3.secret_access_key()),
            folder: folder.path().to_owned(),
        };
        Self { s3, options, folder }
    }

    pub(crate) async fn blobs(&self) -> BucketBlobs {
        BucketBlobs::open(self.options.clone()).await.unwrap()
    }

    /// What another client sees of it, without the prefix.
    pub(crate) fn seen(&self) -> Vec<(String, u64)> {
        let ours =
            |(name, size): (String, u64)| Some((name.strip_prefix(&self.options.prefix)?.to_owned(), size));
        self.s3.objects().unwrap().into_iter().filter_map(ours).collect()
    }

    /// What lies in the folder.
    pub(crate) fn lying(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("unfinished")).unwrap().count()
    }
}

/// The port of a way to a server on which no more than so many bytes pass before it ends.
pub(crate) async fn breaking_off(to: u16, after: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let ((asking, mut asked), (mut answering, mut answered)) = (near.split(), far.split());
                let mut asking = asking.take(after);
                tokio::select! {
                    _ = copy(&mut asking, &mut answered) => {}
                    _ = copy(&mut answering, &mut asked) => {}
                }
            });
        }
    });
    port
}

/// A server that gives these answers, each to a connection of its own, whatever it is asked; and
/// what it is asked.
pub(crate) async fn answering(answers: Vec<&'static str>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let (status, body) = answer.split_once(' ').unwrap();
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            asked.push(String::from_utf8(head).unwrap().to_lowercase());
        }
        asked
    });
    (port, asked)
}
