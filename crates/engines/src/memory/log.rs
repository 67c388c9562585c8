//! The log in memory.

use angelia_core::clock::UnixMillis;
use angelia_core::error::Result;
use angelia_core::inbox::{
    AckHabit, Entry, EntryKind, Epoch, Held, InstanceId, Mark, Quota, Seq, Usage, WhenFull, is_dead, refusal,
};
use angelia_core::ports::log::{
    Appended, Claimed, Joined, Log, LogState, NewEntry, OpenTurn, Ownership, Returned, Revised, Revision,
    Settlement, Stretch, TurnNote, Withdrawal,
};
use angelia_core::ports::{Bus, Hint, HintKind};
use angelia_core::store::{BoxFuture, Filling, Page, PageSize};
use angelia_core::turns::ConversationKey;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The key under which an event is seen once.
type Key = (String, Arc<str>, Arc<str>, Arc<str>, EntryKind);

/// A log that is gone with the process.
pub struct MemoryLog {
    quota: Quota,
    bus: Arc<dyn Bus>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    instances: BTreeMap<InstanceId, Instance>,
    seen: HashMap<Key, (InstanceId, Seq)>,
}

/// The row of an instance, and what waits for it.
#[derive(Default)]
struct Instance {
    mark: Mark,
    epoch: Epoch,
    /// The node whose socket drains it.
    node: Option<String>,
    idle: bool,
    habit: AckHabit,
    held: Held,
    waiting: BTreeMap<Seq, Waiting>,
    /// Pushed, and gone for the quota since.
    lost: HashSet<Seq>,
    turns: BTreeMap<ConversationKey, OpenTurn>,
    /// Whether those that served it were all revoked.
    revoked: bool,
}

struct Waiting {
    entry: Entry,
    ahead: bool,
    pushed: bool,
    strikes: u32,
    dead: bool,
}

impl MemoryLog {
    /// An empty log within these bounds, that tells of what it takes in.
    pub fn new(quota: Quota, bus: Arc<dyn Bus>) -> Self {
        Self { quota, bus, state: Mutex::default() }
    }

    fn removed(&self, instance: InstanceId, seqs: &[Seq]) {
        self.bus.publish(Hint::Removed { instance, seqs: seqs.to_vec() });
    }

    /// Makes an instance that a gateway serves, or that waits for its first one.
    pub fn add(&self, instance: InstanceId) {
        self.state().instances.entry(instance).or_default();
    }

    /// Whoever served an instance was revoked: nothing more is taken in for it.
    pub fn revoke(&self, instance: InstanceId) {
        let _ = self.with(instance, |of| of.revoked = true);
    }

    /// Puts a dead letter back in line, ahead of the others; `false` if there is none.
    pub fn redrive(&self, instance: InstanceId, seq: Seq) -> bool {
        let mut state = self.state();
        let Some(of) = state.instances.get_mut(&instance) else { return false };
        let Some(letter) = of.waiting.get_mut(&seq).filter(|it| it.dead) else { return false };
        (letter.dead, letter.ahead, letter.strikes) = (false, true, 0);
        let entry = letter.entry.clone();
        of.held.add(&entry.chat_id, entry.body.len());
        of.mark.redrives += 1;
        self.bus.publish(Hint::Log { instance, mark: of.mark, entry, kind: HintKind::Redriven });
        true
    }

    /// Whether the gateway of an instance said that it sleeps, and what is known of its habit.
    pub fn standing(&self, instance: InstanceId) -> Option<(bool, AckHabit)> {
        self.state().instances.get(&instance).map(|of| (of.idle, of.habit))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn with<T>(&self, instance: InstanceId, act: impl FnOnce(&mut Instance) -> T) -> Result<T> {
        let mut state = self.state();
        state.instances.get_mut(&instance).map(act).ok_or_else(refusal::no_instance)
    }

    fn take(&self, new: NewEntry) -> Result<Appended> {
        let mut state = self.state();
        let State { instances, seen } = &mut *state;
        let of = instances.get_mut(&new.instance).filter(|of| !of.revoked);
        let of = of.ok_or_else(refusal::instance_gone)?;
        let key = (new.message_id, new.chat_id.clone(), new.platform.clone(), new.bot.clone(), new.kind);
        if let Some((_, seq)) = seen.get(&key) {
            return Ok(Appended::Seen(*seq));
        }
        if new.when_full == WhenFull::Refuse {
            refusal::judge(self.quota.admits(&of.held, &new.chat_id, new.body.len()), true)?;
        }
        of.mark.tail.0 += 1;
        let entry = Entry {
            seq: of.mark.tail,
            kind: new.kind,
            platform: new.platform,
            bot: new.bot,
            chat_id: new.chat_id,
            session_key: new.session_key,
            body: new.body,
            revision: 0,
            while_busy: new.while_busy,
        };
        seen.insert(key, (new.instance, entry.seq));
        of.held.add(&entry.chat_id, entry.body.len());
        let (seq, ahead) = (entry.seq, new.ahead);
        let waiting = Waiting { entry: entry.clone(), ahead, pushed: false, strikes: 0, dead: false };
        of.waiting.insert(seq, waiting);
        let (instance, mark) = (new.instance, of.mark);
        let kind = if ahead { HintKind::Ahead } else { HintKind::Appended };
        self.bus.publish(Hint::Log { instance, mark, entry: entry.clone(), kind });
        of.enforce(&self.quota, &entry.chat_id, |gone| self.removed(instance, gone));
        Ok(Appended::New(seq))
    }

    fn change(&self, new: Revision) -> Result<Revised> {
        let mut state = self.state();
        let seen = state.find(&new.platform, &new.bot, &new.chat_id, &new.message_id);
        let Some((instance, seq, of)) = seen else { return Ok(Revised::NotWaiting) };
        let waiting = of.waiting.get_mut(&seq).filter(|it| !it.entry.is_final());
        let Some(waiting) = waiting else { return Ok(Revised::NotWaiting) };
        let revised = Revised::of(Some(instance), new.instance);
        if revised != Revised::Replaced {
            return Ok(revised);
        }
        let before = waiting.entry.body.len();
        (waiting.entry.kind, waiting.entry.body) = (new.kind, new.body);
        waiting.entry.revision += 1;
        if !waiting.dead {
            let entry = waiting.entry.clone();
            of.held.remove(&entry.chat_id, before);
            of.held.add(&entry.chat_id, entry.body.len());
            let chat = entry.chat_id.clone();
            self.bus.publish(Hint::Revised { instance, entry });
            of.enforce(&self.quota, &chat, |gone| self.removed(instance, gone));
        }
        Ok(revised)
    }
}

impl State {
    /// The entry that a message made, and the instance it is for.
    fn find(
        &mut self,
        platform: &Arc<str>,
        bot: &Arc<str>,
        chat_id: &Arc<str>,
        message_id: &str,
    ) -> Option<(InstanceId, Seq, &mut Instance)> {
        let key = |kind| (message_id.to_owned(), chat_id.clone(), platform.clone(), bot.clone(), kind);
        let kinds = [EntryKind::Message, EntryKind::Stop];
        let (instance, seq) = kinds.into_iter().find_map(|kind| self.seen.get(&key(kind)).copied())?;
        Some((instance, seq, self.instances.get_mut(&instance)?))
    }
}

impl Instance {
    /// Takes an entry out that nobody was given; `false` if there is none.
    fn withdraw(&mut self, seq: Seq) -> bool {
        let unseen = |it: &Waiting| !it.pushed && !it.entry.is_final();
        let withdraws =
            self.waiting.get(&seq).is_some_and(unseen) && self.turns.values().all(|turn| turn.seq != seq);
        withdraws && self.remove(seq).is_some()
    }

    fn remove(&mut self, seq: Seq) -> Option<Waiting> {
        let gone = self.waiting.remove(&seq)?;
        if !gone.dead {
            self.held.remove(&gone.entry.chat_id, gone.entry.body.len());
        }
        Some(gone)
    }

    /// Takes out the oldest of whoever holds most, while there is too much.
    fn enforce(&mut self, quota: &Quota, writer: &str, mut tell: impl FnMut(&[Seq])) {
        while let Some(chat) = quota.who_pays(&self.held, writer).map(str::to_owned) {
            let of_chat = |it: &&Waiting| !it.dead && *it.entry.chat_id == *chat;
            let Some(seq) = self.waiting.values().find(of_chat).map(|it| it.entry.seq) else { return };
            self.remove(seq);
            self.lost.insert(seq);
            tell(&[seq]);
        }
    }

    fn join(&mut self, epoch: Epoch, joined: Joined) -> Option<Entry> {
        let waits = |(seq, revision): &(Seq, u32)| {
            self.waiting.get(seq).is_some_and(|it| !it.dead && it.entry.revision == *revision)
        };
        if self.ownership(epoch) == Ownership::Lost || !joined.lines.iter().all(waits) {
            return None;
        }
        let ((last, _), earlier) = joined.lines.split_last()?;
        earlier.iter().for_each(|(seq, _)| drop(self.remove(*seq)));
        let taker = &mut self.waiting.get_mut(last)?.entry;
        self.held.remove(&taker.chat_id, taker.body.len());
        (taker.body, taker.revision) = (joined.body, Entry::FINAL);
        self.held.add(&taker.chat_id, taker.body.len());
        Some(taker.clone())
    }

    fn note(&mut self, note: TurnNote) {
        match note {
            TurnNote::Opened(turn) => drop(self.turns.insert(turn.conversation.clone(), turn)),
            TurnNote::Closed(key) => drop(self.turns.remove(&key)),
            // For a journal, which is not kept here.
            TurnNote::Interrupted(_) | TurnNote::Held(_) => {}
        }
    }

    fn ownership(&self, epoch: Epoch) -> Ownership {
        Ownership::of(Some(self.epoch), epoch)
    }

    fn stretch(&self, wanted: impl Fn(&Waiting) -> bool, size: PageSize) -> Stretch {
        let (mut filling, mut page) = (Filling::new(size), Page::default());
        for waiting in self.waiting.values().filter(|it| !it.dead && wanted(it)) {
            if !filling.takes(waiting.entry.body.len()) {
                page.more = true;
                break;
            }
            page.items.push(waiting.entry.clone());
        }
        Stretch { page, mark: self.mark }
    }

    /// Notes a socket's end on an entry; answers whether that was once too often.
    fn strike(&mut self, struck: Option<Seq>) -> bool {
        for (seq, waiting) in &mut self.waiting {
            waiting.strikes = if Some(*seq) == struck { waiting.strikes + 1 } else { 0 };
        }
        let Some(waiting) = struck.and_then(|seq| self.waiting.get_mut(&seq)) else { return false };
        if waiting.dead || !is_dead(waiting.strikes) {
            return false;
        }
        waiting.dead = true;
        self.held.remove(&waiting.entry.chat_id, waiting.entry.body.len());
        true
    }
}

/// An answer that is there at once.
fn now<'a, T: Send + 'a>(answer: Result<T>) -> BoxFuture<'a, Result<T>> {
    Box::pin(std::future::ready(answer))
}

impl Log for MemoryLog {
    fn append(&self, entry: NewEntry) -> BoxFuture<'_, Result<Appended>> {
        now(self.take(entry))
    }

    fn revise(&self, revision: Revision) -> BoxFuture<'_, Result<Revised>> {
        now(self.change(revision))
    }

    fn withdraw(&self, withdrawal: Withdrawal) -> BoxFuture<'_, Result<bool>> {
        let Withdrawal { platform, bot, chat_id, message_id } = withdrawal;
        let mut state = self.state();
        let gone = state
            .find(&platform, &bot, &chat_id, &message_id)
            .and_then(|(instance, seq, of)| of.withdraw(seq).then_some((instance, seq)));
        if let Some((instance, seq)) = gone {
            self.removed(instance, &[seq]);
        }
        now(Ok(gone.is_some()))
    }

    fn claim(&self, instance: InstanceId, node: &str) -> BoxFuture<'_, Result<Claimed>> {
        now(self.with(instance, |of| {
            of.epoch.0 += 1;
            of.idle = false;
            let former = of.node.replace(node.to_owned());
            Claimed { epoch: of.epoch, mark: of.mark, usage: of.held.all(), former }
        }))
    }

    fn leave(&self, instance: InstanceId, epoch: Epoch) -> BoxFuture<'_, Result<Ownership>> {
        let left = |of: &mut Instance| {
            let ours = of.epoch == epoch;
            of.node = of.node.take().filter(|_| !ours);
            if ours { Ownership::Ours } else { Ownership::Lost }
        };
        now(Ok(self.with(instance, left).unwrap_or(Ownership::Lost)))
    }

    fn load(
        &self,
        instance: InstanceId,
        after: Seq,
        pass_over: &[ConversationKey],
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let passed = |it: &Waiting| pass_over.iter().any(|key| key.holds(&it.entry));
        let wanted = |it: &Waiting| it.entry.seq > after && !it.ahead && !passed(it);
        now(Ok(self.with(instance, |of| of.stretch(wanted, size)).unwrap_or_default()))
    }

    fn load_conversation(
        &self,
        instance: InstanceId,
        conversation: &ConversationKey,
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let wanted = |it: &Waiting| conversation.holds(&it.entry);
        now(Ok(self.with(instance, |of| of.stretch(wanted, size)).unwrap_or_default()))
    }

    fn join(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        joined: Joined,
    ) -> BoxFuture<'_, Result<Option<Entry>>> {
        now(Ok(self.with(instance, |of| of.join(epoch, joined)).ok().flatten()))
    }

    fn note_turns(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        notes: Vec<TurnNote>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        let note = |of: &mut Instance| {
            let ownership = of.ownership(epoch);
            if ownership == Ownership::Ours {
                notes.into_iter().for_each(|note| of.note(note));
            }
            ownership
        };
        now(Ok(self.with(instance, note).unwrap_or(Ownership::Lost)))
    }

    fn open_turns(&self, instance: InstanceId) -> BoxFuture<'_, Result<Vec<OpenTurn>>> {
        let mut open: Vec<OpenTurn> =
            self.with(instance, |of| of.turns.values().cloned().collect()).unwrap_or_default();
        open.sort_by_key(|turn| turn.seq);
        now(Ok(open))
    }

    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> BoxFuture<'_, Result<Stretch>> {
        now(Ok(self.with(instance, |of| of.stretch(|it| it.ahead, size)).unwrap_or_default()))
    }

    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        let settle = |of: &mut Instance| {
            for settlement in settled {
                if of.remove(settlement.seq).is_none() {
                    of.lost.remove(&settlement.seq);
                }
            }
            of.ownership(epoch)
        };
        now(Ok(self.with(instance, settle).unwrap_or(Ownership::Lost)))
    }

    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> BoxFuture<'_, Result<Vec<Seq>>> {
        let settle = |of: &mut Instance| {
            let mut settled = Vec::new();
            for seq in seqs {
                if of.waiting.get(&seq).is_some_and(|it| it.pushed) && of.remove(seq).is_some() {
                    settled.push(seq);
                }
            }
            settled
        };
        now(Ok(self.with(instance, settle).unwrap_or_default()))
    }

    fn note_pushed(&self, instance: InstanceId, pushed: Vec<(Seq, UnixMillis)>) -> BoxFuture<'_, Result<()>> {
        let note = |of: &mut Instance| {
            for (seq, _) in pushed {
                of.waiting.entry(seq).and_modify(|it| it.pushed = true);
            }
        };
        let _ = self.with(instance, note);
        now(Ok(()))
    }

    fn returned(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        returned: Returned,
    ) -> BoxFuture<'_, Result<Option<Seq>>> {
        let note = |of: &mut Instance| {
            for (seq, _) in &returned.entries {
                of.waiting.entry(*seq).and_modify(|it| it.pushed = true);
            }
            let dead = of.ownership(epoch) == Ownership::Ours && of.strike(returned.strike);
            returned.strike.filter(|_| dead)
        };
        let dead = self.with(instance, note).ok().flatten();
        if let Some(seq) = dead {
            self.removed(instance, &[seq]);
        }
        now(Ok(dead))
    }

    fn set_idle(&self, instance: InstanceId, epoch: Epoch, idle: bool) -> BoxFuture<'_, Result<Ownership>> {
        let flip = |of: &mut Instance| {
            let ownership = of.ownership(epoch);
            of.idle = if ownership == Ownership::Ours { idle } else { of.idle };
            ownership
        };
        now(Ok(self.with(instance, flip).unwrap_or(Ownership::Lost)))
    }

    fn set_habit(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        habit: AckHabit,
    ) -> BoxFuture<'_, Result<Ownership>> {
        let learn = |of: &mut Instance| {
            let ownership = of.ownership(epoch);
            of.habit = if ownership == Ownership::Ours { habit } else { of.habit };
            ownership
        };
        now(Ok(self.with(instance, learn).unwrap_or(Ownership::Lost)))
    }

    fn states(&self, instances: Vec<InstanceId>) -> BoxFuture<'_, Result<Vec<LogState>>> {
        let state = self.state();
        let of = |instance: InstanceId| {
            let of = state.instances.get(&instance)?;
            Some(LogState { instance, mark: of.mark, epoch: of.epoch, node: of.node.clone() })
        };
        now(Ok(instances.into_iter().filter_map(of).collect()))
    }

    fn usage(&self, instance: InstanceId) -> BoxFuture<'_, Result<Usage>> {
        now(Ok(self.with(instance, |of| of.held.all()).unwrap_or_default()))
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<InstanceId>>> {
        let state = self.state();
        let waits = state.instances.iter().filter(|(_, of)| of.held.all().entries > 0);
        now(Ok(waits.map(|(id, _)| *id).collect()))
    }
}
