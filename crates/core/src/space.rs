//! Who may still write when the disk runs out of space.
//!
//! A file in the data directory keeps some space back. It is given up for an
//! operator who ends a culprit or frees space, and a little of it for a start.
//! From then on everybody else is refused until the space is there again:
//! whoever filled the disk would fill what was given up, too.

use crate::audit::Actor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

angelia_contract::limits! {
    /// Room for an operator's commands on a full disk: removing a tenant needs a few
    /// megabytes of log before it frees any. A disk of less than eight times this much
    /// keeps back an eighth.
    pub const RESERVE: u64 = 16 << 20, bytes "kept back on the disk for the operator";
    /// What a start writes before it serves: its address, and the head of the log. On a
    /// fuller disk that much of the reserve is given up.
    pub const START_ROOM: u64 = 1 << 20, bytes "on the disk that a start needs";
    /// A database of an older release cannot shrink until it is written anew. Up to this
    /// much a start does that in a moment; beyond it, `angelia compact` does.
    pub const REWRITTEN_AT_START: u64 = 32 << 20, bytes "of an older database rewritten by a start";
}

/// On a small disk the reserve is this part of it.
const SHARE: u64 = 8;
/// Everybody may write again once this part of the reserve is free beside it.
const HEADROOM: u64 = 4;
/// One step of a long deletion changes this part of the reserve.
const STEP: u64 = 8;

/// Who wants to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Anybody; refused while space is short.
    Ordinary,
    /// The server's own, which frees space: tried while it is short, with what there is.
    Upkeep,
    /// An operator who ends a culprit or frees space: the reserve is given up for it.
    Operator,
}

impl Class {
    /// The class of what somebody changes who is not always the operator.
    pub fn of(by: &Actor) -> Self {
        if *by == Actor::operator() { Self::Operator } else { Self::Ordinary }
    }
}

/// What there is on the disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// How large it is; 0 if that cannot be told, and then it is never found short.
    pub total: u64,
    /// What anybody could take of it.
    pub free: u64,
    /// What the reserve holds now.
    pub reserve: u64,
    /// What the write-ahead log holds: it must fit into the database.
    pub log: u64,
    /// What is free inside the database.
    pub slack: u64,
}

/// How the disk is doing, as an operator is told.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Report {
    /// What there is.
    #[serde(flatten)]
    pub disk: Disk,
    /// What the reserve should hold.
    pub reserve_wanted: u64,
    /// How large the database is.
    pub database: u64,
    /// Whether space is short: only operators may write.
    pub short: bool,
    /// Whether the database can give back what is free in it.
    pub shrinks: bool,
}

/// How space is, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceState {
    /// Everybody may write.
    Ample,
    /// Only who frees space may write.
    Short,
    /// The same, since the last commit failed for want of space. A quota is not seen by
    /// looking at the disk, so whoever may try again tries.
    Failed,
}

/// What to do with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceVerdict {
    /// Write it.
    Allow,
    /// Give the reserve up, then write it.
    GiveUp,
    /// Do not write it.
    Refuse,
}

impl Disk {
    /// How much is to be kept back on a disk of this size.
    pub fn wanted(&self) -> u64 {
        RESERVE.min(self.total / SHARE)
    }

    /// How much a start needs.
    pub fn start_room(&self) -> u64 {
        START_ROOM.min(self.wanted() / HEADROOM)
    }

    /// What may be changed in one step of a long deletion: the log of such a step
    /// fits into the reserve several times.
    pub fn step(&self) -> u64 {
        self.wanted() / STEP
    }

    fn missing(&self) -> u64 {
        self.wanted().saturating_sub(self.reserve)
    }

    /// Whether what is in the log may not fit into the database any more. Beyond that
    /// even a deletion could not be finished.
    fn log_is_stuck(&self) -> bool {
        self.total > 0 && self.free < self.log
    }

    /// Whether there is enough for everybody: the reserve could be whole again, and
    /// something is left. Space inside the database counts as far as the log has room.
    fn is_enough(&self) -> bool {
        let headroom = self.wanted() / HEADROOM;
        let after_log = self.free.saturating_sub(self.log);
        self.total == 0
            || after_log >= self.missing() + headroom
            || (after_log >= self.wanted() / 2 && self.slack >= 2 * self.wanted())
    }
}

/// Whether space is short at a start, and how much of the reserve that start takes.
/// `kept` says whether there is a reserve, be it empty: what was given up of one is
/// still for the operator, whoever starts the server again.
pub fn at_start(disk: Disk, kept: bool) -> (bool, u64) {
    let full = disk.total > 0 && disk.free < disk.start_room();
    let takes = if full { disk.start_room().saturating_sub(disk.free).min(disk.reserve) } else { 0 };
    let given_up = kept && disk.missing() > 0 && !disk.is_enough();
    (full || given_up, takes)
}

/// How space is from now on, and what becomes of a write.
pub fn judge(state: SpaceState, disk: Disk, class: Class) -> (SpaceState, SpaceVerdict) {
    if state == SpaceState::Failed && class == Class::Operator && disk.reserve > 0 {
        return (SpaceState::Short, SpaceVerdict::GiveUp);
    }
    if state != SpaceState::Ample && disk.is_enough() {
        return (SpaceState::Ample, SpaceVerdict::Allow);
    }
    let tight = state != SpaceState::Ample || disk.log_is_stuck();
    let little = disk.total > 0 && disk.free < disk.wanted() / HEADROOM;
    match class {
        Class::Operator if (tight || little) && disk.reserve > 0 => (SpaceState::Short, SpaceVerdict::GiveUp),
        Class::Ordinary if tight => (SpaceState::Short, SpaceVerdict::Refuse),
        _ if tight => (SpaceState::Short, SpaceVerdict::Allow),
        _ => (SpaceState::Ample, SpaceVerdict::Allow),
    }
}

/// Whether an operator's write is better not mixed with others: one that takes the
/// last of the space would fail them all.
pub fn goes_alone(disk: Disk) -> bool {
    disk.total > 0 && disk.free < 4 * disk.wanted()
}

/// Whether the reserve is to be made anew, or for the first time.
pub fn renews(short: bool, disk: Disk) -> bool {
    let room = disk.missing() + 2 * (disk.wanted() / HEADROOM) + disk.log;
    !short && disk.missing() > 0 && disk.free >= room
}

/// Whether the database gives back what is free in it: much of it, or anything while
/// space is short. Below that the next rows need it soon.
pub fn shrinks(short: bool, slack: u64, database: u64) -> bool {
    if short { slack > 0 } else { slack >= RESERVE / 2 && slack >= database / 4 }
}

#[cfg(test)]
mod tests {
    use super::Class::{Operator, Ordinary, Upkeep};
    use super::SpaceState::{Ample, Failed, Short};
    use super::SpaceVerdict::{Allow, GiveUp, Refuse};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk(free: u64, reserve: u64) -> Disk {
        Disk { total: 200 * MIB, free: free * MIB, reserve: reserve * MIB, ..Disk::default() }
    }

    /// How space was, the disk, who writes; how it is then, what becomes of the write.
    type Row = (SpaceState, Disk, Class, SpaceState, SpaceVerdict);

    #[test]
    fn who_may_write() {
        let log = |disk: Disk, mib: u64| Disk { log: mib * MIB, ..disk };
        let slack = |disk: Disk, mib: u64| Disk { slack: mib * MIB, ..disk };
        let rows: [Row; 25] = [
            // All is well.
            (Ample, disk(100, 16), Ordinary, Ample, Allow),
            (Ample, disk(100, 16), Operator, Ample, Allow),
            (Ample, disk(100, 0), Operator, Ample, Allow),
            // Others may use all of it; the operator finds out that little is left.
            (Ample, disk(0, 16), Ordinary, Ample, Allow),
            (Ample, disk(4, 16), Operator, Ample, Allow),
            (Ample, disk(3, 16), Operator, Short, GiveUp),
            (Ample, disk(3, 0), Operator, Ample, Allow),
            // What the log holds must fit into the database.
            (Ample, log(disk(5, 16), 6), Ordinary, Short, Refuse),
            (Ample, log(disk(5, 16), 6), Upkeep, Short, Allow),
            (Ample, log(disk(5, 16), 4), Ordinary, Ample, Allow),
            // A commit failed for want of space.
            (Failed, disk(0, 16), Ordinary, Short, Refuse),
            (Failed, disk(0, 16), Upkeep, Short, Allow),
            (Failed, disk(0, 16), Operator, Short, GiveUp),
            (Failed, disk(0, 0), Operator, Short, Allow),
            // It failed although there seems to be space: that is a quota, perhaps.
            (Failed, disk(100, 16), Ordinary, Ample, Allow),
            (Failed, disk(100, 16), Operator, Short, GiveUp),
            // Still short.
            (Short, disk(0, 16), Operator, Short, GiveUp),
            (Short, disk(3, 16), Operator, Short, GiveUp),
            (Short, disk(4, 16), Ordinary, Ample, Allow),
            // The reserve is given up: nobody else gets it.
            (Short, disk(16, 0), Ordinary, Short, Refuse),
            (Short, disk(19, 0), Ordinary, Short, Refuse),
            (Short, disk(16, 0), Operator, Short, Allow),
            (Short, disk(20, 0), Ordinary, Ample, Allow),
            // A database that cannot shrink has the space inside.
            (Short, slack(disk(9, 0), 32), Ordinary, Ample, Allow),
            (Short, slack(disk(7, 0), 99), Ordinary, Short, Refuse),
        ];
        for (state, disk, class, after, verdict) in rows {
            assert_eq!(judge(state, disk, class), (after, verdict), "{state:?} {disk:?} {class:?}");
        }
    }

    #[test]
    fn a_disk_of_unknown_size_is_never_found_short() {
        let unknown = Disk { log: MIB, ..Disk::default() };
        for class in [Ordinary, Upkeep, Operator] {
            for state in [Ample, Short, Failed] {
                assert_eq!(judge(state, unknown, class), (Ample, Allow), "what failed may work now");
            }
        }
        assert_eq!(at_start(unknown, true), (false, 0));
        assert!(!renews(false, unknown) && !goes_alone(unknown));
    }

    #[test]
    fn a_start_takes_what_it_needs_and_no_more() {
        assert_eq!(at_start(disk(1, 16), true), (false, 0));
        assert_eq!(at_start(disk(0, 16), true), (true, MIB));
        let half = Disk { free: MIB / 2, ..disk(0, 16) };
        assert_eq!(at_start(half, true), (true, MIB / 2));
        assert_eq!(at_start(disk(0, 0), false), (true, 0), "there is none to take");
    }

    #[test]
    fn a_start_leaves_what_was_given_up_to_the_operator() {
        assert_eq!(at_start(disk(16, 0), true), (true, 0));
        assert_eq!(at_start(disk(4, 15), true), (true, 0), "a start before took some");
        assert_eq!(at_start(disk(20, 0), true), (false, 0), "there is enough for all");
        assert_eq!(at_start(disk(16, 0), false), (false, 0), "there never was one");
    }

    #[test]
    fn the_reserve_is_made_where_it_leaves_room() {
        assert!(renews(false, disk(24, 0)));
        assert!(!renews(false, disk(23, 0)));
        assert!(renews(false, disk(9, 15)), "a start took some of it");
        assert!(!renews(false, disk(100, 16)), "it is whole");
        assert!(!renews(true, disk(100, 0)), "first somebody has to write again");
        assert!(!renews(false, Disk { log: 8 * MIB, ..disk(24, 0) }), "the log comes first");
        let tiny = Disk { total: 12 * MIB, ..Disk::default() };
        assert_eq!((tiny.wanted(), tiny.step(), tiny.start_room()), (3 * MIB / 2, 3 * MIB / 16, 3 * MIB / 8));
    }

    #[test]
    fn a_database_shrinks_when_it_is_worth_it() {
        assert!(shrinks(false, 100 * MIB, 200 * MIB));
        assert!(!shrinks(false, 7 * MIB, 8 * MIB), "little");
        assert!(!shrinks(false, 100 * MIB, 1_000 * MIB), "a small part");
        assert!(shrinks(true, 1, 200 * MIB), "every page counts");
        assert!(!shrinks(true, 0, 200 * MIB));
    }
}
