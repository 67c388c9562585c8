//! One socket of a stand-in: what its WebSocket library does beneath it.
//!
//! The library reads ahead, but not far: with a handful of messages unread it
//! stops, and then sees no pong either. That is how a reader that stands still
//! for long enough ends its own socket.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

use super::diary::End;

/// Messages it takes from the socket before the gateway has read them.
const READ_AHEAD: usize = 16;
/// Frames that wait to be written; a task that has more waits.
const WRITE_AHEAD: usize = 64;
/// How often it pings.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a pong may take.
const PONG_WITHIN: Duration = Duration::from_secs(60);

/// What is done with a socket.
#[derive(Debug)]
pub(super) enum Order {
    /// Write this line.
    Write(String),
    /// Close it and wait for the answer.
    Close,
    /// Let go of it without a word.
    Cut,
}

/// Both ends of a socket that is carried by a task.
pub(super) struct Link {
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) messages: mpsc::Receiver<String>,
}

/// Hands a socket's messages over and writes what is ordered, until it ends.
pub(super) fn link<S>(socket: WebSocketStream<S>) -> (Link, impl Future<Output = End>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (orders, ordered) = mpsc::channel(WRITE_AHEAD);
    let (hand, messages) = mpsc::channel(READ_AHEAD);
    (Link { orders, messages }, carry(socket, ordered, hand))
}

async fn carry<S>(
    mut socket: WebSocketStream<S>,
    mut ordered: mpsc::Receiver<Order>,
    hand: mpsc::Sender<String>,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut room = None;
    let mut ping_at = Instant::now() + PING_EVERY;
    let mut pong_by = None;
    loop {
        tokio::select! {
            free = hand.reserve(), if room.is_none() => match free {
                Ok(free) => room = Some(free),
                Err(_) => return End::Left,
            },
            came = socket.next(), if room.is_some() => match came {
                Some(Ok(Message::Text(text))) => {
                    if let Some(room) = room.take() {
                        room.send(text.to_string());
                    }
                }
                Some(Ok(Message::Pong(_))) => pong_by = None,
                Some(Ok(Message::Close(frame))) => {
                    let _ = socket.flush().await;
                    return End::Closed(frame.map_or(1005, |frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return End::Gone,
            },
            order = ordered.recv() => match order {
                Some(Order::Write(line)) => {
                    if socket.send(Message::text(line)).await.is_err() {
                        return End::Gone;
                    }
                }
                Some(Order::Close) => {
                    let _ = socket.close(None).await;
                    return End::Left;
                }
                Some(Order::Cut) | None => return End::Left,
            },
            () = sleep_until(ping_at) => {
                let _ = socket.send(Message::Ping(Vec::new().into())).await;
                ping_at += PING_EVERY;
                pong_by = pong_by.or(Some(Instant::now() + PONG_WITHIN));
            },
            () = until(pong_by) => {
                let reason = "keepalive ping timeout".into();
                let frame = CloseFrame { code: CloseCode::Error, reason };
                let _ = socket.close(Some(frame)).await;
                return End::Keepalive;
            },
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
