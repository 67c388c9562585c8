//! What a database has to do so that everything is kept in it, and the store over one: all
//! ports at once.

use super::clock::Clock;
use super::db::{Db, Sql};
use super::txn::Txn;
use super::{inbox, intake, ledger, webchat};
use angelia_core::directory::BotKey;
use angelia_core::egress;
use angelia_core::error::Result;
use angelia_core::inbox::{Epoch, InstanceId};
use angelia_core::ports::log::{Appended, NewEntry, Ownership, Settlement, TurnNote};
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, Checked, Guest, Intake, NewAction, NewLine, Posted, Taken,
    Under,
};
use angelia_core::space::Class;
use std::sync::Arc;
use std::time::Duration;

/// A store over a database.
pub struct Store<E>(pub(crate) E);

/// Whose write it is, and with that whether it is written when space is short.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// An operator's: taken before everybody else's, and never behind what they wait for.
    Operator,
    /// The server's own that frees space.
    Upkeep,
    /// The server's own, or nobody's in particular.
    Server,
    /// A tenant's.
    Tenant(Arc<str>),
    /// An instance's.
    Instance(InstanceId),
    /// What a bot received for all its tenants, or a room of the web chat.
    Bot(Arc<str>),
}

impl Owner {
    /// A bot, for what is everybody's who has it.
    pub(crate) fn bot(bot: &BotKey) -> Self {
        Self::Bot(format!("{}/{}", bot.platform, bot.bot).into())
    }

    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Operator => Class::Operator,
            Self::Upkeep => Class::Upkeep,
            Self::Server | Self::Tenant(_) | Self::Instance(_) | Self::Bot(_) => Class::Ordinary,
        }
    }
}

/// A database that runs transactions. What is hot has a default, statement by statement; a
/// database that is far away does it for many at once.
pub(crate) trait Engine: Send + Sync + Sized + 'static {
    /// Whether only one server uses it at a time.
    const IS_OWN: bool;

    /// Looks through the database beside everything else, for so long.
    fn quick_check(&self, within: Duration) -> BoxFuture<'_, Result<Checked>>;

    /// Runs `change`, of so many bytes, in a transaction; answers after the commit. It may be
    /// run again if somebody else came first, and it refuses before it writes anything. A
    /// failure undoes all of it.
    fn write<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        change: impl FnMut(&mut dyn Txn) -> Sql<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>>;

    /// Reads, at one moment.
    fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        query: impl FnMut(&mut dyn Db) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>>;

    /// By which rows grow old.
    fn clock(&self) -> &Arc<Clock>;

    /// In whose line a write for an instance waits.
    fn line_of(&self, instance: InstanceId) -> Owner {
        Owner::Instance(instance)
    }

    /// In whose line a write for actions waits.
    fn line_of_actions(&self, _actions: &[ActionId]) -> Owner {
        Owner::Server
    }

    /// Runs a rule over records as if nobody else ran one at the same time.
    fn change(
        &self,
        owner: Owner,
        what: &'static str,
        rule: impl FnMut(&mut dyn Txn) -> Sql<Result<()>> + Send + 'static,
    ) -> BoxFuture<'_, Result<()>> {
        self.write(owner, 0, what, rule)
    }

    /// A write that refuses nothing.
    fn write_all<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        mut change: impl FnMut(&mut dyn Txn) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.write(owner, bytes, what, move |txn| change(txn).map(Ok))
    }

    /// [`Log::append`](angelia_core::ports::log::Log::append).
    fn append(&self, entry: NewEntry) -> BoxFuture<'_, Result<Appended>> {
        let (owner, bytes) = (Owner::Tenant(entry.tenant.as_str().into()), entry.body.len());
        self.write(owner, bytes, "append", move |txn| intake::append_one(txn, &entry))
    }

    /// [`Ingest::take_in`](angelia_core::ports::Ingest::take_in).
    fn take_in(
        &self,
        bot: &BotKey,
        under: Option<Under>,
        intakes: Vec<Intake>,
    ) -> BoxFuture<'_, Result<Vec<Taken>>> {
        let (owner, bytes) = (Owner::bot(bot), intake::bytes(&intakes));
        let bot = bot.clone();
        self.write(owner, bytes, "take in what a bot received", move |txn| {
            intake::take_in_all(txn, &bot, under.as_ref(), &intakes)
        })
    }

    /// [`Lines::post_line`](angelia_core::ports::Lines::post_line).
    fn post(&self, line: NewLine, entry: Option<NewEntry>) -> BoxFuture<'_, Result<Posted>> {
        let (owner, bytes) = webchat::line_of_post(&line, entry.as_ref());
        self.write(owner, bytes, "post a line", move |txn| webchat::post(txn, &line, entry.as_ref()))
    }

    /// [`Lines::person`](angelia_core::ports::Lines::person).
    fn recognise(&self, key_fingerprint: [u8; 32]) -> BoxFuture<'_, Result<Option<Guest>>> {
        let now = self.clock().now();
        self.read("recognise a person", move |db| webchat::people::recognise(db, key_fingerprint, now))
    }

    /// [`Log::settle`](angelia_core::ports::log::Log::settle).
    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.write_all(self.line_of(instance), 0, "settle", move |txn| {
            inbox::settle_all(txn, instance, epoch, &settled)
        })
    }

    /// [`Log::note_turns`](angelia_core::ports::log::Log::note_turns).
    fn note_turns(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        notes: Vec<TurnNote>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.write_all(self.line_of(instance), 0, "note turns", move |txn| {
            inbox::note_turns(txn, instance, epoch, &notes)
        })
    }

    /// [`Ledger::accept`](angelia_core::ports::Ledger::accept).
    fn accept(&self, by: egress::Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>> {
        // They are of one chat, and so of one tenant.
        let owner = actions.first().map_or(Owner::Server, |it| Owner::Tenant(it.tenant.as_str().into()));
        let bytes = actions.iter().map(|action| action.body.len()).sum();
        self.write(owner, bytes, "accept actions", move |txn| ledger::accept_all(txn, by, &actions))
    }

    /// [`Ledger::begin`](angelia_core::ports::Ledger::begin).
    fn begin(&self, by: egress::Owner, id: ActionId) -> BoxFuture<'_, Result<bool>> {
        let owner = self.line_of_actions(&[id]);
        self.write_all(owner, 0, "begin an action", move |txn| ledger::begin(txn, by, id))
    }

    /// [`Ledger::finish`](angelia_core::ports::Ledger::finish).
    fn finish(
        &self,
        by: egress::Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> BoxFuture<'_, Result<Vec<ActionId>>> {
        let ids: Vec<ActionId> = ends.iter().map(|(id, _)| *id).collect();
        self.write_all(self.line_of_actions(&ids), 0, "finish actions", move |txn| {
            ledger::finish_all(txn, by, &ends)
        })
    }
}
