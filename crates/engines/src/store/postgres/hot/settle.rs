//! Letting many entries go that were acknowledged.

use super::NOW;
use super::given::{Given, numbers, texts};
use crate::store::footprint::ENTRY_LENGTHS;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::log::Settlement;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Takes entries out of inboxes that are locked. What was gone is left.
pub(super) static SETTLE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH given AS (
             SELECT * FROM unnest($1, $2, $3, $4) AS g (instance, seq, settled_by, pushed)
         ), gone AS (
             DELETE FROM inbox USING given g WHERE inbox.instance = g.instance AND inbox.seq = g.seq
             RETURNING inbox.instance, inbox.seq, inbox.journal, length(body) AS bytes, dead_at, settled_by, pushed,
                       entry_footprint({ENTRY_LENGTHS}) AS footprint
         ), closed AS (
             UPDATE journal j SET settled_at = {NOW}, outcome = g.settled_by,
                                  pushed_at = coalesce(j.pushed_at, g.pushed),
                                  pushes = j.pushes + CASE WHEN g.pushed IS NULL THEN 0 ELSE 1 END
             FROM gone g WHERE j.id = g.journal
         ), counted AS (
             UPDATE instances i SET waiting = greatest(i.waiting - g.entries, 0),
                                    bytes = greatest(i.bytes - g.bytes, 0)
             FROM (SELECT instance, count(*) AS entries, sum(bytes) AS bytes FROM gone WHERE dead_at IS NULL
                   GROUP BY instance) g
             WHERE i.instance = g.instance
         ), freed AS (
             SELECT tenant, CAST(sum(footprint) AS BIGINT) AS bytes FROM gone JOIN instances USING (instance)
             GROUP BY tenant
         ), kept AS (
             UPDATE tenant_usage u SET bytes = greatest(u.bytes - f.bytes, 0)
             FROM freed f WHERE u.tenant = f.tenant
         )
         SELECT instance, seq FROM gone"
    )
});

/// Entries, column by column.
#[derive(Default)]
pub(super) struct Columns {
    instances: Vec<i64>,
    seqs: Vec<i64>,
    by: Vec<Cow<'static, str>>,
    pushed: Vec<Option<i64>>,
}

impl Columns {
    pub(super) fn push(&mut self, instance: InstanceId, settled: &[Settlement]) {
        for settlement in settled {
            self.instances.push(instance.0);
            self.seqs.push(settlement.seq.0);
            self.by.push(settlement.by.as_str().into());
            self.pushed.push(settlement.pushed_at.map(|at| at.0));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    pub(super) fn given(&self) -> Vec<Given<'_>> {
        vec![numbers(&self.instances), numbers(&self.seqs), texts(&self.by), numbers(&self.pushed)]
    }
}
