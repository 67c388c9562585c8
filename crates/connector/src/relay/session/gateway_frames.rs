//! Frames from a gateway: `hello`, `outbound`, `inbound_ack`, `interrupt`, `going_idle`, each
//! taken to what acts on it.

use super::super::handshake::descriptor_for;
use super::super::mailbox::Ending;
use super::super::pending::result_line;
use super::super::websocket::{Broken, FrameReader, Piece};
use super::{Done, Phase, SETTLING_IN, Session, turns};
use crate::telemetry::Counter;
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::frame::{FrameError, GatewayFrame, Glimpse, Hello, Outbound, glimpse};
use angelia_contract::line::{LineError, MAX_GATEWAY_LINE};
use angelia_core::clock::{self, Mono};
use angelia_core::egress::Target;
use angelia_core::fail;
use angelia_core::inbox::Seq;
use angelia_core::prompts;
use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// What an action holds besides its texts, which are there twice while they are written down.
const ACTION_OVERHEAD: usize = 1_024;
/// How long a new socket waits for the one it replaces, commits included.
const WAIT_FOR_OLD: Duration = Duration::from_secs(5);
/// Frames of one message that are handled before others get a turn.
const FRAMES_PER_TURN: usize = 32;

angelia_contract::limits! {
    /// Earlier sockets left at most a window each, and whoever invents numbers must not keep
    /// the store busy. Further ones are ignored, and what they are of is pushed again.
    pub(super) const MAX_LATE_ACKS: usize = 64, count "late acknowledgements of a gateway looked at in one go";
}

/// Interrupts of one gateway being resolved at the same time.
const MAX_INTERRUPTS: usize = 8;
/// Each keeps its place a little longer than it takes: looking up costs the store.
const INTERRUPT_PAUSE: Duration = Duration::from_millis(50);

/// What arrived and was not taken yet: at most what was read at once.
#[derive(Default)]
pub(super) struct Unheard {
    frames: FrameReader,
    /// As it came.
    arrived: BytesMut,
    /// Payload of the frame at hand.
    payload: Bytes,
}

impl Unheard {
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.payload.is_empty()
    }

    fn held(&self) -> usize {
        self.arrived.len() + self.payload.len()
    }

    /// The next stretch of payload, up to and with its newline, or what else is in between.
    fn next(&mut self) -> Result<Option<Piece>, Broken> {
        if self.payload.is_empty() {
            match self.frames.next(&mut self.arrived)? {
                Some(Piece::Data(payload)) => self.payload = payload,
                other => return Ok(other),
            }
        }
        let newline = self.payload.iter().position(|byte| *byte == b'\n');
        let length = newline.map_or(self.payload.len(), |newline| newline + 1);
        Ok(Some(Piece::Data(self.payload.split_to(length))))
    }
}

impl Session {
    /// Takes what arrived.
    pub(super) fn heard(&mut self, arrived: BytesMut) {
        let now = clock::mono();
        self.heard_at = now;
        self.spoke_after_close |= self.ending.is_some();
        self.rate.took(arrived.len(), now);
        self.unheard.arrived = arrived;
        self.hear_more(now);
    }

    /// Whether the peer may ask for more, as far as its share of bytes goes: not while
    /// too much waits for an answer, or to be read by it.
    pub(super) fn may_hear(&self) -> bool {
        !self.pending.is_full() && !self.outgoing.is_backed_up()
    }

    /// Takes some lines of what arrived. It can hold a thousand of them: other
    /// sockets get their turn in between.
    pub(super) fn hear_more(&mut self, now: Mono) {
        for _ in 0..FRAMES_PER_TURN {
            if self.pending.is_full() || self.outgoing.is_backed_up() {
                break;
            }
            match self.unheard.next() {
                Ok(Some(Piece::Data(stretch))) => self.stretch(&stretch, now),
                Ok(Some(Piece::Ping(payload))) => self.outgoing.pong(payload),
                Ok(Some(Piece::Pong(payload))) => {
                    if let Ok(number) = <[u8; 8]>::try_from(payload.as_ref()) {
                        self.window.pong(u64::from_be_bytes(number), now);
                    }
                }
                Ok(Some(Piece::Close)) => {
                    self.peer_closed = true;
                    self.phase = Phase::Over;
                    return;
                }
                Ok(None) => break,
                // It does not speak the protocol: nothing more can be understood.
                Err(Broken) => {
                    self.phase = Phase::Over;
                    return;
                }
            }
        }
        self.note_unfinished(now);
        if !self.count_held() {
            self.give_up_line();
        }
    }

    fn stretch(&mut self, stretch: &[u8], now: Mono) {
        for line in self.lines.push(stretch) {
            // The next one has its own time.
            self.line_began = None;
            match line {
                Ok(line) => self.line(&line, now),
                Err(LineError::TooLong { begins, .. }) => {
                    self.relay.metrics.count(Counter::LinesTooLong);
                    self.refuse_line(&begins, now);
                }
                Err(_) => self.relay.metrics.count(Counter::LinesTooLong),
            }
        }
    }

    /// A line that hangs keeps memory: it has so long to end.
    fn note_unfinished(&mut self, now: Mono) {
        let unfinished = self.lines.is_unfinished() || self.unheard.frames.is_unfinished();
        self.line_began = if unfinished { self.line_began.or(Some(now)) } else { None };
    }

    /// Counts what this socket makes the server hold; `false` if that is too much.
    pub(super) fn count_held(&mut self) -> bool {
        let own = self.lines.held() + self.unheard.held() + self.outgoing.waiting();
        let read = self.backlog.held() + self.backlog.reserved() + self.reserved_for_conversations();
        self.held.resize(own + read)
    }

    /// Frees what the unfinished line holds: there is no memory left for it.
    fn give_up_line(&mut self) {
        self.relay.metrics.count(Counter::LinesOverBudget);
        self.relay.warn_of_memory(&self.record);
        if let Some(begins) = self.lines.give_up() {
            self.refuse_line(&begins, clock::mono());
        }
        self.count_held();
    }

    /// Tells whoever waits for an answer to a line that cannot be taken. A hello
    /// is answered as far as it goes: silence would hang the gateway.
    fn refuse_line(&mut self, begins: &[u8], now: Mono) {
        let greeting = !self.handshake.begun();
        let Glimpse { kind, request_id, platform, bot_id } = glimpse(begins).unwrap_or_default();
        match (kind.as_str(), request_id) {
            // Before a hello nothing else is due: what cannot be made out is taken for one.
            ("hello", _) | ("", _) if greeting || kind == "hello" => {
                let platform = platform.unwrap_or_else(|| "relay".to_owned());
                let (bot_id, command_manifest) = (bot_id.unwrap_or_default(), Some(Vec::new()));
                self.hello(&Hello { platform, bot_id, command_manifest }, now);
            }
            ("outbound", Some(id)) if self.handshake.begun() => {
                let why =
                    format!("the frame is larger than {MAX_GATEWAY_LINE} bytes, or too much waits already");
                self.outgoing.line(&result_line(id, ActionResult::failed(why)));
            }
            _ => {}
        }
    }

    fn line(&mut self, line: &[u8], now: Mono) {
        match GatewayFrame::parse_counting(line) {
            Ok((frame, unknown_keys)) => {
                self.relay.metrics.add(Counter::KeysUnknown, unknown_keys as u64);
                self.frame(frame, now);
            }
            Err(FrameError::TooLarge { .. }) => self.relay.metrics.count(Counter::FramesTooLarge),
            Err(_) => self.relay.metrics.count(Counter::FramesMalformed),
        }
    }

    fn frame(&mut self, frame: GatewayFrame, now: Mono) {
        match frame {
            GatewayFrame::Hello(hello) => self.hello(&hello, now),
            GatewayFrame::Unknown { .. } => self.relay.metrics.count(Counter::FramesUnknown),
            // Nothing a stranger to the handshake asks for is done.
            _ if !self.handshake.begun() => self.relay.metrics.count(Counter::FramesTooEarly),
            GatewayFrame::InboundAck { buffer_id } => self.acknowledged(&buffer_id, now),
            GatewayFrame::Outbound(outbound) => self.asked(outbound, now),
            GatewayFrame::Interrupt(interrupt) => self.interrupt(interrupt.session_key),
            GatewayFrame::GoingIdle => self.goes_idle(now),
        }
    }

    fn hello(&mut self, hello: &Hello, now: Mono) {
        self.lines.set_max(MAX_GATEWAY_LINE);
        // Only gateways since 0.19.1 send a manifest; those act on interrupts, read forwards and replies.
        self.profile.interrupts |= hello.command_manifest.is_some();
        self.profile.reads_replies |= hello.command_manifest.is_some();
        self.profile.fetches |= hello.command_manifest.is_some() && !self.profile.wants_links;
        self.profile.loses_forwards &= hello.command_manifest.is_none();
        self.turns.met(turns::peer(self.profile, hello.command_manifest.is_some()));
        self.handshake.fronts(hello);
        let dropped = self.handshake.commands(hello);
        self.relay.metrics.add(Counter::CommandsDropped, dropped as u64);
        let (ours, known) = (self.relay.descriptors(), self.relay.identities.now());
        let routed = known.routes().platforms(&self.record.tenant, self.record.instance);
        if let Some(line) = self.handshake.hello(descriptor_for(hello, &ours, &routed), now) {
            self.outgoing.line(&line);
            self.greeted(now);
        }
    }

    /// The first hello makes this the instance's socket; one after going idle wakes it.
    fn greeted(&mut self, now: Mono) {
        match self.phase {
            Phase::Greeting => {
                let (claim, old) = self.relay.sessions.claim(self.record.clone(), self.mailbox.clone());
                self.claim = Some(claim);
                self.phase = Phase::Joining;
                self.settled_in_at = self.profile.parks.then(|| now + SETTLING_IN);
                self.look_again();
                if let Some(mut old) = old {
                    self.relay.metrics.count(Counter::Takeovers);
                    self.waits_for_old = true;
                    self.jobs.push(Box::pin(async move {
                        let _ = tokio::time::timeout(WAIT_FOR_OLD, old.changed()).await;
                        Done::OldEnded
                    }));
                }
                // The claim makes that durable.
                self.relay.sessions.update(self.record.instance, |standing| standing.idle = false);
            }
            Phase::Idle | Phase::GoingIdle(_) => {
                self.phase = Phase::Joining;
                self.flipped = false;
                self.backlog.renew();
                self.mark_awake();
            }
            _ => {}
        }
    }

    /// The record may have changed between the upgrade and this hello.
    fn look_again(&self) {
        let record = self.relay.identities.now().find(&self.record.tenant, &self.record.gateway_id);
        match record {
            Some(record) if record.revoked_at.is_some() => self.mailbox.end(Ending::Revoked),
            Some(record) if record.instance == self.record.instance && record.shares_secret(&self.record) => {
            }
            // Gone, moved or its secret void: the next dial finds out, and is told in the right words.
            _ => self.mailbox.end(Ending::Shutdown),
        }
    }

    fn asked(&mut self, mut outbound: Outbound, now: Mono) {
        self.relay.metrics.count(Counter::Outbound);
        if !self.serves() {
            let result = ActionResult::network("the connector is closing this connection; try again");
            self.outgoing.line(&result_line(outbound.request_id, result));
            return;
        }
        let size = 2 * outbound.action.size() + ACTION_OVERHEAD;
        let Some(held) = self.relay.memory.instance(&self.record.tenant, self.record.instance).hold(size)
        else {
            self.relay.metrics.count(Counter::OutboundOverBudget);
            self.relay.warn_of_memory(&self.record);
            let result =
                ActionResult::network("too much of this agent waits to be sent; nothing was sent, try again");
            self.outgoing.line(&result_line(outbound.request_id, result));
            return;
        };
        let final_in = final_in(&outbound.action);
        let ticket = self.pending.open(outbound.request_id.clone(), final_in, now);
        self.turns.acts(&outbound.action, outbound.platform.as_deref(), ticket, now);
        if matches!(outbound.action, Action::Prompt { .. })
            && let Some(target) = Target::of(&outbound.action)
        {
            let people = self.turns.people_in(&target.chat_id, target.thread_id.as_deref());
            prompts::note_asked_of(&mut outbound.action, &people);
        }
        self.relay.egress.submit(&self.record, &self.mailbox, ticket, outbound, held);
    }

    fn acknowledged(&mut self, buffer_id: &str, now: Mono) {
        let Some(seq) = Seq::from_buffer_id(buffer_id) else {
            self.relay.metrics.count(Counter::AcksUnknown);
            return;
        };
        let habit = self.window.habit();
        let settled = self.window.ack(seq);
        if settled.is_empty() {
            self.relay.metrics.count(Counter::AcksUnknown);
            self.acknowledged_late(seq);
        }
        fail::point("after_ack");
        self.settle(settled, now);
        self.note_habit(habit);
    }

    /// An entry pushed on an earlier socket is settled by a late acknowledgement
    /// too, once the store has said that it was.
    fn acknowledged_late(&mut self, seq: Seq) {
        if self.late.len() < MAX_LATE_ACKS && !self.late.contains(&seq) {
            self.late.push(seq);
        }
    }

    fn interrupt(&mut self, session_key: String) {
        if self.interrupting >= MAX_INTERRUPTS {
            self.relay.metrics.count(Counter::InterruptsUnresolved);
            return;
        }
        self.interrupting += 1;
        let (relay, tenant) = (self.relay.clone(), self.record.tenant.clone());
        self.jobs.push(Box::pin(async move {
            relay.interrupt(&tenant, &session_key).await;
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
