//! What a gateway says, frame by frame.

use super::super::handshake::descriptor_for;
use super::super::mailbox::Ending;
use super::super::pending::result_line;
use super::{Done, Phase, SETTLING_IN, Session};
use crate::telemetry::Counter;
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello, Outbound};
use angelia_core::clock::{self, Mono};
use angelia_core::fail;
use angelia_core::inbox::Seq;
use angelia_core::store::Settlement;
use axum::extract::ws::Message;
use bytes::Bytes;
use std::time::Duration;

/// How long going idle waits for acknowledgements in flight.
const IDLE_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long a new socket waits for the one it replaces, commits included.
const WAIT_FOR_OLD: Duration = Duration::from_secs(5);
/// Frames of one message that are handled before others get a turn.
const FRAMES_PER_TURN: usize = 32;
/// How often a gateway may go idle on one socket; each costs a commit.
const MAX_FLIPS: u32 = 32;
/// Late acknowledgements in one commit.
const MAX_LATE_ACKS: usize = 64;
/// Interrupts of one gateway being resolved at the same time.
const MAX_INTERRUPTS: usize = 8;
/// Each keeps its place a little longer than it takes: looking up costs the store.
const INTERRUPT_PAUSE: Duration = Duration::from_millis(50);

/// A message whose lines are not all taken yet.
#[derive(Debug)]
pub(super) struct Unheard {
    bytes: Bytes,
    at: usize,
}

impl Unheard {
    /// The next stretch, up to and with its newline.
    fn next(&mut self) -> Option<Bytes> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |newline| newline + 1);
        let stretch = self.bytes.slice(self.at..self.at + length);
        self.at += length;
        Some(stretch)
    }
}

impl Session {
    /// Takes one WebSocket message.
    pub(super) fn heard(&mut self, message: Message) {
        let now = clock::mono();
        self.heard_at = now;
        self.spoke_after_close |= self.ending.is_some();
        match message {
            Message::Text(_) | Message::Binary(_) => {
                self.unheard = Some(Unheard { bytes: message.into_data(), at: 0 });
                self.hear_more(now);
            }
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

    /// Whether the peer may ask for more: not while too much waits for an
    /// answer, or to be read by it.
    pub(super) fn may_hear(&self) -> bool {
        !self.pending.is_full() && !self.outgoing.is_backed_up()
    }

    /// Takes some lines of the message at hand. It can hold a hundred thousand
    /// of them: other sockets get their turn in between.
    pub(super) fn hear_more(&mut self, now: Mono) {
        let Some(mut unheard) = self.unheard.take() else { return };
        for _ in 0..FRAMES_PER_TURN {
            if !self.may_hear() {
                break;
            }
            let Some(stretch) = unheard.next() else { return };
            for line in self.lines.push(&stretch) {
                match line {
                    Ok(line) => self.line(&line, now),
                    Err(_) => self.server.metrics.count(Counter::LinesTooLong),
                }
            }
        }
        self.unheard = Some(unheard);
    }

    fn line(&mut self, line: &[u8], now: Mono) {
        match GatewayFrame::parse_counting(line) {
            Ok((frame, unknown_keys)) => {
                self.server.metrics.add(Counter::KeysUnknown, unknown_keys as u64);
                self.frame(frame, now);
            }
            Err(_) => self.server.metrics.count(Counter::FramesMalformed),
        }
    }

    fn frame(&mut self, frame: GatewayFrame, now: Mono) {
        match frame {
            GatewayFrame::Hello(hello) => self.hello(&hello, now),
            GatewayFrame::Unknown { .. } => self.server.metrics.count(Counter::FramesUnknown),
            // Nothing a stranger to the handshake asks for is done.
            _ if !self.handshake.begun() => self.server.metrics.count(Counter::FramesTooEarly),
            GatewayFrame::InboundAck { buffer_id } => self.acknowledged(&buffer_id, now),
            GatewayFrame::Outbound(outbound) => self.asked(outbound, now),
            GatewayFrame::Interrupt(interrupt) => self.interrupt(interrupt.session_key),
            GatewayFrame::GoingIdle => self.goes_idle(now),
        }
    }

    fn hello(&mut self, hello: &Hello, now: Mono) {
        // Only gateways since 0.19.1 send a manifest; those act on interrupts and read forwards.
        self.profile.interrupts |= hello.command_manifest.is_some();
        self.profile.loses_forwards &= hello.command_manifest.is_none();
        self.handshake.fronts(hello);
        let ours = self.server.descriptors();
        if let Some(line) = self.handshake.hello(descriptor_for(hello, &ours), now) {
            self.outgoing.line(&line);
            self.greeted(now);
        }
    }

    /// The first hello makes this the instance's socket; one after going idle wakes it.
    fn greeted(&mut self, now: Mono) {
        match self.phase {
            Phase::Greeting => {
                let (claim, old) = self.server.registry.claim(self.record.clone(), self.mailbox.clone());
                self.claim = Some(claim);
                self.phase = Phase::Joining;
                self.settled_in_at = self.profile.parks.then(|| now + SETTLING_IN);
                self.look_again();
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
                self.flipped = false;
                self.backlog.renew();
                self.unflip();
            }
            _ => {}
        }
    }

    /// The record may have changed between the upgrade and this hello.
    fn look_again(&self) {
        let record = self.server.roster.find(&self.record.tenant, &self.record.gateway_id);
        match record {
            Some(record) if record.revoked_at.is_some() => self.mailbox.end(Ending::Revoked),
            Some(record) if record.instance == self.record.instance => {}
            // Gone or moved: the next dial finds out, and is told in the right words.
            _ => self.mailbox.end(Ending::Shutdown),
        }
    }

    fn asked(&mut self, outbound: Outbound, now: Mono) {
        self.server.metrics.count(Counter::Outbound);
        if self.ending.is_some() {
            let result = ActionResult::network("the connector is closing this connection; try again");
            self.outgoing.line(&result_line(outbound.request_id, result));
            return;
        }
        let final_in = final_in(&outbound.action);
        let ticket = self.pending.open(outbound.request_id.clone(), final_in, now);
        crate::egress::submit(&self.server, &self.record, &self.mailbox, ticket, outbound);
    }

    fn goes_idle(&mut self, now: Mono) {
        match self.phase {
            Phase::Draining | Phase::Joining if self.flips < MAX_FLIPS => {
                self.flips += 1;
                self.handshake.renew();
                self.phase = Phase::GoingIdle(now + IDLE_PATIENCE);
            }
            Phase::Idle if self.flipped => self.outgoing.line(&ConnectorFrame::GoingIdleAck.to_line()),
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
            self.remember_not_again(seq);
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
