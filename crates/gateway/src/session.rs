//! The life of one socket.
//!
//! Reader, writer, watchdog and the owner's wishes run beside each other on
//! one task. The reader never waits for anything but the socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use angelia_contract::{ConnectorFrame, FrameError, GatewayFrame, LineBuffer};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, frame::coding::CloseCode};
use tokio_tungstenite::tungstenite::{Bytes, Error as WsError};

use crate::acks::{Ack, Acks, Flooded};
use crate::agent::Agent;
use crate::connection::{Link, Outgoing, QUEUE, Want, Wire};
use crate::dial::{MAX_MESSAGE, Socket};
use crate::dispatch::{Dispatcher, Turns};
use crate::shared::{Shared, count};

/// Time for the first descriptor.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for the answer to a going-idle.
const IDLE_ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the other side to finish a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the connector is asked for a sign of life.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Two pings and a half without any sign of life: the connector is gone.
const SILENCE: Duration = Duration::from_secs(75);

/// How a socket ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Closed by this side, on the owner's wish.
    Quiet,
    /// Closed by the other side; without a code when the connection broke.
    Closed { code: Option<u16>, reason: String },
    /// Nothing came for too long.
    Silent,
    /// No descriptor came.
    NotGreeted,
    /// More came than can be kept; what was not acknowledged comes again.
    Flooded,
}

/// What is left of a socket.
pub(crate) struct Remains {
    pub(crate) ended: Ended,
    /// Whether the handshake was completed.
    pub(crate) greeted: bool,
    /// Whether a going-idle was confirmed.
    pub(crate) idle_acked: bool,
}

struct Session<'a> {
    shared: &'a Shared,
    wire: Wire,
    acks: Arc<Acks>,
    opened: Instant,
    /// When something came last, in milliseconds after `opened`.
    heard: AtomicU64,
    greeted: AtomicBool,
    idle_ack: Notify,
    idle_acked: AtomicBool,
}

/// Runs a socket to its end.
pub(crate) async fn run<A: Agent>(
    socket: Socket,
    shared: &Shared,
    dispatcher: &mut Dispatcher<A>,
    want: watch::Receiver<Want>,
) -> Remains {
    let (sink, mut stream) = socket.split();
    let (wire, queue) = mpsc::channel(QUEUE);
    let session = Session {
        shared,
        wire,
        acks: Arc::default(),
        opened: Instant::now(),
        heard: AtomicU64::new(0),
        greeted: AtomicBool::new(false),
        idle_ack: Notify::new(),
        idle_acked: AtomicBool::new(false),
    };
    let turns = dispatcher.turns();
    turns.drain(false);
    let ended = tokio::select! {
        ended = session.read(&mut stream, dispatcher) => ended,
        ended = session.write(sink, queue) => ended,
        ended = session.watch_over() => ended,
        ended = session.obey(want, turns) => ended,
    };
    session.acks.end();
    // In this order: after it no call can be registered for the dead queue
    // and be forgotten.
    shared.link.send_replace(Link::Down);
    shared.calls.lose_all();
    if ended == Ended::Quiet {
        let rest = async { while let Some(Ok(_)) = stream.next().await {} };
        let _ = timeout(CLOSE_TIMEOUT, rest).await;
    }
    Remains { ended, greeted: session.greeted.into_inner(), idle_acked: session.idle_acked.into_inner() }
}

impl Session<'_> {
    async fn read<A: Agent>(
        &self,
        stream: &mut SplitStream<Socket>,
        dispatcher: &mut Dispatcher<A>,
    ) -> Ended {
        let mut lines = LineBuffer::new(MAX_MESSAGE);
        let mut ended = Ended::Closed { code: None, reason: String::new() };
        let mut closing = false;
        loop {
            // Reading on after a close is what sends the answer to it, just
            // as reading on after a ping sends the pong.
            let limit = if closing { CLOSE_TIMEOUT } else { Duration::MAX };
            let Ok(Some(message)) = timeout(limit, stream.next()).await else {
                return ended;
            };
            self.mark_heard();
            let taken_in = match message {
                Ok(Message::Text(text)) => self.take_in(&mut lines, text.as_bytes(), dispatcher),
                Ok(Message::Binary(bytes)) => self.take_in(&mut lines, &bytes, dispatcher),
                Ok(Message::Close(close)) => {
                    closing = true;
                    ended = closed(close);
                    Ok(())
                }
                Ok(_) => Ok(()),
                Err(error) => {
                    if !closing {
                        tracing::debug!(error = error_name(&error), "the connection broke");
                    }
                    return ended;
                }
            };
            if let Err(Flooded) = taken_in {
                tracing::warn!("the connector does not wait for acknowledgements; starting over");
                return Ended::Flooded;
            }
        }
    }

    fn take_in<A: Agent>(
        &self,
        lines: &mut LineBuffer,
        message: &[u8],
        to: &mut Dispatcher<A>,
    ) -> Result<(), Flooded> {
        for line in lines.push(message) {
            match line {
                Ok(line) => match ConnectorFrame::parse(&line) {
                    Ok(frame) => self.frame(frame, to)?,
                    Err(error) => self.malformed(&line, &error)?,
                },
                Err(_) => {
                    count(&self.shared.counters.malformed);
                    tracing::warn!("a line from the connector is too long");
                }
            }
        }
        Ok(())
    }

    fn frame<A: Agent>(&self, frame: ConnectorFrame, dispatcher: &mut Dispatcher<A>) -> Result<(), Flooded> {
        match frame {
            ConnectorFrame::Descriptor { descriptor } => {
                let first = !self.greeted.swap(true, Ordering::AcqRel);
                tracing::debug!(platform = descriptor.platform, first, "descriptor");
                self.shared.announce(descriptor, first);
                if first {
                    count(&self.shared.counters.handshakes);
                    self.shared.link.send_replace(Link::Up(self.wire.clone()));
                }
            }
            ConnectorFrame::Inbound(mut inbound) => {
                let ack = self.arrived(inbound.buffer_id.take())?;
                dispatcher.inbound(inbound, ack)?;
            }
            ConnectorFrame::OutboundResult { request_id, result } => {
                self.shared.calls.answer(&request_id, result);
            }
            ConnectorFrame::InterruptInbound { session_key, chat_id } => {
                dispatcher.interrupt(session_key, chat_id)
            }
            ConnectorFrame::PassthroughForward { mut forward, buffer_id, platform, bot_id } => {
                if forward.platform.is_empty() {
                    forward.platform = platform.unwrap_or_default();
                }
                if forward.bot_id.is_empty() {
                    forward.bot_id = bot_id.unwrap_or_default();
                }
                dispatcher.forward(forward, self.arrived(buffer_id)?)?;
            }
            ConnectorFrame::GoingIdleAck => self.idle_ack.notify_one(),
            ConnectorFrame::Unknown { kind } => tracing::debug!(kind, "unknown frame"),
        }
        Ok(())
    }

    /// Takes a place in line for the acknowledgement of a frame, if it wants one.
    fn arrived(&self, buffer_id: Option<String>) -> Result<Option<Ack>, Flooded> {
        buffer_id.filter(|id| !id.is_empty()).map(|id| self.acks.arrive(id)).transpose()
    }

    /// Notes a line that is no frame, without showing what it says.
    fn malformed(&self, line: &[u8], error: &FrameError) -> Result<(), Flooded> {
        count(&self.shared.counters.malformed);
        let kind = match error {
            FrameError::Malformed { kind, .. } => kind,
            FrameError::Descriptor(_) => "descriptor",
            _ => "?",
        };
        tracing::warn!(kind, bytes = line.len(), "a line from the connector cannot be read");
        // It will not become readable by being delivered again and again.
        if matches!(kind, "inbound" | "passthrough_forward")
            && let Ok(frame) = serde_json::from_slice::<serde_json::Value>(line)
            && let Some(ack) = self.arrived(frame["bufferId"].as_str().map(str::to_owned))?
        {
            ack.release();
        }
        Ok(())
    }

    async fn write(
        &self,
        mut sink: SplitSink<Socket, Message>,
        mut queue: mpsc::Receiver<Outgoing>,
    ) -> Ended {
        let broken = Ended::Closed { code: None, reason: String::new() };
        for hello in &self.shared.settings.hellos {
            let line = GatewayFrame::Hello(hello.clone()).to_line();
            if sink.send(Message::text(line)).await.is_err() {
                return self.reader_decides(broken).await;
            }
        }
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let written = tokio::select! {
                biased;
                _ = pings.tick() => sink.send(Message::Ping(Bytes::new())).await,
                ids = self.acks.next() => acknowledge(&mut sink, ids).await,
                next = queue.recv() => match next {
                    Some(Outgoing::Line { line, written }) => {
                        if let Some(written) = written {
                            written.store(true, Ordering::Release);
                        }
                        // Flushing once per burst saves system calls.
                        if queue.is_empty() { sink.send(Message::Text(line)).await } else { sink.feed(Message::Text(line)).await }
                    }
                    Some(Outgoing::Close) | None => {
                        let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                        let _ = timeout(CLOSE_TIMEOUT, sink.send(Message::Close(Some(close)))).await;
                        return Ended::Quiet;
                    }
                },
            };
            if written.is_err() {
                return self.reader_decides(broken).await;
            }
        }
    }

    /// Gives the reader time to find the close that made writing fail: only
    /// there stands why.
    async fn reader_decides(&self, otherwise: Ended) -> Ended {
        sleep(CLOSE_TIMEOUT).await;
        otherwise
    }

    async fn watch_over(&self) -> Ended {
        sleep(HANDSHAKE_TIMEOUT).await;
        if !self.greeted.load(Ordering::Acquire) {
            return Ended::NotGreeted;
        }
        loop {
            let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
            let silence = self.opened.elapsed().saturating_sub(heard);
            match SILENCE.checked_sub(silence) {
                Some(left) if !left.is_zero() => sleep(left).await,
                _ => return Ended::Silent,
            }
        }
    }

    /// Waits for the owner to want quiet, then brings it about.
    async fn obey(&self, mut want: watch::Receiver<Want>, turns: impl Turns) -> Ended {
        let _ = want.wait_for(|want| *want != Want::Run).await;
        turns.drain(true);
        let line = Outgoing::line(GatewayFrame::GoingIdle.to_line());
        let announced = self.wire.send(line).await.is_ok();
        let acked = timeout(IDLE_ACK_TIMEOUT, self.idle_ack.notified()).await.is_ok();
        self.idle_acked.store(announced && acked, Ordering::Release);
        turns.ended(self.shared.settings.grace).await;
        let _ = self.wire.send(Outgoing::Close).await;
        // The writer ends the session, after all that was queued before.
        std::future::pending().await
    }

    fn mark_heard(&self) {
        let now = self.opened.elapsed().as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }
}

async fn acknowledge(sink: &mut SplitSink<Socket, Message>, ids: Vec<String>) -> Result<(), WsError> {
    for buffer_id in ids {
        let line = GatewayFrame::InboundAck { buffer_id }.to_line();
        sink.feed(Message::text(line)).await?;
    }
    sink.flush().await
}

fn closed(close: Option<CloseFrame>) -> Ended {
    match close {
        Some(close) => Ended::Closed { code: Some(close.code.into()), reason: close.reason.to_string() },
        None => Ended::Closed { code: None, reason: String::new() },
    }
}

/// The kind of an error; its full text could quote what was received.
fn error_name(error: &WsError) -> &'static str {
    match error {
        WsError::Io(_) => "io",
        WsError::Tls(_) => "tls",
        WsError::Capacity(_) => "message too large",
        WsError::Protocol(_) => "protocol",
        WsError::Utf8(_) => "utf-8",
        _ => "closed",
    }
}
