//! Who lives, who holds which bot, and who inherits: rows in the database that all
//! nodes share, by its clock.

use angelia_core::clock::Mono;
use angelia_core::egress::Owner;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bots, one at each provider.
pub(super) const BOTS: usize = 3;
/// How long a member that is not heard of counts as alive.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A process, for as long as it is one.
pub(super) type MemberId = u64;

struct Member {
    node: usize,
    until: Mono,
    /// As whom it works.
    owners: Vec<Owner>,
}

/// The rows.
#[derive(Default)]
pub(super) struct Members {
    living: BTreeMap<MemberId, Member>,
    /// Who was replaced, and who adopts what they left.
    estates: Vec<(Owner, MemberId)>,
    holders: [Option<MemberId>; BOTS],
    last: MemberId,
}

impl Members {
    /// A process begins.
    pub(super) fn join(&mut self, node: usize, now: Mono) -> MemberId {
        self.last += 1;
        self.living.insert(self.last, Member { node, until: now + LEASE, owners: Vec::new() });
        self.last
    }

    /// It lives on, unless it was replaced.
    pub(super) fn renew(&mut self, member: MemberId, now: Mono) -> bool {
        let row = self.living.get_mut(&member);
        row.map(|row| row.until = now + LEASE).is_some()
    }

    /// It ends, and says so.
    pub(super) fn leave(&mut self, member: MemberId, now: Mono) {
        if let Some(row) = self.living.get_mut(&member) {
            row.until = now;
        }
    }

    /// It works as this owner from now on, too; not one that was replaced.
    pub(super) fn works_as(&mut self, member: MemberId, owner: Owner) -> bool {
        let row = self.living.get_mut(&member);
        row.map(|row| row.owners.push(owner)).is_some()
    }

    /// Replaces everybody whose time is over, and takes a bot that nobody holds;
    /// answers whose actions `heir` has to adopt. `None` if it was replaced itself.
    pub(super) fn inherit(&mut self, heir: MemberId, now: Mono) -> Option<Vec<Owner>> {
        if !self.living.contains_key(&heir) {
            return None;
        }
        let over: Vec<MemberId> = self
            .living
            .iter()
            .filter(|(member, row)| **member != heir && row.until <= now)
            .map(|(member, _)| *member)
            .collect();
        for member in over {
            let row = self.living.remove(&member)?;
            // First as whom it accepts: it must not, once anything of it is somebody else's.
            self.estates.splice(0..0, row.owners.into_iter().map(|owner| (owner, heir)));
        }
        let living = &self.living;
        for (_, to) in self.estates.iter_mut().filter(|(_, to)| !living.contains_key(to)) {
            *to = heir;
        }
        for held in self.holders.iter_mut().flatten().filter(|holder| !living.contains_key(holder)) {
            *held = heir;
        }
        if let Some(free) = self.holders.iter_mut().find(|holder| holder.is_none()) {
            *free = Some(heir);
        }
        Some(self.estates.iter().filter(|(_, to)| *to == heir).map(|(owner, _)| *owner).collect())
    }

    /// Everything of these was adopted.
    pub(super) fn settled(&mut self, heir: MemberId, owners: &[Owner]) {
        self.estates.retain(|(owner, to)| *to != heir || !owners.contains(owner));
    }

    pub(super) fn holds(&self, member: MemberId, bot: usize) -> bool {
        self.holders[bot] == Some(member)
    }

    /// The node that makes the calls of a bot.
    pub(super) fn holder(&self, bot: usize) -> Option<usize> {
        self.living.get(&self.holders[bot]?).map(|row| row.node)
    }
}
