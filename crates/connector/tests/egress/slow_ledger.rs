//! A ledger whose answers take a while after the commit.

use angelia_core::directory::BotKey;
use angelia_core::egress::Owner;
use angelia_core::error::Result;
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, LeaseToken, Ledger, LeftOpen, NewAction, StoredAction,
};
use std::sync::Arc;
use std::time::Duration;

/// Tells late what it accepted; everything else at once.
pub(crate) struct SlowLedger(pub(crate) Arc<dyn Ledger>, pub(crate) Duration);

impl Ledger for SlowLedger {
    fn accept(&self, by: Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>> {
        Box::pin(async move {
            let accepted = self.0.accept(by, actions).await;
            tokio::time::sleep(self.1).await;
            accepted
        })
    }

    fn new_owner(&self) -> BoxFuture<'_, Result<Owner>> {
        self.0.new_owner()
    }

    fn adopt(&self, by: Owner, whose: Option<Owner>) -> BoxFuture<'_, Result<ActionId>> {
        self.0.adopt(by, whose)
    }

    fn take_over(&self, bot: &BotKey, under: LeaseToken) -> BoxFuture<'_, Result<Owner>> {
        self.0.take_over(bot, under)
    }

    fn outbox(&self, bot: &BotKey) -> BoxFuture<'_, Result<Option<Owner>>> {
        self.0.outbox(bot)
    }

    fn owners(&self, bot: &BotKey) -> BoxFuture<'_, Result<Vec<Owner>>> {
        self.0.owners(bot)
    }

    fn outcomes(&self, ids: Vec<ActionId>) -> BoxFuture<'_, Result<Vec<(ActionId, ActionOutcome)>>> {
        self.0.outcomes(ids)
    }

    fn begin(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<bool>> {
        self.0.begin(by, id)
    }

    fn postpone(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<()>> {
        self.0.postpone(by, id)
    }

    fn finish(
        &self,
        by: Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> BoxFuture<'_, Result<Vec<ActionId>>> {
        self.0.finish(by, ends)
    }

    fn leave_open(
        &self,
        by: Owner,
        id: ActionId,
        outcome: ActionOutcome,
        remark: NewAction,
    ) -> BoxFuture<'_, Result<LeftOpen>> {
        self.0.leave_open(by, id, outcome, remark)
    }

    fn unfinished(
        &self,
        by: Owner,
        after: ActionId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredAction>>> {
        self.0.unfinished(by, after, limit)
    }

    fn body(&self, id: ActionId) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        self.0.body(id)
    }

    fn note_receipt(
        &self,
        bot: &BotKey,
        message_id: &str,
        before: Option<&str>,
        receipt: &str,
    ) -> BoxFuture<'_, Result<bool>> {
        self.0.note_receipt(bot, message_id, before, receipt)
    }
}
