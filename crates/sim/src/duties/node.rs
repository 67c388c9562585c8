//! One process: what it knows of its duties, and what it has under way.

use super::Variant;
use super::store::{BOTS, lease_of};
use angelia_core::clock::Mono;
use angelia_core::cluster::{Beat, Duties, Sign};
use angelia_core::lease::LeaseToken;

/// A sign of life on its way.
pub(super) enum Flight {
    /// To the store, which has it at that time; or never.
    There { sign: Sign, began: Mono, at: Mono, fails: bool },
    /// Back, unless the answer gets lost.
    Back { beat: Option<Box<Beat>>, began: Mono, at: Mono },
}

impl Flight {
    pub(super) fn at(&self) -> Mono {
        match self {
            Self::There { at, .. } | Self::Back { at, .. } => *at,
        }
    }
}

/// The work on one bot.
pub(super) enum Work {
    /// It knows from where to read.
    Reading { token: LeaseToken, next: u64 },
    /// It has read something, which the store gets at that time.
    TakingIn { token: LeaseToken, item: u64, at: Mono },
    /// It was refused, or does not know what became of what it gave the store.
    Broken,
}

/// A process.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) duties: Duties,
    pub(super) paused: Mono,
    pub(super) flight: Option<Flight>,
    pub(super) next_sign: Mono,
    pub(super) work: [Option<Work>; BOTS],
    pub(super) leaving: bool,
}

impl Process {
    pub(super) fn new(name: String, now: Mono) -> Self {
        let mut duties = Duties::default();
        (0..BOTS).for_each(|bot| duties.add(&lease_of(bot)));
        Self {
            name,
            duties,
            paused: now,
            flight: None,
            next_sign: now,
            work: Default::default(),
            leaving: false,
        }
    }

    /// Whether it takes a bot for its own at this moment.
    pub(super) fn holds(&self, bot: usize, now: Mono, variant: Variant) -> Option<LeaseToken> {
        let now = if variant == Variant::NoClock { Mono::default() } else { now };
        self.duties.token(&lease_of(bot), now)
    }

    /// The sign that it gives now.
    pub(super) fn sign(&self, now: Mono) -> Sign {
        Sign {
            node: self.name.clone(),
            owner: 1,
            facts: String::new(),
            held: self.duties.held(),
            wanted: self.duties.wanted(),
            offered: self.duties.offered(now),
            unwanted: self.duties.unwanted(now),
        }
    }
}
