//! How a process lives on, and takes up what others left: each step is a commit of
//! its own, before and after which anything may happen.
//!
//! What is adopted is adopted as a new owner. What the process itself accepts at
//! the same time is told from it by that.

use super::Variant;
use super::judge::Asked;
use super::process::{ChatKey, Job, Process, chat, edited};
use super::world::Outside;
use angelia_core::egress::delivery::{Claimed, DeliveryId, EgressTimings, Event, Left};
use angelia_core::egress::{ActionState, Owner, REMARK, is_suspect};
use angelia_core::ports::{ActionId, StoredAction};
use std::collections::BTreeMap;
use std::time::Duration;

/// Unfinished actions read at once: few, so that there are pages.
const PAGE: usize = 4;
/// How often a process shows that it lives.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What a process has the database do about itself and others.
pub(super) enum Step {
    /// It gets the owner as whom it accepts.
    Start,
    Renew,
    /// It replaces whoever is not heard of.
    Inherit,
    /// It gets an owner as whom it adopts what these left.
    Owner(Vec<Owner>),
    /// It adopts what the first of these left.
    Adopt {
        by: Owner,
        whose: Vec<Owner>,
        estates: Vec<Owner>,
    },
    /// It reads what that was.
    Load {
        by: Owner,
        found: Vec<StoredAction>,
        estates: Vec<Owner>,
    },
    /// It has read it.
    Loaded {
        by: Owner,
        found: Vec<StoredAction>,
        estates: Vec<Owner>,
    },
    /// Everything of these is adopted.
    Settle(Vec<Owner>),
}

impl Process {
    /// Shows that it lives, now and then, and looks for those who do not.
    pub(super) fn look(&mut self, outside: &Outside) {
        if outside.now.since(self.looked) < LOOK_EVERY {
            return;
        }
        self.looked = outside.now;
        self.jobs.push(Job::Member(Step::Renew));
        if !self.inherits && !self.stopping {
            self.inherits = true;
            self.jobs.push(Job::Member(Step::Inherit));
        }
    }

    /// Takes a step; the next one is another job.
    pub(super) fn take(&mut self, step: Step, outside: &mut Outside) {
        let next = match step {
            Step::Start => self.begin(outside),
            Step::Renew => {
                self.replaced |= outside.store.renew(self.member, outside.now) == Some(false);
                None
            }
            Step::Inherit => self.inherit(outside),
            Step::Owner(estates) => match outside.store.new_owner(self.member) {
                Some(by) => Some(Step::Adopt { by, whose: estates.clone(), estates }),
                None => Some(Step::Owner(estates)),
            },
            Step::Adopt { by, whose, estates } => Some(self.adopt(by, whose, estates, outside)),
            Step::Load { by, found, estates } => Some(load(by, found, estates, outside)),
            Step::Loaded { by, found, estates } => {
                self.take_up(by, found, outside);
                Some(Step::Settle(estates))
            }
            Step::Settle(estates) => match outside.store.settled(self.member, &estates) {
                Some(()) => {
                    self.inherits = false;
                    None
                }
                None => Some(Step::Settle(estates)),
            },
        };
        self.jobs.extend(next.map(Job::Member));
    }

    fn begin(&mut self, outside: &mut Outside) -> Option<Step> {
        let Some(own) = outside.store.new_owner(self.member) else { return Some(Step::Start) };
        self.own = Some(own);
        if outside.variant == Variant::ResumeEverything {
            let found = outside.store.everything(own);
            return Some(Step::Loaded { by: own, found, estates: Vec::new() });
        }
        Some(Step::Inherit)
    }

    fn inherit(&mut self, outside: &mut Outside) -> Option<Step> {
        let inherited = outside.store.inherit(self.member, outside.now);
        self.replaced |= inherited == Some(None);
        let Some(estates) = inherited.flatten() else {
            self.inherits = false;
            return None;
        };
        for (bot, holds) in self.holds.iter_mut().enumerate() {
            *holds = outside.store.members.holds(self.member, bot);
        }
        self.inherits = !estates.is_empty();
        self.inherits.then_some(Step::Owner(estates))
    }

    fn adopt(&self, by: Owner, mut whose: Vec<Owner>, estates: Vec<Owner>, outside: &mut Outside) -> Step {
        if let Some(left) = whose.first().copied() {
            let mut done = false;
            let heard = outside.store.adopt(by, left, &mut done);
            if done {
                outside.trace(|| {
                    format!("node {}/{}: {by:?} adopts what {left:?} left", self.node, self.member)
                });
                outside.judge.adopted(by, left);
            }
            whose.drain(..usize::from(heard.is_some()));
        }
        if whose.is_empty() {
            return Step::Load { by, found: Vec::new(), estates };
        }
        Step::Adopt { by, whose, estates }
    }

    /// Gives what others left to the queues of its chats.
    fn take_up(&mut self, by: Owner, found: Vec<StoredAction>, outside: &mut Outside) {
        let mut chats = BTreeMap::<ChatKey, Vec<(DeliveryId, Left)>>::new();
        for stored in found {
            let asked = asked(&stored);
            let left = left(&stored, asked, outside);
            let id = self.put(asked, false, by, Some(stored.id));
            chats.entry(chat(asked)).or_default().push((id, left));
        }
        for (key, left) in chats {
            self.happened(key, Event::Adopted(left), outside);
        }
    }
}

fn load(by: Owner, mut found: Vec<StoredAction>, estates: Vec<Owner>, outside: &mut Outside) -> Step {
    let after = found.last().map_or(ActionId(0), |stored| stored.id);
    match outside.store.unfinished(by, after, PAGE) {
        Some(page) if page.is_empty() => Step::Loaded { by, found, estates },
        page => {
            found.extend(page.unwrap_or_default());
            Step::Load { by, found, estates }
        }
    }
}

/// What a gateway asked for, as the ledger has it.
fn asked(stored: &StoredAction) -> Asked {
    let number = |word: &str| word.parse().unwrap_or_default();
    Asked {
        request: 0,
        text: 0,
        instance: number(&stored.tenant),
        generation: stored.gateway_id.as_deref().and_then(|id| id.parse().ok()).unwrap_or_default(),
        bot: number(&stored.bot),
        edits: stored.edits.as_deref().and_then(|id| id.parse().ok()).map(ActionId),
        // On which message is the judge's to know.
        remark_on: (stored.op == REMARK).then_some(ActionId(0)),
    }
}

/// What is known of an action before its text is read, as the connector reckons it.
fn left(stored: &StoredAction, asked: Asked, outside: &Outside) -> Left {
    let age = outside.store.age(stored.received_at).at_least;
    Left {
        edits: asked.edits.map(|message| edited(asked, message)),
        follow_up: false,
        claimed: Claimed::default(),
        in_doubt: asked.in_doubt(),
        remark: asked.remark_on.is_some(),
        suspect: is_suspect(stored.state, stored.crashes),
        sending: stored.state == ActionState::Sending,
        begun: stored.begun_at.map(|at| outside.store.age(at).at_most),
        left: EgressTimings::default().queued_for.saturating_sub(age),
        untouched: false,
    }
}
