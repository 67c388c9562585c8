//! One live socket of one gateway: a single task with one loop.
//!
//! Every turn of the loop takes what arrived, lets time pass, writes what may
//! be written, and then waits for whichever comes first. Nothing in it waits
//! for a disk or a provider: such work runs beside it and comes back as [`Done`].

use super::backlog::{Backlog, PAGE};
use super::handshake::{Handshake, descriptor_for};
use super::mailbox::{Ending, Mailbox};
use super::outgoing::Outgoing;
use super::pending::{Pending, result_line};
use super::registry::{Ended, Standing};
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_contract::action::ActionResult;
use angelia_contract::close;
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, inbound_line, passthrough_line};
use angelia_contract::line::{LineBuffer, MAX_GATEWAY_MESSAGE};
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::error::Result;
use angelia_core::fail;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::{Entry, EntryKind, FrameKind, Permit, Seq, Settled, Window};
use angelia_core::store::{Returned, Settlement};
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A socket that says no hello within this time is not a gateway.
const HELLO_WITHIN: Duration = Duration::from_secs(30);
/// How often an otherwise quiet socket is pinged.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Gateways may read nothing for 30–40 s and still be well.
const SILENCE: Duration = Duration::from_secs(90);
/// How long a replaced socket's acknowledgements still count.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a new socket waits for the one it replaces, commits included.
const WAIT_FOR_OLD: Duration = Duration::from_secs(5);
/// How long going idle waits for acknowledgements in flight.
const IDLE_PATIENCE: Duration = Duration::from_millis(1_500);
/// After a failed read or commit of the store.
const RETRY: Duration = Duration::from_secs(1);
/// Interrupts of one gateway being resolved at the same time.
const MAX_INTERRUPTS: usize = 8;

/// What the peer is known to be able to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerProfile {
    /// It acts on `interrupt_inbound`.
    pub(super) interrupts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No hello yet.
    Greeting,
    /// Said hello; not yet quiet, or the replaced socket not yet gone.
    Joining,
    /// Entries are pushed as the window permits.
    Draining,
    /// Said it goes idle; acknowledgements in flight are awaited until then.
    GoingIdle(Mono),
    /// The flip is durable, or being made so.
    Idle,
    /// The close frame is written; last words are heard until then.
    Closing(Mono),
    /// Over.
    Over,
}

/// Work that ran beside the loop.
enum Done {
    OldEnded,
    Page(Result<Vec<Entry>>),
    Ahead(Result<Vec<Entry>>),
    Settled(Result<()>, Vec<Settlement>),
    Flipped(Result<()>),
    Interrupted,
    Noted,
}

type Job = Pin<Box<dyn Future<Output = Done> + Send>>;

pub(super) struct Session {
    server: Arc<Server>,
    record: Arc<GatewayRecord>,
    profile: PeerProfile,
    mailbox: Arc<Mailbox>,
    phase: Phase,
    ending: Option<Ending>,
    lines: LineBuffer,
    handshake: Handshake,
    window: Window,
    backlog: Backlog,
    pending: Pending,
    outgoing: Outgoing,
    jobs: FuturesUnordered<Job>,
    /// Settled, to be made durable with the next commit.
    to_settle: Vec<Settlement>,
    settling: bool,
    interrupting: usize,
    ended: Option<Arc<Ended>>,
    waits_for_old: bool,
    opened_at: Mono,
    heard_at: Mono,
    pinged_at: Mono,
    /// Whether the peer said anything after it was told to go.
    spoke_after_close: bool,
}

impl Session {
    pub(super) fn new(server: Arc<Server>, record: Arc<GatewayRecord>, profile: PeerProfile) -> Self {
        let now = clock::mono();
        let standing = server.registry.standing(record.instance);
        Self {
            server,
            record,
            profile,
            mailbox: Arc::default(),
            phase: Phase::Greeting,
            ending: None,
            lines: LineBuffer::new(MAX_GATEWAY_MESSAGE),
            handshake: Handshake::default(),
            window: Window::new(standing.habit),
            backlog: Backlog::default(),
            pending: Pending::default(),
            outgoing: Outgoing::default(),
            jobs: FuturesUnordered::new(),
            to_settle: Vec::new(),
            settling: false,
            interrupting: 0,
            ended: None,
            waits_for_old: false,
            opened_at: now,
            heard_at: now,
            pinged_at: now,
            spoke_after_close: false,
        }
    }

    /// Serves the socket until it ends.
    pub(super) async fn run(mut self, socket: WebSocket) {
        self.server.metrics.session(1);
        let mailbox = self.mailbox.clone();
        let (mut sink, mut stream) = socket.split();
        loop {
            let now = clock::mono();
            self.advance(now);
            if self.phase == Phase::Over {
                break;
            }
            let nap = self.next_deadline().since(now);
            let (outgoing, may_read) = (&mut self.outgoing, !self.pending.is_full());
            let writing = outgoing.is_pending();
            tokio::select! {
                biased;
                written = poll_fn(|cx| outgoing.poll_write(&mut sink, cx)), if writing => match written {
                    Ok(()) => fail::point("after_push"),
                    Err(_) => self.phase = Phase::Over,
                },
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.done(done),
                message = stream.next(), if may_read => match message {
                    Some(Ok(message)) => self.heard(message),
                    // An end, an error, or a message over the limit: nothing more comes.
                    Some(Err(_)) | None => self.phase = Phase::Over,
                },
                () = mailbox.arrival() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
        drop((sink, stream));
        self.finish().await;
    }

    /// Takes the mail, lets time pass, and writes what may be written.
    fn advance(&mut self, now: Mono) {
        self.take_mail();
        self.pass_time(now);
        if self.phase == Phase::Draining {
            self.drain(now);
        }
        self.commit_settled();
    }

    fn take_mail(&mut self) {
        let mut mail = self.mailbox.take();
        for answer in mail.answers.drain(..) {
            if self.pending.close(answer.ticket) {
                self.outgoing.line(&answer.line);
            }
        }
        for line in mail.interrupts.drain(..) {
            self.server.metrics.count(Counter::Interrupts);
            self.outgoing.line(&line);
        }
        self.backlog.take(&mut mail);
        if let Some(ending) = mail.ending
            && self.ending.is_none()
        {
            self.close(ending, clock::mono());
        }
    }

    fn pass_time(&mut self, now: Mono) {
        while let Some(line) = self.pending.expire(now) {
            self.server.metrics.count(Counter::OutboundTimedOut);
            self.outgoing.line(&line);
        }
        let habit = self.window.habit();
        let settled = self.window.tick(now);
        self.settle(settled, now);
        self.note_habit(habit);
        if let Some(repeat) = self.handshake.complete(now) {
            if let Some(line) = repeat {
                self.outgoing.line(&line);
            }
            self.join();
        }
        match self.phase {
            Phase::Greeting if now.since(self.opened_at) >= HELLO_WITHIN => self.phase = Phase::Over,
            Phase::GoingIdle(until) if self.is_quiet() || now >= until => self.flip(),
            Phase::Closing(until) if now >= until => self.phase = Phase::Over,
            _ => {}
        }
        if now.since(self.heard_at) >= SILENCE {
            self.phase = Phase::Over;
        } else if now.since(self.pinged_at) >= PING_EVERY && now.since(self.heard_at) >= PING_EVERY {
            self.ping(0, now);
        }
    }

    /// When [`Session::pass_time`] has to look again.
    fn next_deadline(&self) -> Mono {
        let silence = (self.heard_at.max(self.pinged_at) + PING_EVERY).min(self.heard_at + SILENCE);
        let phase = match self.phase {
            Phase::Greeting => Some(self.opened_at + HELLO_WITHIN),
            Phase::GoingIdle(until) | Phase::Closing(until) => Some(until),
            _ => None,
        };
        let others = [phase, self.handshake.due(), self.window.next_tick(), self.pending.next_deadline()];
        others.into_iter().flatten().fold(silence, Mono::min)
    }

    /// Starts the drain once the handshake is quiet and the old socket is gone.
    fn join(&mut self) {
        if self.phase == Phase::Joining && !self.waits_for_old {
            self.phase = Phase::Draining;
            if self.server.store.usage(self.record.instance).entries > 0 {
                self.load_ahead();
            } else {
                // Nothing waited when the mailbox was already open: all else comes by mail.
                self.backlog.wants_page();
                self.backlog.loaded(Some(Vec::new()));
            }
        }
    }

    /// Pushes entries while the window, the socket and the gateway allow it.
    fn drain(&mut self, now: Mono) {
        if let Some(after) = self.backlog.wants_page() {
            let (store, instance) = (self.server.store.clone(), self.record.instance);
            self.jobs.push(Box::pin(async move {
                Done::Page(or_later(store.load(instance, after, PAGE).await).await)
            }));
        }
        while self.outgoing.has_room() {
            let Some((ahead, kind, bytes)) = self.next_entry() else { break };
            // An interrupt is no message: it overtakes the window as well.
            let free = ahead && kind == FrameKind::Unacknowledged;
            if !free && self.window.permit(kind, bytes, now) == Permit::Wait {
                break;
            }
            let entry = if ahead { self.backlog.pop_ahead() } else { self.backlog.pop() };
            let Some(entry) = entry else { break };
            self.push(&entry, kind, now);
        }
        if let Some(number) = self.window.ping_due() {
            self.ping(number, now);
        }
    }

    fn next_entry(&self) -> Option<(bool, FrameKind, usize)> {
        let ahead = self.backlog.front_ahead().map(|entry| (true, entry));
        let (ahead, entry) = ahead.or_else(|| self.backlog.front().map(|entry| (false, entry)))?;
        let kind = match entry.kind {
            EntryKind::Passthrough => FrameKind::Unacknowledged,
            EntryKind::Stop if self.profile.interrupts => FrameKind::Unacknowledged,
            EntryKind::Message | EntryKind::Stop => FrameKind::Acknowledged,
        };
        Some((ahead, kind, entry.body.len()))
    }

    fn push(&mut self, entry: &Entry, kind: FrameKind, now: Mono) {
        let id = entry.seq.buffer_id();
        let line = match entry.kind {
            EntryKind::Stop if self.profile.interrupts => {
                self.server.metrics.count(Counter::Interrupts);
                let (session_key, chat_id) = (entry.session_key.to_string(), entry.chat_id.to_string());
                ConnectorFrame::InterruptInbound { session_key, chat_id }.to_line()
            }
            EntryKind::Passthrough => text(passthrough_line(&id, &entry.platform, &entry.bot, &entry.body)),
            EntryKind::Message | EntryKind::Stop => {
                text(inbound_line(&id, &entry.platform, &entry.bot, &entry.body))
            }
        };
        self.outgoing.line(&line);
        self.window.pushed(entry.seq, kind, entry.body.len(), now);
        self.server.metrics.count(Counter::Pushed);
    }

    /// Takes one WebSocket message.
    fn heard(&mut self, message: Message) {
        let now = clock::mono();
        self.heard_at = now;
        self.spoke_after_close |= self.ending.is_some();
        match message {
            Message::Text(text) => self.take_bytes(text.as_bytes(), now),
            Message::Binary(bytes) => self.take_bytes(&bytes, now),
            Message::Pong(payload) => {
                if let Ok(number) = <[u8; 8]>::try_from(payload.as_ref()) {
                    self.window.pong(u64::from_be_bytes(number), now);
                }
            }
            Message::Ping(_) => {}
            Message::Close(_) => self.phase = Phase::Over,
        }
    }

    fn take_bytes(&mut self, bytes: &[u8], now: Mono) {
        for line in self.lines.push(bytes).collect::<Vec<_>>() {
            match line {
                Ok(line) => match GatewayFrame::parse(&line) {
                    Ok(frame) => self.frame(frame, now),
                    Err(_) => self.server.metrics.count(Counter::FramesMalformed),
                },
                Err(_) => self.server.metrics.count(Counter::LinesTooLong),
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
                let ticket = self.pending.open(request_id, now);
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
    fn greeted(&mut self) {
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
            // Pushed on an earlier socket: a late acknowledgement still settles it.
            self.server.metrics.count(Counter::AcksUnknown);
            self.backlog.remove(seq);
            self.to_settle.push(Settlement { seq, by: None, pushed_at: None });
        }
        fail::point("after_ack");
        self.settle(settled, now);
        self.note_habit(habit);
    }

    fn settle(&mut self, settled: Vec<Settled>, now: Mono) {
        let wall = clock::wall();
        self.server.metrics.add(Counter::Settled, settled.len() as u64);
        self.to_settle.extend(settled.into_iter().map(|done| Settlement {
            seq: done.seq,
            by: Some(done.by),
            pushed_at: Some(wall_time(done.pushed_at, now, wall)),
        }));
    }

    /// One commit at a time: what settles meanwhile shares the next.
    fn commit_settled(&mut self) {
        if self.settling || self.to_settle.is_empty() {
            return;
        }
        self.settling = true;
        let settled = std::mem::take(&mut self.to_settle);
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs.push(Box::pin(async move {
            let outcome = or_later(store.settle(instance, settled.clone()).await).await;
            Done::Settled(outcome, settled)
        }));
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::OldEnded => {
                self.waits_for_old = false;
                if self.handshake.due().is_none() {
                    self.join();
                }
            }
            Done::Page(page) => self.backlog.loaded(page.ok()),
            Done::Ahead(Ok(entries)) => self.backlog.loaded_ahead(entries),
            Done::Ahead(Err(_)) => self.load_ahead(),
            Done::Settled(Ok(()), settled) => {
                self.settling = false;
                let here = settled.iter().filter(|settlement| settlement.by.is_some()).count();
                self.window.committed(here);
            }
            Done::Settled(Err(_), settled) => {
                self.settling = false;
                self.to_settle.splice(0..0, settled);
            }
            Done::Flipped(Ok(())) => self.outgoing.line(&ConnectorFrame::GoingIdleAck.to_line()),
            Done::Flipped(Err(_)) => self.phase = Phase::Draining,
            Done::Interrupted => self.interrupting -= 1,
            Done::Noted => {}
        }
    }

    fn load_ahead(&mut self) {
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs
            .push(Box::pin(async move { Done::Ahead(or_later(store.load_ahead(instance).await).await) }));
    }

    fn is_quiet(&self) -> bool {
        self.window.is_empty() && self.to_settle.is_empty() && !self.settling
    }

    /// Makes it durable that the gateway sleeps, then tells it so.
    fn flip(&mut self) {
        self.phase = Phase::Idle;
        self.set_standing(|standing| standing.idle = true);
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs.push(Box::pin(async move { Done::Flipped(store.set_idle(instance, true).await) }));
    }

    /// A handshake says it is awake.
    fn unflip(&mut self) {
        if !self.server.registry.standing(self.record.instance).idle {
            return;
        }
        self.set_standing(|standing| standing.idle = false);
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs.push(Box::pin(async move {
            let _ = store.set_idle(instance, false).await;
            Done::Noted
        }));
    }

    /// Remembers what this socket taught about the gateway's habit.
    fn note_habit(&mut self, before: angelia_core::inbox::AckHabit) {
        let habit = self.window.habit();
        if habit == before {
            return;
        }
        self.set_standing(|standing| standing.habit = habit);
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs.push(Box::pin(async move {
            let _ = store.set_habit(instance, habit).await;
            Done::Noted
        }));
    }

    fn set_standing(&self, change: impl FnOnce(&mut Standing)) {
        let mut standing = self.server.registry.standing(self.record.instance);
        change(&mut standing);
        self.server.registry.remember(self.record.instance, standing);
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
            Done::Interrupted
        }));
    }

    fn ping(&mut self, number: u64, now: Mono) {
        self.pinged_at = now;
        self.outgoing.message(Message::Ping(number.to_be_bytes().to_vec().into()));
    }

    /// Says goodbye; acknowledgements on their way are still heard.
    fn close(&mut self, ending: Ending, now: Mono) {
        self.ending = Some(ending);
        self.phase = Phase::Closing(now + LAST_WORDS);
        let reason = match ending {
            Ending::Replaced => "replaced by a newer connection",
            Ending::Shutdown => "the connector is restarting",
        };
        self.outgoing
            .message(Message::Close(Some(CloseFrame { code: close::GOING_AWAY, reason: reason.into() })));
    }

    /// Leaves nothing behind: what settled is committed, the rest returns to the inbox.
    async fn finish(mut self) {
        let (server, instance) = (self.server.clone(), self.record.instance);
        server.registry.release(instance, &self.mailbox);
        self.note_takeover();
        while self.settling {
            match self.jobs.next().await {
                Some(Done::Settled(Err(_), _)) | None => break,
                Some(done) => self.done(done),
            }
        }
        let settled = std::mem::take(&mut self.to_settle);
        if !settled.is_empty() {
            let _ = server.store.settle(instance, settled).await;
        }
        self.return_unsettled().await;
        if let Some(ended) = &self.ended {
            ended.tell();
            server.wake.disconnected(instance);
        }
        server.metrics.session(-1);
    }

    async fn return_unsettled(&mut self) {
        let habit = self.window.habit();
        let ended = std::mem::replace(&mut self.window, Window::new(habit)).end();
        if ended.returned.is_empty() {
            return;
        }
        let (now, wall) = (clock::mono(), clock::wall());
        let entries = ended.returned.iter().map(|(seq, at)| (*seq, wall_time(*at, now, wall))).collect();
        // A socket that we ended says nothing about the entry it ended on.
        let ours = self.ending == Some(Ending::Shutdown);
        let returned = Returned { entries, strike: ended.strike.filter(|_| !ours) };
        if let Ok(Some(seq)) = self.server.store.returned(self.record.instance, returned).await {
            self.server.metrics.count(Counter::DeadLetters);
            tracing::warn!(
                gateway = %self.record.gateway_id, entry = %seq.buffer_id(),
                "three sockets in a row ended on this entry: it is a dead letter now (angelia inbox list --dead)"
            );
        }
    }

    /// A replaced socket whose peer was alive and well was another process.
    /// One that ended on a frame it never acknowledged is the same process,
    /// whose reader died on that frame.
    fn note_takeover(&self) {
        let died_reading = !self.window.is_empty() && !self.window.acked_here();
        if self.ending != Some(Ending::Replaced) || !self.spoke_after_close || died_reading {
            return;
        }
        if self.server.registry.took_over(self.record.instance, clock::mono()) {
            tracing::warn!(
                tenant = %self.record.tenant, gateway = %self.record.gateway_id,
                "two processes are using this gateway id and keep replacing each other; \
                 stop one of them, or give it an id of its own (angelia gateway create)"
            );
        }
    }
}

/// Holds a failure back a little: the store may be full or locked, and asking at once helps nobody.
async fn or_later<T>(outcome: Result<T>) -> Result<T> {
    if outcome.is_err() {
        tokio::time::sleep(RETRY).await;
    }
    outcome
}

/// Serialized events are UTF-8; anything else would be a defect, not a reason to lose the socket.
fn text(line: Vec<u8>) -> String {
    String::from_utf8(line).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn wall_time(at: Mono, now: Mono, wall: UnixMillis) -> UnixMillis {
    wall.before(now.since(at))
}
