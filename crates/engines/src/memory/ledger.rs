//! The ledger in memory, and the capabilities that its actions claim.

use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::{ActionRow, Owner};
use angelia_core::error::Result;
use angelia_core::lease;
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, LeaseToken, Ledger, LeftOpen, NewAction, StoredAction,
    owner_replaced,
};
use angelia_core::vault::{Capability, CapabilityId, Use, choose_for_send};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};

/// A ledger that ends with the process. Its time is handed in.
pub struct MemoryLedger {
    tables: Mutex<Tables>,
    now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
}

#[derive(Default)]
struct Tables {
    actions: BTreeMap<ActionId, KeptAction>,
    capabilities: BTreeMap<CapabilityId, KeptCapability>,
    owners: i64,
    replaced: BTreeSet<Owner>,
    /// Who works for each bot, and since which holder of its lease.
    outboxes: BTreeMap<BotKey, (LeaseToken, Owner)>,
}

struct KeptAction {
    row: ActionRow,
    action: NewAction,
    uses: Option<Use>,
    /// How it ended; its body is gone then.
    outcome: Option<ActionOutcome>,
    receipt: Option<String>,
}

struct KeptCapability {
    capability: Capability,
    /// The action that answers.
    claimed_by: Option<ActionId>,
}

impl MemoryLedger {
    /// An empty ledger whose wall clock is `now`.
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        Self { tables: Mutex::default(), now: Box::new(now) }
    }

    /// Puts a capability into the vault.
    pub fn keep(&self, capability: Capability) {
        let kept = KeptCapability { capability, claimed_by: None };
        self.tables().capabilities.insert(kept.capability.id, kept);
    }

    /// A capability as it is now.
    pub fn capability(&self, id: CapabilityId) -> Option<Capability> {
        self.tables().capabilities.get(&id).map(|kept| kept.capability.clone())
    }

    /// How an action ended; `None` if it has not.
    pub fn outcome(&self, id: ActionId) -> Option<ActionOutcome> {
        self.tables().actions.get(&id)?.outcome.clone()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock()
    }
}

impl Ledger for MemoryLedger {
    fn new_owner(&self) -> BoxFuture<'_, Result<Owner>> {
        now(|| self.tables().new_owner())
    }

    fn adopt(&self, by: Owner, whose: Option<Owner>) -> BoxFuture<'_, Result<ActionId>> {
        as_owner(move || {
            let mut tables = self.tables();
            tables.check(by)?;
            let owners = (1..=tables.owners).map(Owner);
            tables.replaced.extend(owners.filter(|it| it.is_replaced(by, whose)));
            for kept in tables.actions.values_mut() {
                kept.row = kept.row.adopt(by, whose).unwrap_or(kept.row);
            }
            Ok(tables.actions.last_key_value().map_or(ActionId(0), |(id, _)| *id))
        })
    }

    /// Leases are kept elsewhere: of two that come with one, the larger token is the later holder.
    fn take_over(&self, bot: &BotKey, under: LeaseToken) -> BoxFuture<'_, Result<Owner>> {
        let bot = bot.clone();
        as_owner(move || {
            let mut tables = self.tables();
            let last = tables.outboxes.get(&bot).copied();
            if last.is_some_and(|(token, _)| token > under) {
                return Err(lease::lease_lost());
            }
            let by = tables.new_owner();
            tables.replaced.extend(last.map(|(_, former)| former));
            for kept in tables.actions.values_mut().filter(|kept| kept.is_of(&bot)) {
                kept.row = kept.row.adopt(by, None).unwrap_or(kept.row);
            }
            tables.outboxes.insert(bot, (under, by));
            Ok(by)
        })
    }

    fn outbox(&self, bot: &BotKey) -> BoxFuture<'_, Result<Option<Owner>>> {
        let bot = bot.clone();
        now(move || self.tables().outboxes.get(&bot).map(|(_, owner)| *owner))
    }

    fn owners(&self, bot: &BotKey) -> BoxFuture<'_, Result<Vec<Owner>>> {
        let bot = bot.clone();
        now(move || {
            let tables = self.tables();
            let open = tables.actions.values().filter(|kept| kept.is_of(&bot) && !kept.row.state.is_over());
            let owners: BTreeSet<Owner> = open.map(|kept| kept.row.owner).collect();
            owners.into_iter().collect()
        })
    }

    fn outcomes(&self, ids: Vec<ActionId>) -> BoxFuture<'_, Result<Vec<(ActionId, ActionOutcome)>>> {
        now(move || ids.into_iter().filter_map(|id| Some((id, self.outcome(id)?))).collect())
    }

    fn accept(&self, by: Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>> {
        as_owner(move || {
            let mut tables = self.tables();
            tables.check(by)?;
            let at = (self.now)();
            Ok(actions.into_iter().map(|action| tables.accept(by, action, at)).collect())
        })
    }

    fn begin(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<bool>> {
        now(move || self.tables().change(id, |row| row.begin(by, (self.now)())))
    }

    fn postpone(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<()>> {
        now(move || {
            self.tables().change(id, |row| row.postpone(by));
        })
    }

    fn finish(
        &self,
        by: Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> BoxFuture<'_, Result<Vec<ActionId>>> {
        now(move || {
            let mut tables = self.tables();
            let (mine, others): (Vec<_>, Vec<_>) = ends
                .into_iter()
                .partition(|(id, _)| tables.actions.get(id).is_none_or(|kept| kept.row.owner == by));
            mine.into_iter().for_each(|(id, outcome)| tables.finish(by, id, outcome));
            others.into_iter().map(|(id, _)| id).collect()
        })
    }

    fn leave_open(
        &self,
        by: Owner,
        id: ActionId,
        outcome: ActionOutcome,
        remark: NewAction,
    ) -> BoxFuture<'_, Result<LeftOpen>> {
        now(move || {
            let mut tables = self.tables();
            match tables.actions.get(&id).map(|kept| kept.row) {
                Some(row) if row.owner != by => LeftOpen::NotOurs,
                Some(row) if row.finish(by, outcome.state).is_some() => {
                    tables.finish(by, id, outcome);
                    LeftOpen::Remarked(tables.accept(by, remark, (self.now)()).id)
                }
                _ => LeftOpen::Before,
            }
        })
    }

    fn unfinished(
        &self,
        by: Owner,
        after: ActionId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredAction>>> {
        now(move || {
            let tables = self.tables();
            let later = tables.actions.range(ActionId(after.0 + 1)..);
            let ours = later.filter(|(_, kept)| !kept.row.state.is_over() && kept.row.owner == by);
            ours.take(limit).map(|(id, kept)| tables.stored(*id, kept)).collect()
        })
    }

    fn body(&self, id: ActionId) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        now(move || {
            let tables = self.tables();
            let kept = tables.actions.get(&id).filter(|kept| kept.outcome.is_none());
            kept.map(|kept| kept.action.body.clone())
        })
    }

    fn note_receipt(
        &self,
        bot: &BotKey,
        message_id: &str,
        before: Option<&str>,
        receipt: &str,
    ) -> BoxFuture<'_, Result<bool>> {
        let (bot, message_id, receipt) = (bot.clone(), message_id.to_owned(), receipt.to_owned());
        let before = before.map(str::to_owned);
        now(move || {
            let mut tables = self.tables();
            let sent = |kept: &&mut KeptAction| {
                let of_bot = *kept.action.platform == *bot.platform && *kept.action.bot == *bot.bot;
                let told = kept.outcome.as_ref().and_then(|it| it.message_id.as_ref());
                of_bot && told == Some(&message_id) && kept.receipt == before
            };
            let found: Vec<_> = tables.actions.values_mut().filter(sent).collect();
            let noted = !found.is_empty();
            found.into_iter().for_each(|kept| kept.receipt = Some(receipt.clone()));
            noted
        })
    }
}

impl KeptAction {
    fn is_of(&self, bot: &BotKey) -> bool {
        *self.action.platform == *bot.platform && *self.action.bot == *bot.bot
    }
}

impl Tables {
    fn new_owner(&mut self) -> Owner {
        self.owners += 1;
        Owner(self.owners)
    }

    /// One who is replaced takes nothing up and accepts nothing.
    fn check(&self, owner: Owner) -> Result<()> {
        if self.replaced.contains(&owner) { Err(owner_replaced()) } else { Ok(()) }
    }

    fn accept(&mut self, by: Owner, action: NewAction, now: UnixMillis) -> Accepted {
        let id = ActionId(self.actions.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        let uses = self.claim(id, &action, now);
        let row = ActionRow::accepted(by);
        let kept = KeptAction { row, action, uses, outcome: None, receipt: None };
        self.actions.insert(id, kept);
        Accepted { id, uses, uses_until: self.uses_until(uses) }
    }

    fn claim(&mut self, id: ActionId, action: &NewAction, now: UnixMillis) -> Option<Use> {
        let answering = action.answering.as_ref()?;
        let kept = self.capabilities.values().map(|kept| &kept.capability);
        let usable = kept.filter(|it| it.is_usable_by(action, &answering.chat_id, now));
        let usable: Vec<Capability> = usable.cloned().collect();
        let chosen = choose_for_send(&usable, answering, now)?;
        let kept = self.capabilities.get_mut(&chosen.capability)?;
        if let Some(stage) = kept.capability.stage.claim() {
            kept.capability.stage = stage;
            kept.claimed_by = Some(id);
        }
        Some(chosen)
    }

    fn change(&mut self, id: ActionId, change: impl FnOnce(ActionRow) -> Option<ActionRow>) -> bool {
        let Some(kept) = self.actions.get_mut(&id) else { return false };
        let changed = change(kept.row);
        kept.row = changed.unwrap_or(kept.row);
        changed.is_some()
    }

    fn finish(&mut self, by: Owner, id: ActionId, outcome: ActionOutcome) {
        let end = outcome.state;
        if !self.change(id, |row| row.finish(by, end)) {
            return;
        }
        let Some(kept) = self.actions.get_mut(&id) else { return };
        kept.outcome = Some(outcome);
        let Some(used) = kept.uses else { return };
        if let Some(kept) = self.capabilities.get_mut(&used.capability)
            && let Some(stage) = kept.capability.stage.release(kept.claimed_by == Some(id), end)
        {
            kept.capability.stage = stage;
            kept.claimed_by = None;
        }
    }

    fn uses_until(&self, uses: Option<Use>) -> Option<UnixMillis> {
        self.capabilities.get(&uses?.capability).map(|kept| kept.capability.expires_at)
    }

    fn stored(&self, id: ActionId, kept: &KeptAction) -> StoredAction {
        let KeptAction { row, action, uses, .. } = kept;
        StoredAction {
            id,
            tenant: action.tenant.clone(),
            instance: action.instance,
            gateway_id: action.gateway_id.clone(),
            platform: action.platform.clone(),
            bot: action.bot.clone(),
            chat_id: action.chat_id.clone(),
            thread_id: action.thread_id.clone(),
            op: action.op.clone(),
            edits: action.edits.clone(),
            bytes: action.body.len() as u64,
            received_at: action.received_at,
            uses: *uses,
            uses_until: self.uses_until(*uses),
            state: row.state,
            begun_at: row.begun_at,
            crashes: row.crashes,
        }
    }
}

/// Answers when it is asked: in memory nothing takes time.
fn now<'a, T>(act: impl FnOnce() -> T + Send + 'a) -> BoxFuture<'a, Result<T>> {
    Box::pin(async move { Ok(act()) })
}

/// The same, for what a replaced owner must not do.
fn as_owner<'a, T>(act: impl FnOnce() -> Result<T> + Send + 'a) -> BoxFuture<'a, Result<T>> {
    Box::pin(async move { act() })
}
