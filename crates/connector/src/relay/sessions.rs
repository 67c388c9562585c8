//! Which socket serves which instance on this node: at most one.

use super::mailbox::{Ending, Hint, Mailbox};
use angelia_core::clock::{self, Mono};
use angelia_core::connections::Takeovers;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::{AckHabit, Entry, Epoch, InstanceId, Mark, Seq};
use angelia_core::ports::{Bus, Following, Topic};
use angelia_core::turns::Signs;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How often a server that stops looks whether sockets are left.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Sockets that are asked to end at once when a node leaves others, and the pause after them: two
/// thousand gateways a second dial the others.
const END_AT_ONCE: usize = 50;
const END_EVERY: Duration = Duration::from_millis(25);

/// What is known of the gateway behind an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) habit: AckHabit,
    pub(crate) idle: bool,
    /// How it marks its turns, platform by platform.
    pub(crate) signs: Vec<(Arc<str>, Signs)>,
    /// It was seen to stall on two people of one chat.
    pub(crate) one_per_chat: bool,
    /// It was seen to fetch or send files by reference.
    pub(crate) fetches: bool,
    /// When its socket said hello, if one did.
    pub(crate) came_at: Option<Mono>,
    /// When its last socket ended, if one did.
    pub(crate) left_at: Option<Mono>,
}

impl Standing {
    /// How it marks the end of its turns: the surest way it has shown on any platform.
    pub(crate) fn marks_turns(&self) -> &'static str {
        let shows = |sign: fn(&Signs) -> bool| self.signs.iter().any(|(_, signs)| sign(signs));
        if shows(|signs| signs.reacts) {
            "marks its turns"
        } else if shows(|signs| signs.notifies) {
            "says which answer is the last"
        } else {
            "not seen yet"
        }
    }
}

/// The live socket of an instance.
struct Live {
    record: Arc<GatewayRecord>,
    mailbox: Arc<Mailbox>,
    /// Closed once the socket has ended and everything it settled is durable.
    ended: watch::Receiver<()>,
    /// Under which it drains the log, once it does.
    epoch: Option<Epoch>,
}

/// Being the live socket of an instance. Ends when dropped, however that comes about.
pub(crate) struct Claim {
    sessions: Arc<Sessions>,
    instance: InstanceId,
    mailbox: Arc<Mailbox>,
    /// Closes what [`Live::ended`] waits for.
    _ended: watch::Sender<()>,
    /// What other nodes say of the instance is heard here.
    _following: Option<Following>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.sessions.release(self.instance, &self.mailbox);
    }
}

/// Being an open socket, with or without a hello.
pub(crate) struct Seat {
    sessions: Arc<Sessions>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.sessions.leave(self.number);
    }
}

#[derive(Default)]
struct Slot {
    standing: Standing,
    live: Option<Live>,
    takeovers: Takeovers,
    /// How far its socket knows the log to be.
    told: Mark,
    /// Whether the instance is gone: nothing is remembered once its socket is too.
    gone: bool,
    /// The last claim of another node that was heard of.
    claimed: Epoch,
    /// The last socket on another node that is known to have left.
    left: Epoch,
    /// The last one whose takeover was counted.
    taken_over: Epoch,
}

/// All instances this node knows of.
#[derive(Default)]
pub(crate) struct Sessions {
    slots: Mutex<HashMap<InstanceId, Slot>>,
    sockets: Mutex<Sockets>,
    bus: Option<Arc<dyn Bus>>,
    /// Instances whose hints may have been lost.
    missed: Mutex<Missed>,
    look: Notify,
    /// A socket on another node has left.
    left: Notify,
}

/// Whose hints may have been lost.
#[derive(Default)]
enum Missed {
    #[default]
    Nobody,
    Some(BTreeSet<InstanceId>),
    All,
}

/// Every open socket, by number.
#[derive(Default)]
struct Sockets {
    /// The last number given.
    last: u64,
    open: HashMap<u64, Sitting>,
    /// How many each gateway has, by tenant and id.
    of_gateway: HashMap<(String, String), usize>,
}

/// An open socket, and whose it is.
struct Sitting {
    record: Arc<GatewayRecord>,
    mailbox: Arc<Mailbox>,
}

impl Sessions {
    /// Those of a node that others may say something to.
    pub(crate) fn on(bus: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self { bus: Some(bus), ..Self::default() })
    }

    /// Sets what the store remembers of an instance.
    pub(crate) fn remember(&self, instance: InstanceId, standing: Standing) {
        self.slots.lock().entry(instance).or_default().standing = standing;
    }

    /// Changes what is known of an instance.
    pub(crate) fn update(&self, instance: InstanceId, change: impl FnOnce(&mut Standing)) {
        change(&mut self.slots.lock().entry(instance).or_default().standing);
    }

    pub(crate) fn standing(&self, instance: InstanceId) -> Standing {
        self.slots.lock().get(&instance).map(|slot| slot.standing.clone()).unwrap_or_default()
    }

    /// How much longer sockets of this instance are turned away.
    pub(crate) fn barred(&self, instance: InstanceId, now: Mono) -> Option<Duration> {
        self.slots.lock().get(&instance)?.takeovers.barred(now)
    }

    /// Takes note of an open socket, unless its gateway has as many as it may.
    pub(crate) fn enter(
        self: &Arc<Self>,
        record: Arc<GatewayRecord>,
        mailbox: Arc<Mailbox>,
        most: usize,
    ) -> Option<Seat> {
        let gateway = (record.tenant.clone(), record.gateway_id.clone());
        let mut sockets = self.sockets.lock();
        let of_gateway = sockets.of_gateway.entry(gateway).or_default();
        if *of_gateway >= most {
            return None;
        }
        *of_gateway += 1;
        sockets.last += 1;
        let number = sockets.last;
        sockets.open.insert(number, Sitting { record, mailbox });
        Some(Seat { sessions: self.clone(), number })
    }

    fn leave(&self, number: u64) {
        let mut sockets = self.sockets.lock();
        let Some(Sitting { record, .. }) = sockets.open.remove(&number) else { return };
        let gateway = (record.tenant.clone(), record.gateway_id.clone());
        if let Some(of_gateway) = sockets.of_gateway.get_mut(&gateway) {
            *of_gateway -= 1;
            if *of_gateway == 0 {
                sockets.of_gateway.remove(&gateway);
            }
        }
    }

    /// How many sockets are open.
    pub(crate) fn open(&self) -> usize {
        self.sockets.lock().open.len()
    }

    /// Resolves when no socket is open.
    pub(crate) async fn gone(&self) {
        while self.open() > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Makes `mailbox` the live socket; answers what closes with the one it replaces.
    pub(crate) fn claim(
        self: &Arc<Self>,
        record: Arc<GatewayRecord>,
        mailbox: Arc<Mailbox>,
    ) -> (Claim, Option<watch::Receiver<()>>) {
        let instance = record.instance;
        let (_ended, ended) = watch::channel(());
        let live = Live { record, mailbox: mailbox.clone(), ended, epoch: None };
        let _following = self.bus.as_ref().map(|bus| Following::new(bus, Topic::Instance(instance)));
        let mut slots = self.slots.lock();
        let slot = slots.entry(instance).or_default();
        slot.told = Mark::default();
        slot.standing.came_at = Some(clock::mono());
        let old = slot.live.replace(live);
        drop(slots);
        let replaced = old.map(|old| {
            old.mailbox.end(Ending::Replaced);
            old.ended
        });
        (Claim { sessions: self.clone(), instance, mailbox, _ended, _following }, replaced)
    }

    /// The log of an instance is drained by this socket from now on, unless somebody else claimed
    /// it while it waited for the one before.
    pub(crate) fn drains(&self, instance: InstanceId, mailbox: &Arc<Mailbox>, epoch: Epoch) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&instance) else { return };
        let live = slot.live.as_mut();
        if let Some(live) = live.filter(|live| Arc::ptr_eq(&live.mailbox, mailbox)) {
            live.epoch = Some(epoch);
            if slot.claimed > epoch {
                live.mailbox.end(Ending::Replaced);
            }
        }
    }

    /// Somebody claimed an instance: a socket that drains it under an older epoch ends.
    pub(crate) fn claimed_elsewhere(&self, instance: InstanceId, epoch: Epoch) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&instance) else { return };
        slot.claimed = slot.claimed.max(epoch);
        let live = slot.live.as_ref();
        if let Some(live) = live.filter(|live| live.epoch.is_some_and(|ours| ours < epoch)) {
            live.mailbox.end(Ending::Replaced);
        }
    }

    /// A socket that another node had is gone.
    pub(crate) fn left_elsewhere(&self, instance: InstanceId, epoch: Epoch) {
        if let Some(slot) = self.slots.lock().get_mut(&instance) {
            slot.left = slot.left.max(epoch);
        }
        self.left.notify_waiters();
    }

    /// Resolves once the socket that drained an instance before `epoch` is known to be gone.
    pub(crate) async fn former_left(&self, instance: InstanceId, epoch: Epoch) {
        loop {
            let mut told = std::pin::pin!(self.left.notified());
            told.as_mut().enable();
            if self.slots.lock().get(&instance).is_none_or(|slot| slot.left.0 + 1 >= epoch.0) {
                return;
            }
            told.await;
        }
    }

    /// Hints of an instance may have been lost.
    pub(crate) fn look_at(&self, instance: InstanceId) {
        match &mut *self.missed.lock() {
            Missed::All => {}
            Missed::Some(some) => drop(some.insert(instance)),
            nobody @ Missed::Nobody => *nobody = Missed::Some([instance].into()),
        }
        self.look.notify_one();
    }

    /// The same of all.
    pub(crate) fn look_at_all(&self) {
        *self.missed.lock() = Missed::All;
        self.look.notify_one();
    }

    /// Resolves when hints may have been lost.
    pub(crate) async fn may_have_missed(&self) {
        self.look.notified().await;
    }

    /// The instances with a live socket whose logs have to be looked at; all of them if it
    /// is `time` to.
    pub(crate) fn to_look_at(&self, time: bool) -> Vec<InstanceId> {
        let missed = std::mem::take(&mut *self.missed.lock());
        let live = self.live();
        match missed {
            _ if time => live,
            Missed::All => live,
            Missed::Some(some) => live.into_iter().filter(|instance| some.contains(instance)).collect(),
            Missed::Nobody => Vec::new(),
        }
    }

    /// Ends a claim, unless somebody else has claimed meanwhile.
    fn release(&self, instance: InstanceId, mailbox: &Arc<Mailbox>) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&instance) else { return };
        if slot.live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.mailbox, mailbox)) {
            slot.live = None;
            slot.standing.left_at = Some(clock::mono());
            if slot.gone {
                slots.remove(&instance);
            }
        }
    }

    /// Forgets an instance that is gone, as soon as its socket is.
    pub(crate) fn forget(&self, instance: InstanceId) {
        let mut slots = self.slots.lock();
        if slots.get(&instance).is_some_and(|slot| slot.live.is_some()) {
            slots.entry(instance).or_default().gone = true;
        } else {
            slots.remove(&instance);
        }
    }

    /// Counts a takeover between living peers, on whichever node the one was that drained under
    /// `epoch`; `true` if it was one too many. Each counts once, however often it is told.
    pub(crate) fn took_over(&self, instance: InstanceId, epoch: Option<Epoch>, now: Mono) -> bool {
        let mut slots = self.slots.lock();
        let slot = slots.entry(instance).or_default();
        if let Some(epoch) = epoch {
            if slot.taken_over >= epoch {
                return false;
            }
            slot.taken_over = epoch;
        }
        slot.takeovers.note(now)
    }

    /// Whether the live socket of its instance is this gateway's.
    pub(crate) fn is_connected(&self, record: &GatewayRecord) -> bool {
        let slots = self.slots.lock();
        let live = slots.get(&record.instance).and_then(|slot| slot.live.as_ref());
        live.is_some_and(|live| live.record.is_same_gateway(record))
    }

    pub(crate) fn is_live(&self, instance: InstanceId) -> bool {
        self.slots.lock().get(&instance).is_some_and(|slot| slot.live.is_some())
    }

    /// The mailbox of an instance's live socket.
    pub(crate) fn mailbox(&self, instance: InstanceId) -> Option<Arc<Mailbox>> {
        self.slots.lock().get(&instance)?.live.as_ref().map(|live| live.mailbox.clone())
    }

    /// The same, unless that is known to drain under an older epoch: it is being replaced.
    pub(crate) fn mailbox_since(&self, instance: InstanceId, epoch: Epoch) -> Option<Arc<Mailbox>> {
        let slots = self.slots.lock();
        let live = slots.get(&instance)?.live.as_ref()?;
        live.epoch.is_none_or(|ours| ours >= epoch).then(|| live.mailbox.clone())
    }

    /// Hands an entry to the live socket; `false` if there is none.
    pub(crate) fn hint(&self, instance: InstanceId, hint: Hint) -> bool {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&instance) else { return false };
        slot.told = slot.told.newest(hint.mark);
        let mailbox = slot.live.as_ref().map(|live| live.mailbox.clone());
        drop(slots);
        if let Some(mailbox) = &mailbox {
            mailbox.hint(hint);
        }
        mailbox.is_some()
    }

    /// Tells the live socket how far its log is, unless it was told.
    pub(crate) fn tell(&self, instance: InstanceId, mark: Mark) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&instance) else { return };
        // A look may have been overtaken by a hint.
        let mark = slot.told.newest(mark);
        let known = std::mem::replace(&mut slot.told, mark) == mark;
        if let Some(live) = slot.live.as_ref().filter(|_| !known) {
            live.mailbox.tell(mark);
        }
    }

    /// Instances with a live socket.
    pub(crate) fn live(&self) -> Vec<InstanceId> {
        self.slots.lock().iter().filter(|(_, slot)| slot.live.is_some()).map(|(id, _)| *id).collect()
    }

    /// Tells the live socket that an entry says something else now.
    pub(crate) fn revise(&self, instance: InstanceId, entry: Entry) {
        if let Some(mailbox) = self.mailbox(instance) {
            mailbox.revise(entry);
        }
    }

    pub(crate) fn remove(&self, instance: InstanceId, seqs: &[Seq]) {
        if let Some(mailbox) = self.mailbox(instance) {
            mailbox.remove(seqs);
        }
    }

    /// Ends every socket of one gateway, whether it said hello or not.
    pub(crate) fn end(&self, record: &GatewayRecord, why: Ending) {
        for sitting in
            self.sockets.lock().open.values().filter(|sitting| sitting.record.is_same_gateway(record))
        {
            sitting.mailbox.end(why);
        }
    }

    /// Asks every socket to end, some after the other: all of them dial another node next.
    pub(crate) async fn end_in_turn(&self, why: Ending, within: Duration) {
        let open: Vec<u64> = self.sockets.lock().open.keys().copied().collect();
        let turns = open.len().div_ceil(END_AT_ONCE).max(1);
        let pause = END_EVERY.min(within / u32::try_from(turns).unwrap_or(u32::MAX));
        for some in open.chunks(END_AT_ONCE) {
            {
                let sockets = self.sockets.lock();
                let still_open = some.iter().filter_map(|number| sockets.open.get(number));
                still_open.for_each(|sitting| sitting.mailbox.end(why));
            }
            tokio::time::sleep(pause).await;
        }
        // Whoever came in meanwhile.
        self.end_all(why);
    }

    /// Asks every socket to end.
    pub(crate) fn end_all(&self, why: Ending) {
        for sitting in self.sockets.lock().open.values() {
            sitting.mailbox.end(why);
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
