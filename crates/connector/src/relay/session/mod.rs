//! One live socket of one gateway: a single task with one loop. (A relay session, not the
//! conversation that the contract's `session_key` names.)
//!
//! Every turn of the loop takes what arrived, lets time pass, writes what may
//! be written, and then waits for whichever comes first. Nothing in it waits
//! for a disk or a provider: such work runs beside it and comes back as [`Done`].

mod albums;
mod closing;
mod deliver;
mod files;
mod gateway_frames;
mod held_lines;
mod idle;
mod own_commands;
mod readable;
mod turns;

pub(crate) use gateway_frames::LIMITS as ACK_LIMITS;

use super::Relay;
use super::handshake::Handshake;
use super::mailbox::{Ending, Interrupt, Mailbox};
use super::outgoing::Outgoing;
use super::pending::Pending;
use super::sessions::{Claim, Seat};
use super::websocket::{Message, WebSocket};
use crate::telemetry::Counter;
use angelia_contract::frame::{ConnectorFrame, MAX_HELLO};
use angelia_contract::line::LineBuffer;
use angelia_core::clock::{self, Mono};
use angelia_core::error::Result;
use angelia_core::fail;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::{AckHabit, Backlog, Entry, Epoch, Seq, Window};
use angelia_core::media::Brought;
use angelia_core::memory::{ByteRate, HeldBytes};
use angelia_core::ports::log::{Claimed, OpenTurn, Ownership, Settlement, Stretch, TurnNote};
use angelia_core::turns::{ConversationKey, Turns};
use bytes::BytesMut;
use files::{Files, Version};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use gateway_frames::Unheard;
use held_lines::HeldLines;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

angelia_contract::limits! {
    /// Whoever does not say hello in this time is not a gateway; the connection ends.
    const HELLO_WITHIN: Duration = Duration::from_secs(15), time "from a relay socket's opening to its hello";
    /// The largest line in this time is a slow telephone line. A peer that lets one hang keeps memory from others; the connection ends.
    const LINE_WITHIN: Duration = Duration::from_secs(30), time "from the first byte of a line to its last";
}
/// How often an otherwise quiet socket is pinged.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Gateways may read nothing for 30–40 s and still be well.
const SILENCE: Duration = Duration::from_secs(90);
/// How long a chat's next text is held back behind the agent's answer, for
/// peers that would park it. None was parked from 50 ms on.
const BREATHER: Duration = Duration::from_millis(250);
/// How long texts of outside platforms are held back after a hello, for peers
/// that may have just started: for about a second every published gateway
/// acknowledges texts of platforms it knows by name, and drops them.
const SETTLING_IN: Duration = Duration::from_secs(3);
/// How long the answer to a peer's close may take to be written.
const FAREWELL: Duration = Duration::from_secs(1);
/// After a failed read or commit of the store.
const RETRY: Duration = Duration::from_secs(1);

/// What the peer is known to be able to do.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::relay) struct PeerProfile {
    /// It acts on `interrupt_inbound`.
    pub(in crate::relay) interrupts: bool,
    /// A text that comes in the very moment a turn ends is acknowledged, but
    /// parked until the chat's next one; seen with hermes 0.19.0.
    pub(in crate::relay) parks: bool,
    /// A command that is forwarded to it as a request loses what it says: the
    /// options are gone, or all of it is. So it is the published client, and no
    /// hello of it told yet that it is of a generation that reads them.
    pub(in crate::relay) loses_forwards: bool,
    /// It is the published client.
    pub(in crate::relay) published: bool,
    /// It reads `reply_to`; what does not may read lines.
    pub(in crate::relay) reads_replies: bool,
    /// It fetches the files of an event by reference; what does not gets links in the text.
    pub(in crate::relay) fetches: bool,
    /// It said that it wants links whatever it is.
    pub(in crate::relay) wants_links: bool,
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
    /// Told to end; what is open may be finished until then.
    Parting(Mono),
    /// The close frame is written; last words are heard until then.
    Closing(Mono),
    /// Over.
    Over,
}

/// Work that ran beside the loop.
enum Done {
    OldEnded,
    Claimed(Result<(Claimed, Vec<OpenTurn>)>),
    Conversation(ConversationKey, Result<Stretch>),
    Joined(ConversationKey, Vec<Seq>, Result<Option<Entry>>),
    TurnsNoted(Result<Ownership>, Vec<TurnNote>),
    Page(Result<Stretch>),
    Ahead(Result<Stretch>),
    Settled(Result<Ownership>, Vec<Settlement>),
    Late(Result<Vec<Seq>>, Vec<Seq>),
    Flipped(Result<Ownership>),
    Files(Version, Vec<Brought>),
    Album(Version, String),
    AlbumJoined(Version, Vec<Seq>, Result<Option<Entry>>),
    Interrupted,
    Noted(Ownership),
}

/// What happened on the wire.
enum Moved {
    /// Everything was written, or it failed.
    Out(bool),
    /// Something arrived.
    In(BytesMut),
    /// Nothing more comes.
    End,
}

/// Writes and reads what can be written and read now.
fn poll_wire(
    socket: &mut WebSocket,
    outgoing: &mut Outgoing,
    writes: bool,
    reads: bool,
    cx: &mut Context<'_>,
) -> Poll<Moved> {
    if writes && let Poll::Ready(written) = outgoing.poll_write(socket, cx) {
        return Poll::Ready(Moved::Out(written.is_ok()));
    }
    if !reads {
        return Poll::Pending;
    }
    match socket.poll_read(cx) {
        Poll::Ready(Ok(Some(arrived))) => Poll::Ready(Moved::In(arrived)),
        Poll::Ready(_) => Poll::Ready(Moved::End),
        Poll::Pending => Poll::Pending,
    }
}

type Job = Pin<Box<dyn Future<Output = Done> + Send>>;

pub(in crate::relay) struct Session {
    relay: Arc<Relay>,
    record: Arc<GatewayRecord>,
    profile: PeerProfile,
    /// The address it dialled, as others are written to it: scheme and host.
    dialled: Arc<str>,
    /// Files on their way to it.
    files: Files,
    mailbox: Arc<Mailbox>,
    _seat: Seat,
    phase: Phase,
    ending: Option<Ending>,
    lines: LineBuffer,
    /// What arrived and was not taken yet.
    unheard: Unheard,
    /// When the line that is not finished began.
    line_began: Option<Mono>,
    /// What this socket makes the server hold.
    held: HeldBytes,
    /// How fast it may send.
    rate: Arc<ByteRate>,
    /// When the store is asked again, after there was no memory for what it has.
    page_again: Option<Mono>,
    handshake: Handshake,
    window: Window,
    backlog: Backlog,
    pending: Pending,
    outgoing: Outgoing,
    jobs: FuturesUnordered<Job>,
    /// Settled, to be made durable with the next commit.
    to_settle: Vec<Settlement>,
    /// Being made durable now.
    settling: Vec<Seq>,
    /// Acknowledged here and not pushed here.
    late: Vec<Seq>,
    /// Whether the store is looking at some of those.
    looking_at_late: bool,
    /// Whether a push is among what is not written yet.
    pushes_unwritten: bool,
    interrupting: usize,
    /// Entries that are not to be pushed on this socket any more.
    not_again: VecDeque<Seq>,
    flips: u32,
    /// Whether the flip to idle is durable.
    flipped: bool,
    /// Chats just answered, and until when they are left alone; oldest first.
    breathers: VecDeque<(String, Mono)>,
    /// Until when the peer is left to settle in.
    settled_in_at: Option<Mono>,
    /// What the gateway works on, and what waits for it.
    turns: Turns,
    /// Whether everybody in a chat shares one conversation with it.
    one_per_chat: bool,
    /// What the log has to know of that, and whether it is being told.
    turn_notes: Vec<TurnNote>,
    noting_turns: Option<Vec<Seq>>,
    /// Turns that were asked to end while they may have asked something, and when to look again.
    unanswered: Vec<(Mono, ConversationKey, Entry)>,
    /// What people see of that.
    held_lines: HeldLines,
    claim: Option<Claim>,
    /// Under which this socket drains its instance, once it does.
    epoch: Option<Epoch>,
    claiming: bool,
    waits_for_old: bool,
    opened_at: Mono,
    heard_at: Mono,
    pinged_at: Mono,
    /// Whether the peer said anything after it was told to go.
    spoke_after_close: bool,
    /// Whether the peer sent a close frame.
    peer_closed: bool,
}

impl Session {
    pub(in crate::relay) fn new(
        relay: Arc<Relay>,
        record: Arc<GatewayRecord>,
        profile: PeerProfile,
        dialled: Arc<str>,
        mailbox: Arc<Mailbox>,
        seat: Seat,
    ) -> Self {
        let now = clock::mono();
        // Our own half acknowledges, however long its first turn takes.
        let habit = if profile.parks {
            relay.sessions.standing(record.instance).habit
        } else {
            AckHabit::Acknowledges
        };
        let held = relay.memory.socket(&record.tenant, record.instance).nothing();
        let rate = relay.memory.rate(&record.tenant, record.instance, now);
        let turns = turns::at_first(&relay, &record, profile);
        let one_per_chat = record.shared_groups || relay.sessions.standing(record.instance).one_per_chat;
        let held_lines = HeldLines::new(relay.hub.clone());
        Self {
            relay,
            record,
            profile,
            dialled,
            files: Files::default(),
            mailbox,
            _seat: seat,
            phase: Phase::Greeting,
            ending: None,
            lines: LineBuffer::new(MAX_HELLO),
            unheard: Unheard::default(),
            line_began: None,
            held,
            rate,
            page_again: None,
            handshake: Handshake::default(),
            window: Window::new(habit),
            backlog: Backlog::default(),
            pending: Pending::default(),
            outgoing: Outgoing::default(),
            jobs: FuturesUnordered::new(),
            to_settle: Vec::new(),
            settling: Vec::new(),
            late: Vec::new(),
            looking_at_late: false,
            pushes_unwritten: false,
            interrupting: 0,
            not_again: VecDeque::new(),
            flips: 0,
            flipped: false,
            breathers: VecDeque::new(),
            settled_in_at: None,
            turns,
            one_per_chat,
            turn_notes: Vec::new(),
            noting_turns: None,
            unanswered: Vec::new(),
            held_lines,
            claim: None,
            epoch: None,
            claiming: false,
            waits_for_old: false,
            opened_at: now,
            heard_at: now,
            pinged_at: now,
            spoke_after_close: false,
            peer_closed: false,
        }
    }

    /// Serves the socket until it ends. Boxed, because a future keeps a place for whatever moves
    /// into it and on from it.
    pub(in crate::relay) async fn run(mut self: Box<Self>, mut socket: WebSocket) {
        let mailbox = self.mailbox.clone();
        if self.relay.life.is_leaving() {
            mailbox.end(Ending::WhenDone);
        }
        loop {
            let now = clock::mono();
            self.advance(now);
            if self.phase == Phase::Over {
                break;
            }
            // Asked once: others share the rate, and whoever does not read has to know until when.
            let rests_until = self.rate.ready_at(now);
            if rests_until.is_some() || !self.may_hear() {
                self.turns.not_reading(now);
            }
            let nap = self.next_deadline(rests_until).since(now);
            let (may_hear, has_more) = (rests_until.is_none() && self.may_hear(), !self.unheard.is_empty());
            let (writes, reads) = (self.outgoing.is_pending(), may_hear && !has_more);
            let outgoing = &mut self.outgoing;
            tokio::select! {
                biased;
                moved = poll_fn(|cx| poll_wire(&mut socket, outgoing, writes, reads, cx)), if writes || reads => match moved {
                    Moved::Out(all) => self.wrote(all),
                    Moved::In(arrived) => {
                        self.heard(arrived);
                        // Whoever always has more to say still shares its thread.
                        tokio::task::yield_now().await;
                    }
                    Moved::End => self.phase = Phase::Over,
                },
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.done(done),
                () = mailbox.arrival() => {}
                () = tokio::task::yield_now(), if may_hear && has_more => self.hear_more(now),
                () = tokio::time::sleep(nap) => {}
            }
        }
        if self.peer_closed {
            // Its close is answered, so that it need not wait for one.
            self.outgoing.message(Message::Closed);
            let outgoing = &mut self.outgoing;
            let answered = poll_fn(|cx| outgoing.poll_write(&mut socket, cx));
            let _ = tokio::time::timeout(FAREWELL, answered).await;
        }
        drop(socket);
        self.finish().await;
    }

    fn wrote(&mut self, all: bool) {
        if !all {
            self.phase = Phase::Over;
        } else if std::mem::take(&mut self.pushes_unwritten) {
            fail::point("after_push");
        }
    }

    /// Takes the mail, lets time pass, and writes what may be written.
    fn advance(&mut self, now: Mono) {
        self.take_mail(now);
        self.pass_time(now);
        if self.phase == Phase::Draining && self.may_push() {
            self.drain(now);
        }
        self.note_turns();
        self.commit_settled();
        self.look_at_late();
        self.count_held();
    }

    /// Nothing new is pushed while nothing can be committed: its acknowledgement
    /// could not be kept, and the next socket would get it once more. Nor by a node that stood
    /// still: it does not know yet who was revoked.
    fn may_push(&self) -> bool {
        self.relay.ports.upkeep.healthy() && self.relay.cluster.is_current()
    }

    fn take_mail(&mut self, now: Mono) {
        let mut mail = self.mailbox.take();
        for answer in mail.answers.drain(..) {
            if let Some(final_in) = self.pending.close(answer.ticket) {
                self.outgoing.line(&answer.line);
                self.turns.answered(answer.ticket, answer.ok, now);
                if let Some(chat) = final_in.filter(|_| self.profile.parks) {
                    self.breathers.retain(|(answered, _)| *answered != chat);
                    self.breathers.push_back((chat, now + BREATHER));
                }
            }
        }
        for Interrupt { session_key, chat_id } in mail.interrupts.drain(..) {
            self.relay.metrics.count(Counter::Interrupts);
            self.turns.stopped(&session_key, now);
            self.outgoing.line(&ConnectorFrame::InterruptInbound { session_key, chat_id }.to_line());
        }
        self.keep_mail(&mut mail);
        if let Some(ending) = mail.ending {
            self.close(ending, now);
        }
    }

    fn pass_time(&mut self, now: Mono) {
        while let Some((ticket, line)) = self.pending.expire(now) {
            self.relay.metrics.count(Counter::OutboundTimedOut);
            self.outgoing.line(&line);
            self.turns.answered(ticket, false, now);
        }
        self.pass_turns(now);
        while self.breathers.front().is_some_and(|(_, until)| *until <= now) {
            self.breathers.pop_front();
        }
        self.settled_in_at = self.settled_in_at.filter(|until| *until > now);
        self.page_again = self.page_again.filter(|again| *again > now);
        self.note_lingering(now);
        let habit = self.window.habit();
        let settled = self.window.tick(now);
        self.settle(settled, now);
        self.note_habit(habit);
        if let Some(repeat) = self.handshake.complete(now) {
            self.keep_fronts();
            self.keep_commands();
            if let Some(line) = repeat {
                self.outgoing.line(&line);
            }
            self.join();
        }
        match self.phase {
            Phase::Greeting if now.since(self.opened_at) >= HELLO_WITHIN => self.phase = Phase::Over,
            Phase::GoingIdle(until) if self.is_quiet() || now >= until => self.flip(),
            Phase::Parting(until) if self.has_finished() || now >= until => self.say_goodbye(now),
            Phase::Closing(until) if now >= until => self.phase = Phase::Over,
            _ => {}
        }
        if self.line_began.is_some_and(|began| now.since(began) >= LINE_WITHIN) {
            self.relay.metrics.count(Counter::LinesUnfinished);
            self.phase = Phase::Over;
        }
        if now.since(self.heard_at) >= SILENCE && self.unheard.is_empty() {
            self.phase = Phase::Over;
        } else if now.since(self.pinged_at) >= PING_EVERY && now.since(self.heard_at) >= PING_EVERY {
            self.ping(0, now);
        }
    }

    /// When [`Session::pass_time`] has to look again.
    fn next_deadline(&self, rests_until: Option<Mono>) -> Mono {
        let silence = (self.heard_at.max(self.pinged_at) + PING_EVERY).min(self.heard_at + SILENCE);
        let phase = match self.phase {
            Phase::Greeting => Some(self.opened_at + HELLO_WITHIN),
            Phase::GoingIdle(until) | Phase::Parting(until) | Phase::Closing(until) => Some(until),
            Phase::Draining if !self.may_push() => Some(clock::mono() + RETRY),
            _ => None,
        };
        let breather = self.breathers.front().map(|(_, until)| *until);
        let line = self.line_began.map(|began| began + LINE_WITHIN);
        let unanswered = self.unanswered.iter().map(|(at, ..)| *at).min();
        let own = [phase, breather, self.settled_in_at, line, rests_until, self.page_again, unanswered];
        let others = [self.handshake.due(), self.window.next_tick(), self.pending.next_deadline()];
        let others = others.into_iter().chain([self.turns.next_deadline(self.may_read_conversations())]);
        own.into_iter().chain(others).flatten().fold(silence, Mono::min)
    }

    /// Starts the drain once the handshake is quiet, the old socket is gone, and
    /// the instance is this one's to drain.
    fn join(&mut self) {
        if self.phase != Phase::Joining || self.waits_for_old || self.handshake.due().is_some() {
            return;
        }
        match self.epoch {
            Some(_) => self.phase = Phase::Draining,
            None => self.claim_log(),
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::OldEnded => {
                self.waits_for_old = false;
                self.join();
            }
            Done::Claimed(outcome) => self.claimed(outcome),
            Done::Conversation(conversation, page) => self.conversation_read(&conversation, page.ok()),
            Done::Joined(conversation, lines, entry) => {
                self.joined(&conversation, &lines, entry.ok().flatten());
            }
            Done::TurnsNoted(outcome, notes) => self.turns_noted(outcome, notes),
            Done::Page(page) => {
                self.backlog.loaded(page.ok());
                // It passed over lines that may have come after their conversation was read.
                self.turns.heard_of_some();
                self.leave_held();
            }
            Done::Ahead(page) => {
                let page = page.ok();
                let waits = self.read_with_conversations(page.as_ref());
                let known = |entry: &Entry| self.not_again.contains(&entry.seq) || waits.contains(&entry.seq);
                self.backlog.loaded_ahead(page, known);
            }
            Done::Settled(Ok(ownership), settled) => {
                self.settling.clear();
                self.heed(ownership);
                let here = settled.iter().filter(|settlement| settlement.pushed_at.is_some()).count();
                self.window.committed(here);
                self.backlog.look_ahead_again();
            }
            Done::Settled(Err(_), settled) => {
                self.settling.clear();
                self.to_settle.splice(0..0, settled);
            }
            Done::Late(outcome, late) => self.looked_at_late(outcome, late),
            Done::Flipped(outcome) => self.flipped(outcome),
            Done::Files(version, files) => self.files_came(version, files),
            Done::Album(version, album) => self.album_collected(version, &album),
            Done::AlbumJoined(version, lines, entry) => self.album_joined(version, &lines, entry),
            Done::Interrupted => self.interrupting -= 1,
            Done::Noted(ownership) => self.heed(ownership),
        }
    }

    fn ping(&mut self, number: u64, now: Mono) {
        self.pinged_at = now;
        self.outgoing.message(Message::Ping(number));
    }
}
