//! The server's end of a WebSocket, read as a stream.
//!
//! The relay cuts its text into lines by newlines, whatever the messages, so
//! nothing is gained by collecting a message first, and a peer that announces
//! eight megabytes and sends none must not be given them. Payload is handed on
//! as it arrives; the protocol's headers are tungstenite's (docs/decisions/0028).

mod frames;

pub(in crate::relay) use frames::{Broken, FrameReader, Piece};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, Bytes, BytesMut};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};

/// Read at once; lies on the stack, so that an idle socket holds none of it.
const CHUNK: usize = 16 * 1024;
/// Messages written with one system call.
const WRITTEN_AT_ONCE: usize = 16;

/// A request that may become a WebSocket.
pub(in crate::relay) struct Upgrade {
    key: HeaderValue,
    on_upgrade: OnUpgrade,
}

/// Reads a request for a WebSocket; a response that says what is wrong with any other.
#[expect(clippy::result_large_err, reason = "the answer is ready to be returned")]
pub(in crate::relay) fn accept(request: &mut Request) -> Result<Upgrade, Response> {
    let refuse = |status: StatusCode, why: &str| Err((status, format!("{why}\n")).into_response());
    if request.method() != Method::GET {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "a WebSocket is asked for with GET");
    }
    let headers = request.headers();
    if !has_token(headers, &CONNECTION, "upgrade") || !has_token(headers, &UPGRADE, "websocket") {
        return refuse(StatusCode::UPGRADE_REQUIRED, "agents dial this address with a WebSocket");
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return refuse(StatusCode::BAD_REQUEST, "only version 13 of the WebSocket protocol is spoken here");
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY).cloned() else {
        return refuse(StatusCode::BAD_REQUEST, "the header Sec-WebSocket-Key is missing");
    };
    match request.extensions_mut().remove::<OnUpgrade>() {
        Some(on_upgrade) => Ok(Upgrade { key, on_upgrade }),
        None => refuse(StatusCode::UPGRADE_REQUIRED, "this connection cannot become a WebSocket"),
    }
}

impl Upgrade {
    /// Answers 101, and serves the socket once the answer is written.
    pub(in crate::relay) fn serve<F>(self, serve: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Self { key, on_upgrade } = self;
        tokio::spawn(async move {
            // Whoever hangs up before the answer is written was never here.
            if let Ok(upgraded) = on_upgrade.await {
                serve(WebSocket::new(upgraded)).await;
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accepted) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
        }
        response
    }
}

/// Whether a header that lists tokens has this one.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(token))
}

/// Something to be written.
#[derive(Debug)]
pub(in crate::relay) enum Message {
    /// Lines.
    Text(Bytes),
    /// A ping with this number.
    Ping(u64),
    /// The answer to a ping.
    Pong(Bytes),
    /// The last one: a code and a reason.
    Close(u16, &'static str),
    /// The answer to a close.
    Closed,
}

impl Message {
    /// Bytes it holds while it waits.
    pub(in crate::relay) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            // The others are a few bytes.
            _ => 0,
        }
    }

    /// Whether nothing may follow it.
    pub(in crate::relay) fn is_last(&self) -> bool {
        matches!(self, Self::Close(..) | Self::Closed)
    }

    fn frame(self) -> Frame {
        match self {
            Self::Text(text) => Frame::message(text, OpCode::Data(Data::Text), true),
            Self::Ping(number) => Frame::ping(number.to_be_bytes().to_vec()),
            Self::Pong(payload) => Frame::pong(payload),
            Self::Close(code, reason) => {
                Frame::close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
            }
            Self::Closed => Frame::close(None),
        }
    }
}

/// A connection that was upgraded.
pub(in crate::relay) struct WebSocket {
    io: TokioIo<Upgraded>,
    /// Headers and payloads on their way out.
    writing: VecDeque<Bytes>,
}

impl WebSocket {
    fn new(upgraded: Upgraded) -> Self {
        Self { io: TokioIo::new(upgraded), writing: VecDeque::new() }
    }

    /// Whether another message may be given to [`WebSocket::write`].
    pub(in crate::relay) fn takes_more(&self) -> bool {
        self.writing.len() < 2 * WRITTEN_AT_ONCE
    }

    /// Takes a message to be written by [`WebSocket::poll_flush`].
    pub(in crate::relay) fn write(&mut self, message: Message) {
        let frame = message.frame();
        let payload = frame.payload().len();
        let mut header = Vec::with_capacity(frame.header().len(payload as u64));
        // Memory is written to: there is nothing that could fail.
        let _ = frame.header().format(payload as u64, &mut header);
        self.writing.push_back(header.into());
        self.writing.push_back(frame.into_payload());
    }

    /// Writes everything that was taken.
    pub(in crate::relay) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.writing.is_empty() {
            let slices: Vec<io::IoSlice<'_>> =
                self.writing.iter().take(2 * WRITTEN_AT_ONCE).map(|part| io::IoSlice::new(part)).collect();
            let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, &slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(part) = self.writing.front_mut() {
            if part.len() > written {
                return part.advance(written);
            }
            written -= part.len();
            self.writing.pop_front();
        }
    }

    /// What arrives next, still masked; `None` at the end.
    pub(in crate::relay) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<BytesMut>>> {
        let mut chunk = [0; CHUNK];
        let mut buffer = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        let filled = buffer.filled();
        Poll::Ready(Ok((!filled.is_empty()).then(|| BytesMut::from(filled))))
    }
}
