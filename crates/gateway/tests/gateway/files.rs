//! Files that come with events and files that are sent, over HTTP beside the socket.

use angelia_contract::{Action, ActionResult, Event, EventFile, token};
use angelia_gateway::{
    Conversation, FileError, FileKind, GatewayHandle, MAX_FILE_BYTES, OutgoingFile, SendFileError,
};
use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Peer, Running, SECRET, Server, descriptor, message, run_turns, soon};

async fn talk(server: &Server) -> (Peer, GatewayHandle, Conversation, Running) {
    let (handle, running, mut turns) = run_turns(server.builder());
    let mut peer = server.greet_as(descriptor("discord")).await;
    peer.event(message("1", "42", "m1", "go"), "").await;
    let (_, conversation) = soon(turns.recv()).await.unwrap();
    (peer, handle, conversation, running)
}

/// One request as it came: its head in small letters, and its body.
struct Asked {
    stream: TcpStream,
    head: String,
    body: Vec<u8>,
}

async fn asked(server: &Server) -> Asked {
    let mut stream = server.accept_tcp().await;
    let mut came = Vec::new();
    let end = loop {
        let mut buffer = [0; 4096];
        let read = soon(stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "the request broke off");
        came.extend_from_slice(&buffer[..read]);
        if let Some(at) = came.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let mut body = came.split_off(end);
    let head = String::from_utf8(came).unwrap();
    let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    let already = body.len();
    body.resize(length, 0);
    soon(stream.read_exact(&mut body[already..])).await.unwrap();
    Asked { stream, head, body }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

impl Asked {
    async fn answer(mut self, status: &str, headers: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream.write_all(body).await.unwrap();
    }

    fn is_of_this_gateway(&self) {
        let bearer = header(&self.head, "authorization").unwrap().strip_prefix("Bearer ").unwrap();
        assert_eq!(token::parse(bearer).unwrap().gateway_id(), "gw:1");
        assert!(!self.head.contains(SECRET));
    }
}

fn file(url: &str) -> EventFile<'_> {
    EventFile { url, name: None, media_type: None, size: None }
}

#[tokio::test]
async fn a_file_of_an_event_is_read_in_pieces_or_saved_whole() {
    let server = Server::start().await;
    let (_peer, _handle, conversation, _running) = talk(&server).await;
    let event: Event = serde_json::from_value(serde_json::json!({
        "source": {"platform": "discord", "chat_id": "1"},
        // A proxy of the connector's may be known there by another name: it is asked where it was dialled.
        "media_urls": ["https://inside.example/relay/media/abc"],
        "media": [{"url": "https://inside.example/relay/media/abc", "mime": "text/plain", "filename": "a.txt"}],
    }))
    .unwrap();
    let content = "hello ".repeat(50_000);
    let answering = async {
        for _ in 0..2 {
            let asked = asked(&server).await;
            assert!(asked.head.starts_with("GET /relay/media/abc HTTP/1.1\r\n"), "{}", asked.head);
            asked.is_of_this_gateway();
            asked.answer("200 OK", "content-type: text/plain\r\n", content.as_bytes()).await;
        }
    };
    let folder = tempdir();
    let reading = async {
        let file = event.files().next().unwrap();
        assert_eq!((file.name, file.media_type), (Some("a.txt"), Some("text/plain")));
        let mut stream = conversation.open_file(&file).await.unwrap();
        assert_eq!((stream.media_type(), stream.size()), (Some("text/plain"), Some(300_000)));
        let (mut pieces, mut whole) = (0, Vec::new());
        while let Some(piece) = stream.next().await {
            pieces += 1;
            whole.extend_from_slice(&piece.unwrap());
        }
        assert!(pieces > 1 && whole == content.as_bytes(), "{pieces}");
        let path = folder.join("saved");
        conversation.open_file(&file).await.unwrap().save(&path).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), content.as_bytes());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no part is left");
    };
    tokio::join!(answering, reading);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_token_goes_to_nobody_else_and_nowhere_but_to_files() {
    let server = Server::start().await;
    let (_peer, handle, _, _running) = talk(&server).await;
    for url in [
        "",
        "https://example.org/a.png",
        "http://h/relay/media/",
        "http://h/relay/media/../provision",
        "http://h/relay/media/a/b",
        "http://h/relay/media/a?b",
        "http://h/relay/media/..",
        "http://h/relay/media/a b",
    ] {
        let opened = handle.open_file(&file(url)).await;
        assert!(matches!(opened, Err(FileError::Elsewhere)), "{url}");
    }
}

#[tokio::test]
async fn what_is_gone_too_large_or_breaks_off_is_told_apart() {
    let server = Server::start().await;
    let (_peer, handle, _, _running) = talk(&server).await;
    let here = "http://h/relay/media/abc";
    let answering = async {
        asked(&server).await.answer("404 Not Found", "", b"{}").await;
        asked(&server).await.answer("401 Unauthorized", "", br#"{"error": "expired"}"#).await;
        asked(&server).await.answer("503 Service Unavailable", "retry-after: 7\r\n", b"").await;
        let Asked { mut stream, .. } = asked(&server).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", MAX_FILE_BYTES + 1);
        stream.write_all(head.as_bytes()).await.unwrap();
        let Asked { mut stream, .. } = asked(&server).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
    };
    let folder = tempdir();
    let reading = async {
        assert!(matches!(handle.open_file(&file(here)).await, Err(FileError::Gone)));
        let refused = handle.open_file(&file(here)).await.unwrap_err();
        assert_eq!(refused.to_string(), "refused with status 401: expired");
        let busy = handle.open_file(&file(here)).await.unwrap_err();
        assert!(matches!(&busy, FileError::Busy { retry_after: Some(after), .. } if after.as_secs() == 7));
        assert!(busy.is_passing() && !refused.is_passing());
        assert!(matches!(handle.open_file(&file(here)).await, Err(FileError::TooLarge)));
        let saved = handle.open_file(&file(here)).await.unwrap().save(folder.join("half")).await;
        assert!(matches!(saved, Err(FileError::BrokeOff(_))), "{saved:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "of a half file nothing is left");
    };
    tokio::join!(answering, reading);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_path_and_bytes_are_uploaded_and_then_said() {
    let server = Server::start().await;
    let (mut peer, _handle, conversation, _running) = talk(&server).await;
    let folder = tempdir();
    let path = folder.join("Zoë's plan.pdf");
    let content = vec![7; 200_000];
    std::fs::write(&path, &content).unwrap();
    let sending = async {
        let sent = conversation.send_file(path.as_path()).await.unwrap();
        assert_eq!(sent.message_id.as_deref(), Some("9"));
        let voice = OutgoingFile::bytes("hi.ogg", &b"OggS"[..]).kind(FileKind::Voice).caption("listen");
        conversation.send_file(voice).await.unwrap();
    };
    let answering = async {
        let upload = asked(&server).await;
        assert!(upload.head.starts_with("POST /relay/media HTTP/1.1\r\n"), "{}", upload.head);
        upload.is_of_this_gateway();
        assert_eq!(header(&upload.head, "x-media-filename"), Some("Zoë's plan.pdf"));
        assert_eq!(header(&upload.head, "content-type"), Some("application/pdf"));
        assert_eq!(upload.body, content);
        upload.answer("200 OK", "", br#"{"id": "f1", "size": 200000}"#).await;
        let outbound = peer.outbound().await;
        peer.answer(&outbound, ActionResult::sent("9")).await;
        let Action::SendMedia { media_kind, source_url, content, filename, reply_to, .. } = outbound.action
        else {
            panic!("no file")
        };
        assert_eq!((&*media_kind, &*source_url), ("document", &*format!("{}/relay/media/f1", server.url())));
        assert_eq!(
            (&*content, filename.as_deref(), reply_to.as_deref()),
            ("", Some("Zoë's plan.pdf"), Some("m1"))
        );
        // Nobody was shown anything yet, so a connector that is busy is asked again.
        asked(&server).await.answer("503 Service Unavailable", "retry-after: 0\r\n", b"").await;
        let upload = asked(&server).await;
        assert_eq!((&*upload.body, header(&upload.head, "content-type")), (&b"OggS"[..], Some("audio/ogg")));
        upload.answer("200 OK", "", br#"{"id": "f2", "size": 4}"#).await;
        let outbound = peer.outbound().await;
        peer.answer(&outbound, ActionResult::sent("10")).await;
        let Action::SendMedia { media_kind, content, .. } = outbound.action else { panic!("no file") };
        assert_eq!((&*media_kind, &*content), ("voice", "listen"));
    };
    tokio::join!(answering, sending);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_before_anybody_is_asked() {
    let server = Server::start().await;
    let (_peer, _handle, conversation, _running) = talk(&server).await;
    let large = OutgoingFile::bytes("a.bin", vec![0; usize::try_from(MAX_FILE_BYTES).unwrap() + 1]);
    let sent = conversation.send_file(large).await;
    assert!(matches!(sent, Err(SendFileError::Upload(FileError::TooLarge))), "{sent:?}");
    let sent = conversation.send_file(std::path::Path::new("/nowhere/a.bin")).await;
    assert!(matches!(sent, Err(SendFileError::Upload(FileError::Local(_)))), "{sent:?}");
    let refused = async {
        asked(&server).await.answer("413 Payload Too Large", "", b"{}").await;
    };
    let sending = conversation.send_file(OutgoingFile::bytes("a\r\nb: c", &b"x"[..]));
    let ((), sent) = tokio::join!(refused, sending);
    assert!(matches!(sent, Err(SendFileError::Upload(FileError::TooLarge))), "{sent:?}");
}

/// A folder of this test's own.
fn tempdir() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("angelia-gateway-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).unwrap();
    folder
}
