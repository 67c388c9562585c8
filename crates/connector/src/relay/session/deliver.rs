//! Entries out, settlements in: what the window permits is pushed, what
//! settled is committed.

use super::super::backlog::PAGE;
use super::{Done, RETRY, Session};
use crate::telemetry::Counter;
use angelia_contract::frame::{ConnectorFrame, inbound_line, passthrough_line};
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::error::Result;
use angelia_core::inbox::{AckHabit, Entry, EntryKind, FrameKind, Permit, Settled};
use angelia_core::store::Settlement;

impl Session {
    /// Pushes entries while the window, the socket and the gateway allow it.
    pub(super) fn drain(&mut self, now: Mono) {
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
        if self.breathers.iter().any(|(chat, _)| **chat == *entry.chat_id) {
            return None;
        }
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

    pub(super) fn load_ahead(&mut self) {
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs
            .push(Box::pin(async move { Done::Ahead(or_later(store.load_ahead(instance).await).await) }));
    }

    pub(super) fn settle(&mut self, settled: Vec<Settled>, now: Mono) {
        let wall = clock::wall();
        self.server.metrics.add(Counter::Settled, settled.len() as u64);
        self.to_settle.extend(settled.into_iter().map(|done| Settlement {
            seq: done.seq,
            by: Some(done.by),
            pushed_at: Some(wall_time(done.pushed_at, now, wall)),
        }));
    }

    /// Lets the journal know of frames that wait for their acknowledgement.
    pub(super) fn note_lingering(&mut self, now: Mono) {
        let lingering = self.window.lingering(now);
        if lingering.is_empty() {
            return;
        }
        let wall = clock::wall();
        let pushed = lingering.into_iter().map(|(seq, at)| (seq, wall_time(at, now, wall))).collect();
        let store = self.server.store.clone();
        self.jobs.push(Box::pin(async move {
            let _ = store.note_pushed(pushed).await;
            Done::Noted
        }));
    }

    /// One commit at a time: what settles meanwhile shares the next.
    pub(super) fn commit_settled(&mut self) {
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

    /// Remembers what this socket taught about the gateway's habit.
    pub(super) fn note_habit(&mut self, before: AckHabit) {
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

pub(super) fn wall_time(at: Mono, now: Mono, wall: UnixMillis) -> UnixMillis {
    wall.before(now.since(at))
}
