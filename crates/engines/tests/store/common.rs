//! What every engine's tests share: a witness of what is announced, an entry, short forms.

use super::identity::{by, gateway};
use super::open::Opened;
use angelia_core::clock;
use angelia_core::egress::Owner;
use angelia_core::inbox::{Entry, EntryKind, InstanceId, Quota, Seq, WhenFull};
use angelia_core::ports::Ledger;
use angelia_core::ports::{Hint, HintKind};
use angelia_core::records::Records;
use angelia_core::store::{IdentityStore, Inboxes, Ingest, Line, Lines, Log, NewEntry, PageSize, Upkeep};
use angelia_core::turns::WhileBusy;
use angelia_engines::local_bus::LocalBus;
use std::sync::{Arc, Mutex};

/// Who works on actions.
pub(crate) const ME: Owner = Owner(1);

#[derive(Default)]
pub(crate) struct Witness {
    pub(crate) appended: Mutex<Vec<(InstanceId, Seq)>>,
    /// What the routes of those said.
    pub(crate) while_busy: Mutex<Vec<Option<WhileBusy>>>,
    pub(crate) removed: Mutex<Vec<Seq>>,
    pub(crate) revised: Mutex<Vec<Entry>>,
    pub(crate) lines: Mutex<Vec<Line>>,
}

impl Witness {
    fn hear(&self, hint: Hint) {
        match hint {
            Hint::Log { instance, mark, entry, kind } => {
                match kind {
                    HintKind::Redriven => assert!(entry.seq <= mark.tail && mark.redrives > 0),
                    _ => assert_eq!(mark.tail, entry.seq, "a hint tells how far the log is with its entry"),
                }
                self.appended.lock().unwrap().push((instance, entry.seq));
                self.while_busy.lock().unwrap().push(entry.while_busy);
            }
            Hint::Removed { seqs, .. } => self.removed.lock().unwrap().extend(seqs),
            Hint::Revised { entry, .. } => self.revised.lock().unwrap().push(entry),
            Hint::Line(line) => self.lines.lock().unwrap().push(line),
            Hint::Reached { .. } | Hint::Room { .. } | Hint::Control(_) | Hint::Missed(_) => {
                panic!("a store has nothing of this to tell: {hint:?}")
            }
        }
    }

    /// A bus on which it listens.
    pub(crate) fn bus(self: &Arc<Self>) -> Arc<LocalBus> {
        let witness = self.clone();
        LocalBus::to(move |hint| witness.hear(hint))
    }
}

/// All ports of an engine.
pub(crate) trait Engine: Log + Ingest + Inboxes + Ledger + Records + Lines + Upkeep {}

impl<E: Log + Ingest + Inboxes + Ledger + Records + Lines + Upkeep> Engine for E {}

impl Opened {
    pub(crate) fn new() -> Self {
        Self::with(Quota::default())
    }

    /// A store that knows these tenants.
    pub(crate) async fn with_tenants(tenants: &[&str]) -> Self {
        let opened = Self::new();
        for tenant in tenants {
            opened.store.create_tenant(tenant, None, &by()).await.unwrap();
        }
        opened
    }

    /// Runs statements past the store; answers the first column of what the last one finds.
    pub(crate) fn sql(&self, statements: &str) -> Vec<String> {
        self.try_sql(statements).unwrap()
    }

    /// The one number that a statement finds.
    pub(crate) fn number(&self, statement: &str) -> i64 {
        self.sql(statement)[0].parse().unwrap()
    }

    pub(crate) async fn instance(&self, name: &str) -> InstanceId {
        let _ = self.store.create_tenant("acme", None, &by()).await;
        self.store.create_gateway(gateway("acme", name), &by()).await.unwrap().instance
    }

    pub(crate) async fn seqs(&self, instance: InstanceId) -> Vec<Seq> {
        self.store
            .load(instance, Seq(0), &[], PageSize::of(1_000))
            .await
            .unwrap()
            .iter()
            .map(|entry| entry.seq)
            .collect()
    }
}

pub(crate) fn entry(instance: InstanceId, message_id: &str) -> NewEntry {
    NewEntry {
        tenant: "acme".into(),
        instance,
        kind: EntryKind::Message,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        message_id: message_id.into(),
        session_key: "agent:main:relay:group:web-lab:ann".into(),
        body: format!("{{\"text\":\"{message_id}\"}}").into(),
        ahead: false,
        when_full: WhenFull::MakeRoom,
        while_busy: None,
        received_at: clock::wall(),
    }
}
