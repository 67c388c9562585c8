//! What a gateway says, frame by frame.

use super::super::handshake::descriptor_for;
use super::super::pending::result_line;
use super::{Done, Phase, Session};
use crate::telemetry::Counter;
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::GatewayFrame;
use angelia_core::clock::{self, Mono};
use angelia_core::fail;
use angelia_core::inbox::Seq;
use angelia_core::store::Settlement;
use axum::extract::ws::Message;
use std::time::Duration;

/// How long going idle waits for acknowledgements in flight.
const IDLE_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long a new socket waits for the one it replaces, commits included.
const WAIT_FOR_OLD: Duration = Duration::from_secs(5);
/// Frames of one message that are handled before others get a turn.
const FRAMES_PER_TURN: usize = 32;
/// Late acknowledgements in one commit.
const MAX_LATE_ACKS: usize = 64;
/// Interrupts of one gateway being resolved at the same time.
const MAX_INTERRUPTS: usize = 8;
/// Each keeps its place a little longer than it takes: looking up costs the store.
const INTERRUPT_PAUSE: Duration = Duration::from_millis(50);

impl Session {
    /// Takes one WebSocket message.
    pub(super) async fn heard(&mut self, message: Message) {
        let now = clock::mono();
        self.heard_at = now;
        self.spoke_after_close |= self.ending.is_some();
        match message {
            Message::Text(text) => self.take_bytes(text.as_bytes(), now).await,
            Message::Binary(bytes) => self.take_bytes(&bytes, now).await,
            Message::Pong(payload) => {
                if let Ok(number) = <[u8; 8]>::try_from(payload.as_ref()) {
                    self.window.pong(u64::from_be_bytes(number), now);
                }
            }
            Message::Ping(_) => {}
            Message::Close(_) => {
                self.peer_closed = true;
                self.phase = Phase::Over;
            }
        }
    }

    /// Takes the lines of one message. A message can hold a hundred thousand
    /// of them: other sockets get their turn in between.
    async fn take_bytes(&mut self, bytes: &[u8], now: Mono) {
        for (index, line) in self.lines.push(bytes).enumerate() {
            match line {
                Ok(line) => match GatewayFrame::parse(&line) {
                    Ok(frame) => self.frame(frame, now),
                    Err(_) => self.server.metrics.count(Counter::FramesMalformed),
                },
                Err(_) => self.server.metrics.count(Counter::LinesTooLong),
            }
            if index % FRAMES_PER_TURN == FRAMES_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn frame(&mut self, frame: GatewayFrame, now: Mono) {
        match frame {
            GatewayFrame::Hello(hello) => {
                // Only gateways since 0.19.1 send a manifest, and those act on interrupts.
                self.profile.interrupts |= hello.command_manifest.is_some();
                let ours = self.server.descriptors();
                if let Some(line) = self.handshake.hello(descriptor_for(&hello, &ours), now) {
                    self.outgoing.line(&line);
                }
                self.greeted();
            }
            // Nothing a stranger to the handshake asks for is done.
            _ if !self.handshake.begun() => self.server.metrics.count(Counter::FramesUnknown),
            GatewayFrame::InboundAck { buffer_id } => self.acknowledged(&buffer_id, now),
            GatewayFrame::Outbound(outbound) => {
                self.server.metrics.count(Counter::Outbound);
                let request_id = outbound.request_id.clone();
                if self.ending.is_some() {
                    let result = ActionResult::network("the connector is closing this connection; try again");
                    self.outgoing.line(&result_line(request_id, result));
                    return;
                }
                let ticket = self.pending.open(request_id, final_in(&outbound.action), now);
                crate::egress::submit(&self.server, &self.record, &self.mailbox, ticket, outbound);
            }
            GatewayFrame::Interrupt(interrupt) => self.interrupt(interrupt.session_key),
            GatewayFrame::GoingIdle => {
                if matches!(self.phase, Phase::Draining | Phase::Joining) {
                    self.phase = Phase::GoingIdle(now + IDLE_PATIENCE);
                }
            }
            GatewayFrame::Unknown { .. } => self.server.metrics.count(Counter::FramesUnknown),
        }
    }

    /// The first hello makes this the instance's socket; one after going idle wakes it.
    pub(super) fn greeted(&mut self) {
        match self.phase {
            Phase::Greeting => {
                let (ended, old) = self.server.registry.claim(self.record.instance, self.mailbox.clone());
                self.ended = Some(ended);
                self.phase = Phase::Joining;
                if let Some(old) = old {
                    self.server.metrics.count(Counter::Takeovers);
                    self.waits_for_old = true;
                    self.jobs.push(Box::pin(async move {
                        let _ = tokio::time::timeout(WAIT_FOR_OLD, old.wait()).await;
                        Done::OldEnded
                    }));
                }
                self.unflip();
            }
            Phase::Idle | Phase::GoingIdle(_) => {
                self.phase = Phase::Joining;
                self.unflip();
            }
            _ => {}
        }
    }

    fn acknowledged(&mut self, buffer_id: &str, now: Mono) {
        let Some(seq) = Seq::from_buffer_id(buffer_id) else {
            self.server.metrics.count(Counter::AcksUnknown);
            return;
        };
        let habit = self.window.habit();
        let settled = self.window.ack(seq);
        if settled.is_empty() {
            self.server.metrics.count(Counter::AcksUnknown);
            self.acknowledged_late(seq);
        }
        fail::point("after_ack");
        self.settle(settled, now);
        self.note_habit(habit);
    }

    /// An entry pushed on an earlier socket is settled by a late
    /// acknowledgement too. Only so many at a time: earlier sockets left at
    /// most a window each, and whoever invents ids must not keep the store busy.
    fn acknowledged_late(&mut self, seq: Seq) {
        let mut late = self.to_settle.iter().filter(|settlement| settlement.by.is_none());
        if late.clone().count() < MAX_LATE_ACKS && !late.any(|settlement| settlement.seq == seq) {
            self.backlog.remove(seq);
            self.to_settle.push(Settlement { seq, by: None, pushed_at: None });
        }
    }

    fn interrupt(&mut self, session_key: String) {
        if self.interrupting >= MAX_INTERRUPTS {
            self.server.metrics.count(Counter::InterruptsUnresolved);
            return;
        }
        self.interrupting += 1;
        let (server, tenant) = (self.server.clone(), self.record.tenant.clone());
        self.jobs.push(Box::pin(async move {
            crate::interrupt::route(&server, &tenant, &session_key).await;
            tokio::time::sleep(INTERRUPT_PAUSE).await;
            Done::Interrupted
        }));
    }
}

/// The chat an action ends a turn in: answers to people carry `notify`.
fn final_in(action: &Action) -> Option<String> {
    match action {
        Action::Send { chat_id, metadata, .. } if metadata.get("notify").is_some_and(|n| n == true) => {
            Some(chat_id.clone())
        }
        _ => None,
    }
}
