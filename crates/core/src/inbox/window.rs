//! The frames in flight on one socket, and what settles them: the acknowledgement
//! (`inbound_ack`) of a `bufferId`, or what stands for one.
//!
//! An entry settles by its acknowledgement; by the acknowledgement of a later
//! frame on the same socket, because gateways read serially; and, where nobody
//! acknowledges, by the pong to a ping written after it once the socket stayed
//! up a little longer. A frame is pushed again only on a new socket.

use super::{AckHabit, Seq};
use crate::clock::Mono;
use crate::words::words;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames that may await an acknowledgement. Gateways stop reading, and then
/// fail their own keepalive, when more than 16 messages are unread.
pub const MAX_AWAITING_ACK: usize = 8;
/// Frames that may be unsettled in any way, for the same reason.
pub const MAX_UNSETTLED: usize = 12;
/// The same for frames that nobody acknowledges and that were read: a socket that
/// ends now would get all of them again.
const MAX_READ: usize = 64;
/// Bytes that may be unsettled, unless a single frame is larger.
pub const MAX_IN_FLIGHT_BYTES: usize = 1024 * 1024;
/// With a frame unacknowledged for this long the gateway is stalled: more would only pile up.
const STALL: Duration = Duration::from_secs(5);
/// A gateway may be blocked for 30 s behind one slash command before its first acknowledgement.
const FIRST_ACK: Duration = Duration::from_secs(45);
/// A frame unsettled for this long is noted in the journal; most never are, and cost nothing.
const LINGER: Duration = Duration::from_secs(1);
/// A pong proves received; this much more without the socket ending is taken as handled.
const AFTER_PONG: Duration = Duration::from_secs(5);

/// Whether a frame of this kind is ever acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An `inbound`, acknowledged by every gateway since 0.18.
    Acknowledged,
    /// A `passthrough_forward` or an interrupt, which published gateways never acknowledge.
    Unacknowledged,
}

words! {
    /// What settled an entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SettledBy {
        /// Its own acknowledgement.
        Ack = "acknowledged",
        /// The acknowledgement of a later frame on the same socket.
        LaterAck = "acknowledged by a later frame",
        /// A pong and a socket that stayed up.
        Pong = "settled by pong",
        /// Nothing: its text went with a later line of the same author.
        Joined = "joined with a later line",
        /// Nothing: it could not be read, and nobody was given it.
        Unreadable = "dropped: the connector could not read it",
    }
}

/// An entry that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Which entry.
    pub seq: Seq,
    /// By what.
    pub by: SettledBy,
    /// When it was pushed on this socket.
    pub pushed_at: Mono,
}

/// Whether the next frame may be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Yes, now.
    Push,
    /// Not before something settles.
    Wait,
}

/// What a socket leaves behind when it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WindowEnd {
    /// Unsettled entries, oldest first, with the time each was pushed.
    pub returned: Vec<(Seq, Mono)>,
    /// The oldest of them, if the socket ended without a single acknowledgement.
    pub strike: Option<Seq>,
}

#[derive(Debug)]
struct Flight {
    seq: Seq,
    bytes: usize,
    kind: FrameKind,
    pushed_at: Mono,
    /// Number of the first ping written after this frame.
    ping: Option<u64>,
    /// When that ping was answered.
    pong_at: Option<Mono>,
    /// Whether the journal knows of the push already.
    noted: bool,
}

/// The frames in flight on one socket.
#[derive(Debug)]
pub struct Window {
    habit: AckHabit,
    flights: VecDeque<Flight>,
    first_push: Option<Mono>,
    acked_here: bool,
    pings: u64,
    /// Settled here, but not yet durably so: a crash would push these again.
    uncommitted: usize,
}

impl Window {
    /// An empty window towards a gateway of that habit.
    pub fn new(habit: AckHabit) -> Self {
        Self {
            habit,
            flights: VecDeque::new(),
            first_push: None,
            acked_here: false,
            pings: 0,
            uncommitted: 0,
        }
    }

    /// What is known of the gateway's habit by now.
    pub fn habit(&self) -> AckHabit {
        self.habit
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// The first entry that waits for its acknowledgement.
    pub fn oldest(&self) -> Option<Seq> {
        self.flights.iter().find(|flight| flight.kind == FrameKind::Acknowledged).map(|flight| flight.seq)
    }

    /// Whether any acknowledgement came on this socket.
    pub fn acked_here(&self) -> bool {
        self.acked_here
    }

    /// Whether this entry is in flight here.
    pub fn contains(&self, seq: Seq) -> bool {
        self.flights.iter().any(|flight| flight.seq == seq)
    }

    /// Whether a frame of `kind` and `bytes` may be pushed at `now`.
    pub fn permit(&self, kind: FrameKind, bytes: usize, now: Mono) -> Permit {
        let (count, held) = self.unread();
        if count + self.uncommitted == 0 {
            return Permit::Push;
        }
        if kind == FrameKind::Unacknowledged && self.flights.len() >= MAX_READ {
            return Permit::Wait;
        }
        let room = count + self.uncommitted < MAX_UNSETTLED && held + bytes <= MAX_IN_FLIGHT_BYTES;
        let awaiting = self.flights.iter().filter(|flight| self.awaits_ack(flight.kind)).count();
        let room_for_ack = !self.awaits_ack(kind) || awaiting + self.uncommitted < MAX_AWAITING_ACK;
        if room && room_for_ack && !self.stalled(now) { Permit::Push } else { Permit::Wait }
    }

    /// Notes a frame as written.
    pub fn pushed(&mut self, seq: Seq, kind: FrameKind, bytes: usize, now: Mono) {
        if kind == FrameKind::Acknowledged {
            // What nobody acknowledges says nothing about the habit.
            self.first_push.get_or_insert(now);
        }
        self.flights.push_back(Flight {
            seq,
            bytes,
            kind,
            pushed_at: now,
            ping: None,
            pong_at: None,
            noted: false,
        });
    }

    /// Takes an acknowledgement; everything pushed before that frame is done as well.
    pub fn ack(&mut self, seq: Seq) -> Vec<Settled> {
        let Some(position) = self.flights.iter().position(|flight| flight.seq == seq) else {
            return Vec::new();
        };
        self.acked_here = true;
        self.habit = AckHabit::Acknowledges;
        let done: Vec<Settled> = self
            .flights
            .drain(..=position)
            .map(|flight| Settled {
                seq: flight.seq,
                by: if flight.seq == seq { SettledBy::Ack } else { SettledBy::LaterAck },
                pushed_at: flight.pushed_at,
            })
            .collect();
        self.uncommitted += done.len();
        done
    }

    /// Notes that `count` settled entries are durably so.
    pub fn committed(&mut self, count: usize) {
        self.uncommitted = self.uncommitted.saturating_sub(count);
    }

    /// Number of the ping to write now, if some frame needs one to settle.
    pub fn ping_due(&mut self) -> Option<u64> {
        let habit_settles_by_pong = self.habit != AckHabit::Acknowledges;
        let needed = self.flights.iter().any(|flight| {
            flight.ping.is_none() && (habit_settles_by_pong || flight.kind == FrameKind::Unacknowledged)
        });
        if !needed {
            return None;
        }
        self.pings += 1;
        for flight in self.flights.iter_mut().filter(|flight| flight.ping.is_none()) {
            flight.ping = Some(self.pings);
        }
        Some(self.pings)
    }

    /// Takes the pong to ping `number`.
    pub fn pong(&mut self, number: u64, now: Mono) {
        for flight in &mut self.flights {
            if flight.ping.is_some_and(|ping| ping <= number) {
                flight.pong_at.get_or_insert(now);
            }
        }
    }

    /// Settles what time has settled.
    pub fn tick(&mut self, now: Mono) -> Vec<Settled> {
        self.judge_habit(now);
        let mut done = Vec::new();
        let (habit, flights) = (self.habit, &mut self.flights);
        flights.retain(|flight| {
            let over = settles_by_pong(habit, flight.kind)
                && flight.pong_at.is_some_and(|pong| now.since(pong) >= AFTER_PONG);
            if over {
                done.push(Settled { seq: flight.seq, by: SettledBy::Pong, pushed_at: flight.pushed_at });
            }
            !over
        });
        self.uncommitted += done.len();
        done
    }

    /// Frames that linger and were not told of before, with the time each was pushed.
    pub fn lingering(&mut self, now: Mono) -> Vec<(Seq, Mono)> {
        let due = self.flights.iter_mut().filter(|f| !f.noted && now.since(f.pushed_at) >= LINGER);
        due.map(|flight| {
            flight.noted = true;
            (flight.seq, flight.pushed_at)
        })
        .collect()
    }

    /// When [`Window::tick`] or [`Window::lingering`] has something to do next.
    pub fn next_tick(&self) -> Option<Mono> {
        let by_linger = self.flights.iter().find(|flight| !flight.noted).map(|f| f.pushed_at + LINGER);
        let by_pong = self
            .flights
            .iter()
            .filter(|flight| settles_by_pong(self.habit, flight.kind))
            .filter_map(|flight| flight.pong_at.map(|pong| pong + AFTER_PONG))
            .min();
        let by_habit = match (self.habit, self.first_push) {
            (AckHabit::Unknown, Some(first)) if !self.flights.is_empty() => Some(first + FIRST_ACK),
            _ => None,
        };
        by_pong.into_iter().chain(by_habit).chain(by_linger).min()
    }

    /// Ends the window with its socket.
    pub fn end(self) -> WindowEnd {
        let returned: Vec<_> = self.flights.iter().map(|flight| (flight.seq, flight.pushed_at)).collect();
        let strike = if self.acked_here { None } else { returned.first().map(|(seq, _)| *seq) };
        WindowEnd { returned, strike }
    }

    /// How many frames the gateway may not have read yet, and their bytes. What
    /// nobody acknowledges was read once the ping after it is answered; that it
    /// settles only later keeps nothing else back.
    fn unread(&self) -> (usize, usize) {
        let read = |flight: &&Flight| flight.kind == FrameKind::Unacknowledged && flight.pong_at.is_some();
        let unread = self.flights.iter().filter(|flight| !read(flight));
        unread.fold((0, 0), |(count, bytes), flight| (count + 1, bytes + flight.bytes))
    }

    fn awaits_ack(&self, kind: FrameKind) -> bool {
        !settles_by_pong(self.habit, kind)
    }

    fn stalled(&self, now: Mono) -> bool {
        let oldest = self.flights.iter().find(|flight| self.awaits_ack(flight.kind));
        oldest.is_some_and(|flight| now.since(flight.pushed_at) > STALL)
    }

    /// A new peer that let its time for a first acknowledgement pass is silent.
    fn judge_habit(&mut self, now: Mono) {
        let patience_over = self.first_push.is_some_and(|first| now.since(first) >= FIRST_ACK);
        if self.habit == AckHabit::Unknown && patience_over && !self.flights.is_empty() {
            self.habit = AckHabit::Silent;
        }
    }
}

fn settles_by_pong(habit: AckHabit, kind: FrameKind) -> bool {
    kind == FrameKind::Unacknowledged || habit == AckHabit::Silent
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
