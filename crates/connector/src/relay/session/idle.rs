//! Going idle (`going_idle`): a gateway that sleeps, what must be settled before, and waking up again.

use super::{Done, Phase, Session};
use crate::relay::gateway_log;
use angelia_contract::frame::ConnectorFrame;
use angelia_core::clock::Mono;
use angelia_core::error::Result;
use angelia_core::ports::log::Ownership;
use std::time::Duration;

/// How long going idle waits for acknowledgements in flight.
const IDLE_PATIENCE: Duration = Duration::from_millis(1_500);
/// How often a gateway may go idle on one socket; each costs a commit.
const MAX_FLIPS: u32 = 32;

impl Session {
    /// The gateway wants to sleep: nothing more is pushed, and what is in flight may still settle.
    pub(super) fn goes_idle(&mut self, now: Mono) {
        match self.phase {
            Phase::Draining | Phase::Joining if self.flips < MAX_FLIPS => {
                self.flips += 1;
                self.handshake.renew();
                self.turns.close_all(now);
                self.phase = Phase::GoingIdle(now + IDLE_PATIENCE);
            }
            Phase::Idle if self.flipped => self.outgoing.line(&ConnectorFrame::GoingIdleAck.to_line()),
            _ => {}
        }
    }

    /// Whether nothing is in flight, and nothing of it waits to be committed.
    pub(super) fn is_quiet(&self) -> bool {
        let settled = self.to_settle.is_empty() && self.settling.is_empty();
        settled && self.window.is_empty() && self.late.is_empty() && !self.looking_at_late
    }

    /// Makes it durable that the gateway sleeps, then tells it so.
    pub(super) fn flip(&mut self) {
        self.phase = Phase::Idle;
        self.flipped = false;
        self.relay.sessions.update(self.record.instance, |standing| standing.idle = true);
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        self.jobs
            .push(Box::pin(async move { Done::Flipped(ports.log.set_idle(instance, epoch, true).await) }));
    }

    /// Tells the gateway that it may sleep, or that it has to stay awake.
    pub(super) fn flipped(&mut self, outcome: Result<Ownership>) {
        if self.phase != Phase::Idle {
            return;
        }
        match outcome {
            Ok(Ownership::Ours) => {
                self.flipped = true;
                gateway_log::idle(&self.record);
                self.outgoing.line(&ConnectorFrame::GoingIdleAck.to_line());
            }
            Ok(Ownership::Lost) => self.heed(Ownership::Lost),
            Err(_) => {
                self.relay.sessions.update(self.record.instance, |standing| standing.idle = false);
                self.phase = Phase::Joining;
                self.backlog.renew();
                self.join();
            }
        }
    }

    /// A handshake says it is awake.
    pub(super) fn mark_awake(&mut self) {
        if !self.relay.sessions.standing(self.record.instance).idle {
            return;
        }
        self.relay.sessions.update(self.record.instance, |standing| standing.idle = false);
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        self.jobs.push(Box::pin(async move {
            Done::Noted(ports.log.set_idle(instance, epoch, false).await.unwrap_or(Ownership::Ours))
        }));
    }
}
