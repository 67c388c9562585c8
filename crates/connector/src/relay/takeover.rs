//! One live socket per instance, whichever node each is on: the newest claims the log, and the
//! one before ends.

use super::Relay;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::{Epoch, InstanceId};
use angelia_core::once::is_fresh;
use angelia_core::ports::log::Claimed;
use angelia_core::ports::{Control, Hint};
use angelia_core::secret::random_bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a socket waits for the one before it on another node: what was acknowledged there
/// is durable then. Its acknowledgements count later, too; it would only get more twice.
const FORMER_LEAVES_WITHIN: Duration = Duration::from_secs(4);

/// How often is looked whether its node is gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How soon a store is told again that a socket is gone.
const LEAVE_AGAIN: Duration = Duration::from_secs(1);
/// Claims under way on a node among others beyond which gateways are told to come back: when
/// another node goes, all of its gateways come at once, and those that are here must go on.
const MAX_CLAIMING: usize = 1_000;
/// For how long, at the most; each for another while.
const COME_BACK_WITHIN: u64 = 5;

/// In how many seconds somebody may come back who is one too many beside so many claims.
fn come_back_in(claiming: usize, chance: u64) -> Option<u64> {
    (claiming >= MAX_CLAIMING).then(|| 1 + chance % COME_BACK_WITHIN)
}

/// A claim that is under way.
pub(super) struct Claiming(Arc<AtomicUsize>);

impl Drop for Claiming {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Relay {
    /// A claim begins.
    pub(super) fn begin_claim(&self) -> Claiming {
        self.claiming.fetch_add(1, Ordering::Relaxed);
        Claiming(self.claiming.clone())
    }

    /// In how many seconds a gateway may come that would be one too many now.
    pub(super) fn crowded_for(&self) -> Option<u64> {
        let claiming = Some(self.claiming.load(Ordering::Relaxed)).filter(|_| self.cluster.is_shared())?;
        come_back_in(claiming, u64::from_ne_bytes(random_bytes()))
    }

    /// An instance was claimed: whoever drained it on another node ends, and is waited for.
    pub(super) async fn take_over(&self, instance: InstanceId, claimed: &Claimed) {
        if !self.cluster.is_shared() {
            return;
        }
        let (epoch, node) = (claimed.epoch, self.cluster.node().to_owned());
        let former = claimed.former.as_deref().filter(|former| **former != *node);
        let former = former.filter(|former| self.cluster.is_there(former));
        self.cluster.bus().publish(Hint::Control(Control::Claimed { instance, epoch, node: node.clone() }));
        if let Some(former) = former {
            let left = self.sessions.former_left(instance, epoch);
            let gone = async {
                while self.cluster.is_there(former) {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            let over = async {
                tokio::select! {
                    () = left => {}
                    () = gone => {}
                }
            };
            let _ = tokio::time::timeout(FORMER_LEAVES_WITHIN, over).await;
        }
    }

    /// A socket that drained an instance is gone, and everything it settled is durable.
    pub(super) async fn leave(self: &Arc<Self>, instance: InstanceId, epoch: Epoch) {
        if self.cluster.is_shared() {
            if self.ports.log.leave(instance, epoch).await.is_err() {
                let relay = self.clone();
                tokio::spawn(async move { relay.leave_later(instance, epoch).await });
            }
            self.cluster.bus().publish(Hint::Control(Control::Left { instance, epoch }));
        }
    }

    /// A store that could not write down that a socket is gone is told until it can: its agent would
    /// be taken for present, and neither woken nor told of.
    async fn leave_later(&self, instance: InstanceId, epoch: Epoch) {
        while self.life.pause(LEAVE_AGAIN).await {
            if self.ports.log.leave(instance, epoch).await.is_ok() {
                return;
            }
        }
    }

    /// A socket whose peer was alive was replaced by another process. All nodes count it: the
    /// two may dial any of them.
    pub(super) fn note_takeover(self: &Arc<Self>, record: &GatewayRecord, epoch: Option<Epoch>) {
        if self.sessions.took_over(record.instance, epoch, clock::mono()) {
            tracing::warn!(
                tenant = %record.tenant, gateway = %record.gateway_id,
                "two processes are using this gateway id and keep replacing each other; \
                 stop one of them, or give it an id of its own (angelia gateway create)"
            );
        }
        let Some(epoch) = epoch.filter(|_| self.cluster.is_shared()) else { return };
        let (relay, instance) = (self.clone(), record.instance);
        tokio::spawn(async move {
            if let Ok(at) = relay.store_time().await {
                relay.cluster.say(Control::TookOver { instance, epoch, at });
            }
        });
    }

    /// Another node says that a socket was replaced so. It counts if it was just now, and the
    /// store knows of whoever came after.
    pub(super) async fn hear_takeover(&self, instance: InstanceId, epoch: Epoch, at: UnixMillis) {
        let Ok(now) = self.store_time().await else { return };
        let Ok(states) = self.ports.log.states(vec![instance]).await else { return };
        let was_replaced = states.first().is_some_and(|state| state.epoch > epoch);
        if is_fresh(at, now) && was_replaced && self.sessions.took_over(instance, Some(epoch), clock::mono())
        {
            tracing::warn!(
                instance = instance.0,
                "two processes are using one gateway id on different nodes and keep replacing each other; \
                 its sockets are turned away here as well"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_herd_is_told_to_come_back_each_at_another_time() {
        assert_eq!(come_back_in(MAX_CLAIMING - 1, 7), None);
        let seconds: Vec<u64> = (0..100).filter_map(|chance| come_back_in(MAX_CLAIMING, chance)).collect();
        assert_eq!(seconds.len(), 100);
        assert_eq!((seconds.iter().min(), seconds.iter().max()), (Some(&1), Some(&COME_BACK_WITHIN)));
    }
}
