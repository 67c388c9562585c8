//! Going idle, being replaced, ending: nothing is left behind.

use super::super::mailbox::Ending;
use super::super::registry::Standing;
use super::deliver::wall_time;
use super::{Done, Phase, Session};
use crate::telemetry::Counter;
use angelia_contract::close;
use angelia_core::clock::{self, Mono};
use angelia_core::inbox::Window;
use angelia_core::store::Returned;
use axum::extract::ws::{CloseFrame, Message};
use futures_util::StreamExt;
use std::time::Duration;

/// How long a replaced socket's acknowledgements still count.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Session {
    pub(super) fn is_quiet(&self) -> bool {
        self.window.is_empty() && self.to_settle.is_empty() && !self.settling
    }

    /// Makes it durable that the gateway sleeps, then tells it so.
    pub(super) fn flip(&mut self) {
        self.phase = Phase::Idle;
        self.set_standing(|standing| standing.idle = true);
        let (store, instance) = (self.server.store.clone(), self.record.instance);
        self.jobs.push(Box::pin(async move { Done::Flipped(store.set_idle(instance, true).await) }));
    }

    /// A handshake says it is awake.
    pub(super) fn unflip(&mut self) {
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

    pub(super) fn set_standing(&self, change: impl FnOnce(&mut Standing)) {
        let mut standing = self.server.registry.standing(self.record.instance);
        change(&mut standing);
        self.server.registry.remember(self.record.instance, standing);
    }

    /// Says goodbye; acknowledgements on their way are still heard.
    pub(super) fn close(&mut self, ending: Ending, now: Mono) {
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
    pub(super) async fn finish(mut self) {
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
