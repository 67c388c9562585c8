//! The end of a socket, whoever ends it: being replaced, revoked, shut down. Nothing is left behind.

use super::super::mailbox::Ending;
use super::super::websocket::Message;
use super::deliver::wall_time;
use super::{Phase, Session};
use crate::relay::gateway_log;
use crate::telemetry::Counter;
use angelia_contract::close;
use angelia_core::clock::{self, Mono};
use angelia_core::inbox::Window;
use angelia_core::ports::log::Returned;
use futures_util::StreamExt;
use std::time::Duration;

/// How long a socket that has to end waits for answers under way.
const PARTING: Duration = Duration::from_secs(1);
/// How long a replaced socket's acknowledgements still count.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a socket that is gone waits for its claim: a takeover takes four seconds at the most.
const CLAIMED_WITHIN: Duration = Duration::from_secs(6);

impl Session {
    /// Starts to end the socket, unless it is ending for a reason as good: nothing new is
    /// pushed, and what is open gets some time to be finished.
    pub(super) fn close(&mut self, ending: Ending, now: Mono) {
        if self.ending >= Some(ending) || matches!(self.phase, Phase::Closing(_) | Phase::Over) {
            return;
        }
        self.ending = Some(ending);
        let patience = match ending {
            Ending::WhenDone => self.relay.drain,
            Ending::Replaced | Ending::Shutdown => PARTING,
            // Whoever is revoked is not waited for.
            Ending::Revoked => Duration::ZERO,
        };
        self.phase = Phase::Parting(now + patience);
    }

    /// Whether what the gateway asks for is done. One that may finish its turns has to be
    /// able to send what they come to.
    pub(super) fn serves(&self) -> bool {
        match self.ending {
            None => true,
            Some(Ending::WhenDone) => matches!(self.phase, Phase::Parting(_)),
            Some(_) => false,
        }
    }

    /// Whether a socket that has to end would cut nothing off.
    pub(super) fn has_finished(&self) -> bool {
        let may_go_on = self.ending == Some(Ending::WhenDone) && self.has_open_turn();
        self.pending.is_empty() && !may_go_on
    }

    /// Whether the agent is at work on something it was given here.
    fn has_open_turn(&self) -> bool {
        self.turns.is_any_open()
    }

    /// Says goodbye; acknowledgements on their way are still heard.
    pub(super) fn say_goodbye(&mut self, now: Mono) {
        while let Some(line) = self.pending.abandon() {
            self.outgoing.line(&line);
        }
        self.phase = Phase::Closing(now + LAST_WORDS);
        let (code, reason) = match self.ending {
            Some(Ending::Revoked) => (close::UNAUTHORIZED, close::REASON_UNAUTHORIZED),
            Some(Ending::Replaced) => (close::GOING_AWAY, close::REASON_REPLACED),
            Some(Ending::WhenDone | Ending::Shutdown) | None => (close::GOING_AWAY, close::REASON_RESTART),
        };
        self.outgoing.message(Message::Close(code, reason));
    }

    /// Leaves nothing behind: what settled is committed, the rest returns to
    /// the inbox, and only then may the next socket begin.
    pub(super) async fn finish(mut self: Box<Self>) {
        self.note_takeover();
        if self.epoch.is_some() {
            let seconds = clock::mono().since(self.opened_at).as_secs();
            gateway_log::left(&self.record, self.ending, self.peer_closed, self.flipped, seconds);
        }
        self.work_while(|it| !it.settling.is_empty() || it.looking_at_late || it.noting_turns.is_some())
            .await;
        self.note_last_turns().await;
        let mut settled = std::mem::take(&mut self.to_settle);
        settled.retain(|done| !self.is_unnoted(done.seq));
        if !settled.is_empty() {
            let _ = self.relay.ports.log.settle(self.record.instance, self.epoch(), settled).await;
        }
        self.return_unsettled().await;
        // Whoever replaces this one waits for the one before as well.
        self.work_while(|it| it.waits_for_old).await;
        let late = std::mem::take(&mut self.late);
        if !late.is_empty() {
            let _ = self.relay.ports.log.settle_late(self.record.instance, late).await;
        }
        self.end_claim().await;
        if let Some(epoch) = self.epoch {
            self.relay.leave(self.record.instance, epoch).await;
        }
        if let Some(claim) = self.claim.take() {
            drop(claim);
            // Perhaps something waits for it already.
            self.relay.wake.waits(self.record.instance);
        }
    }

    /// Among several nodes a claim that is under way would be the store's word that this one has the
    /// agent. It is not made again.
    async fn end_claim(&mut self) {
        if self.relay.cluster.is_shared() {
            self.phase = Phase::Over;
            let _ = tokio::time::timeout(CLAIMED_WITHIN, self.work_while(|it| it.claiming)).await;
        }
    }

    /// Goes on with what runs beside the loop, for as long as something is not done.
    async fn work_while(&mut self, is_open: impl Fn(&Self) -> bool) {
        while is_open(self)
            && let Some(done) = self.jobs.next().await
        {
            self.done(done);
        }
    }

    async fn return_unsettled(&mut self) {
        let habit = self.window.habit();
        let ended = std::mem::replace(&mut self.window, Window::new(habit)).end();
        if ended.returned.is_empty() {
            return;
        }
        let (now, wall) = (clock::mono(), clock::wall());
        let entries = ended.returned.iter().map(|(seq, at)| (*seq, wall_time(*at, now, wall))).collect();
        // A socket that we ended, or that was put to sleep, says nothing about the entry it ended on.
        let orderly = self.flipped
            || matches!(self.ending, Some(Ending::WhenDone | Ending::Shutdown | Ending::Revoked));
        let returned = Returned { entries, strike: ended.strike.filter(|_| !orderly) };
        if let Ok(Some(seq)) =
            self.relay.ports.log.returned(self.record.instance, self.epoch(), returned).await
        {
            self.relay.metrics.count(Counter::DeadLetters);
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
        self.relay.note_takeover(&self.record, self.epoch);
    }
}
