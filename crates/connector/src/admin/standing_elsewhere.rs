//! How instances stand, on whichever node their sockets are.

use super::Admin;
use crate::relay::Standing;
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::InstanceId;
use angelia_core::records::look;
use angelia_core::records::rows::InstanceRow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How some instances stand.
pub(super) struct Instances {
    /// Those with a live socket.
    there: HashSet<InstanceId>,
    /// What the store knows of those whose sockets are not here, if there are other nodes.
    elsewhere: HashMap<InstanceId, InstanceRow>,
}

impl Instances {
    /// Looks how the instances of some gateways stand.
    pub(super) async fn of(admin: &Admin, gateways: &[Arc<GatewayRecord>]) -> Result<Self> {
        let mut wanted: Vec<_> = gateways.iter().map(|record| record.instance).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let there = admin.presence.of(&wanted).await?;
        wanted.retain(|instance| !admin.presence.is_here(*instance));
        let mut elsewhere = HashMap::new();
        if admin.cluster.is_shared() && !wanted.is_empty() {
            let rows = look(&*admin.ports.records, "read how instances stand", move |view| {
                if let [one] = wanted[..] {
                    return Ok(view.get::<InstanceRow>((one,))?.into_iter().collect());
                }
                let mut rows = view.all::<InstanceRow>()?;
                rows.retain(|row| wanted.binary_search(&row.instance).is_ok());
                Ok(rows)
            });
            let rows: Vec<_> = rows.await?;
            elsewhere.extend(rows.into_iter().map(|row| (row.instance, row)));
        }
        Ok(Self { there, elsewhere })
    }

    /// Whether the socket of a gateway is open. Of one on another node it is known which instance
    /// it serves: where several gateways share one, all that may dial count.
    pub(super) fn is_connected(&self, admin: &Admin, record: &GatewayRecord) -> bool {
        if admin.presence.is_here(record.instance) {
            return admin.sessions.is_connected(record);
        }
        record.revoked_at.is_none() && self.there.contains(&record.instance)
    }

    /// What is known of the gateway behind an instance.
    pub(super) fn standing(&self, admin: &Admin, instance: InstanceId) -> Standing {
        let known = admin.sessions.standing(instance);
        match self.elsewhere.get(&instance) {
            Some(row) => Standing { idle: row.idle, habit: row.ack_habit, ..known },
            None => known,
        }
    }
}
