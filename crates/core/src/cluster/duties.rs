//! What a node knows of what is its own to do: which leases it holds, for how long by its own
//! clock, and which work has to stop before another node may begin.

use super::{Beat, TERM};
use crate::clock::Mono;
use crate::lease::{Lease, LeaseToken};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long what no other node took is not given up again: each time its work stands still for a
/// moment.
const UNWANTED_FOR: Duration = Duration::from_secs(300);

/// How long others may take what was given up for them: its work has to stop first.
const OFFERED_FOR: Duration = Duration::from_secs(10);

/// What became of something that this node gave up so that others have it.
#[derive(Clone, Copy, Debug)]
enum GivenUp {
    /// It was offered then.
    Offered(Mono),
    /// None of them took it, so it came back then.
    Unwanted(Mono),
}

/// Whose something is just now.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stand {
    /// Not this node's, as far as it knows.
    Elsewhere,
    /// This node's.
    Ours(Lease),
    /// This node's until its work has stopped: another one is to have it.
    Ending(Lease),
    /// Lost while its work went on, which has to stop.
    Lost,
    /// To be given back.
    Stopped(Lease),
}

/// One thing that only one node does at a time.
#[derive(Clone, Debug)]
struct Duty {
    stand: Stand,
    /// How many are at work on it.
    working: usize,
    /// Whether it is not to be done any more.
    retired: bool,
}

impl Duty {
    fn lease(&self) -> Option<&Lease> {
        match &self.stand {
            Stand::Ours(lease) | Stand::Ending(lease) | Stand::Stopped(lease) => Some(lease),
            Stand::Elsewhere | Stand::Lost => None,
        }
    }

    /// Changes whose it is. Where nobody is at work, its end needs nobody's word.
    fn turn(&mut self, stand: Stand) {
        self.stand = match stand {
            Stand::Ending(lease) if self.working == 0 => Stand::Stopped(lease),
            Stand::Lost if self.working == 0 => Stand::Elsewhere,
            stand => stand,
        };
    }

    fn lose(&mut self) {
        match self.stand {
            Stand::Ours(_) | Stand::Ending(_) => self.turn(Stand::Lost),
            Stand::Stopped(_) => self.stand = Stand::Elsewhere,
            Stand::Elsewhere | Stand::Lost => {}
        }
    }

    fn end(&mut self) {
        if let Stand::Ours(lease) = &self.stand {
            let lease = lease.clone();
            self.turn(Stand::Ending(lease));
        }
    }

    /// Whether nothing of it is left here, and nothing is to come.
    fn is_done_with(&self) -> bool {
        self.retired && self.working == 0 && self.stand == Stand::Elsewhere
    }
}

/// Everything that only one node does at a time, as one node sees it.
#[derive(Clone, Debug, Default)]
pub struct Duties {
    all: BTreeMap<String, Duty>,
    /// Until when what is held is held, by this node's own clock. `None` for one that is alone.
    held_until: Option<Mono>,
    /// Whether the node leaves: it takes nothing more.
    leaving: bool,
    /// What became of what it gave up for others.
    given_up: BTreeMap<String, GivenUp>,
    /// The nodes there were when that began. A new one may want everything.
    others: BTreeSet<String>,
}

impl Duties {
    /// Something that this node would do.
    pub fn add(&mut self, name: &str) {
        let new = Duty { stand: Stand::Elsewhere, working: 0, retired: false };
        self.all.entry(name.to_owned()).or_insert(new).retired = false;
    }

    /// Something that is not to be done any more: it is given back when its work has stopped.
    pub fn remove(&mut self, name: &str) {
        if let Some(duty) = self.all.get_mut(name) {
            duty.retired = true;
            duty.end();
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        self.all.retain(|_, duty| !duty.is_done_with());
        self.given_up.retain(|name, _| self.all.contains_key(name));
    }

    /// Whether it is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Somebody begins to work on what is this node's; `None` if it is not. The token goes along
    /// with what is written.
    pub fn begin(&mut self, name: &str, now: Mono) -> Option<LeaseToken> {
        if self.is_past(now) {
            return None;
        }
        let duty = self.all.get_mut(name)?;
        let Stand::Ours(lease) = &duty.stand else { return None };
        duty.working += 1;
        Some(lease.token)
    }

    /// Whether work has to stop, also by the node's own clock.
    pub fn is_over(&self, name: &str, now: Mono) -> bool {
        self.is_past(now) || !self.is_ours(name)
    }

    /// Whether it is this node's, as far as it was told.
    fn is_ours(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(|duty| matches!(duty.stand, Stand::Ours(_)))
    }

    /// Whether what was held is not any more: no sign of life was answered in time.
    fn is_past(&self, now: Mono) -> bool {
        self.held_until.is_some_and(|until| now >= until)
    }

    /// Whoever [began](Self::begin) has stopped: nothing of it goes on here.
    pub fn stopped(&mut self, name: &str) {
        if let Some(duty) = self.all.get_mut(name) {
            duty.working = duty.working.saturating_sub(1);
            let stand = duty.stand.clone();
            duty.turn(stand);
        }
        self.tidy();
    }

    /// The token of what is this node's at this moment, also by its own clock: a node that stood
    /// still knows that it does not know.
    pub fn token(&self, name: &str, now: Mono) -> Option<LeaseToken> {
        if self.is_past(now) {
            return None;
        }
        match &self.all.get(name)?.stand {
            Stand::Ours(lease) | Stand::Ending(lease) => Some(lease.token),
            Stand::Elsewhere | Stand::Lost | Stand::Stopped(_) => None,
        }
    }

    /// The leases that are to be renewed.
    pub fn held(&self) -> Vec<Lease> {
        self.all.values().filter_map(Duty::lease).cloned().collect()
    }

    /// What the node would hold: not what has to stop here first.
    pub fn wanted(&self) -> Vec<String> {
        let is_wanted =
            |duty: &Duty| !duty.retired && matches!(duty.stand, Stand::Elsewhere | Stand::Ours(_));
        let all = self.all.iter().filter(|(_, duty)| !self.leaving && is_wanted(duty));
        all.map(|(name, _)| name.clone()).collect()
    }

    /// Those of them that it does not hold.
    pub fn missing(&self) -> Vec<String> {
        self.wanted().into_iter().filter(|name| !self.is_ours(name)).collect()
    }

    /// What was given up for others lately, and came back because none of them took it.
    pub fn unwanted(&self, now: Mono) -> Vec<String> {
        let is_unwanted = |it: &GivenUp| matches!(it, GivenUp::Unwanted(at) if now.since(*at) < UNWANTED_FOR);
        self.given_up.iter().filter(|(_, it)| is_unwanted(it)).map(|(name, _)| name.clone()).collect()
    }

    /// What was given up for others just now: they come first.
    pub fn offered(&self, now: Mono) -> Vec<String> {
        let is_offered = |it: &GivenUp| matches!(it, GivenUp::Offered(at) if now.since(*at) < OFFERED_FOR);
        self.given_up.iter().filter(|(_, it)| is_offered(it)).map(|(name, _)| name.clone()).collect()
    }

    /// Leases whose work has stopped.
    pub fn to_give_back(&self) -> Vec<Lease> {
        let stopped = |duty: &Duty| match &duty.stand {
            Stand::Stopped(lease) => Some(lease.clone()),
            _ => None,
        };
        self.all.values().filter_map(stopped).collect()
    }

    /// One was given back.
    pub fn gave_back(&mut self, name: &str) {
        if let Some(duty) = self.all.get_mut(name)
            && matches!(duty.stand, Stand::Stopped(_))
        {
            duty.stand = Stand::Elsewhere;
        }
        self.tidy();
    }

    /// A lease was taken.
    pub fn take(&mut self, lease: Lease) {
        if let Some(duty) = self.all.get_mut(&lease.name)
            && duty.stand == Stand::Elsewhere
        {
            duty.stand = Stand::Ours(lease);
        }
    }

    /// A sign of life that was begun at that time was answered. What is held is held for the term
    /// from its beginning: the store counted it from later on.
    pub fn learn(&mut self, beat: &Beat, began: Mono) {
        let others: BTreeSet<String> = beat.nodes.iter().map(|row| row.node.clone()).collect();
        if !others.is_subset(&self.others) {
            self.given_up.clear();
        }
        self.others = others;
        for (name, duty) in &mut self.all {
            match beat.held.iter().find(|lease| lease.name == *name) {
                Some(lease) if duty.lease().is_none_or(|ours| ours.token == lease.token) => {
                    if duty.stand == Stand::Elsewhere {
                        duty.stand = Stand::Ours(lease.clone());
                        if let Some(GivenUp::Offered(at)) = self.given_up.remove(name)
                            && began.since(at) < OFFERED_FOR
                        {
                            self.given_up.insert(name.clone(), GivenUp::Unwanted(began));
                        }
                    }
                }
                _ => duty.lose(),
            }
            if duty.retired || self.leaving {
                // It was taken just when that was said.
                duty.end();
            }
        }
        self.tidy();
        self.held_until = Some(began + TERM);
        if let Some(name) = &beat.give_up
            && let Some(duty) = self.all.get_mut(name)
        {
            duty.end();
            self.given_up.insert(name.clone(), GivenUp::Offered(began));
        }
    }

    /// Until when what is held is held.
    pub fn held_until(&self) -> Option<Mono> {
        self.held_until
    }

    /// What is held is lost once its time is over and no sign of life was answered.
    pub fn pass_time(&mut self, now: Mono) {
        if self.is_past(now) {
            self.all.values_mut().for_each(Duty::lose);
        }
    }

    /// The node leaves: everything ends as soon as its work has stopped, and nothing is taken.
    pub fn leave(&mut self) {
        self.leaving = true;
        self.all.values_mut().for_each(Duty::end);
    }

    /// Whether work goes on.
    pub fn is_at_work(&self) -> bool {
        self.all.values().any(|duty| duty.working > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixMillis;
    use crate::records::rows::NodeRow;

    fn lease(token: i64) -> Lease {
        Lease { name: "bot".into(), node: "a".into(), token: LeaseToken(token), until: None }
    }

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn answered(held: Vec<Lease>) -> Beat {
        Beat { held, ..Beat::default() }
    }

    fn holding(token: i64) -> Duties {
        let mut duties = Duties::default();
        duties.add("bot");
        duties.learn(&answered(vec![lease(token)]), at(0));
        duties
    }

    #[test]
    fn what_is_lost_is_not_wanted_again_before_its_work_has_stopped() {
        let mut duties = holding(3);
        assert_eq!((duties.begin("bot", at(1)), duties.is_over("bot", at(1))), (Some(LeaseToken(3)), false));
        duties.learn(&answered(Vec::new()), at(1));
        assert!(duties.is_over("bot", at(1)) && duties.is_at_work() && duties.wanted().is_empty());
        assert_eq!(duties.token("bot", at(1)), None, "nothing is written meanwhile");
        duties.stopped("bot");
        assert_eq!((duties.wanted(), duties.is_at_work()), (vec!["bot".to_owned()], false));
    }

    #[test]
    fn what_ends_is_held_until_everybody_has_stopped() {
        let mut duties = holding(3);
        assert!(duties.begin("bot", at(1)).is_some() && duties.begin("bot", at(1)).is_some());
        duties.learn(&Beat { give_up: Some("bot".into()), ..answered(vec![lease(3)]) }, at(1));
        assert!(
            duties.is_over("bot", at(1))
                && duties.begin("bot", at(1)).is_none()
                && duties.wanted().is_empty()
        );
        duties.stopped("bot");
        assert!(
            duties.token("bot", at(1)).is_some() && duties.to_give_back().is_empty(),
            "one is still at it"
        );
        duties.stopped("bot");
        assert!(duties.token("bot", at(1)).is_none() && duties.held() == [lease(3)]);
        assert_eq!(duties.to_give_back(), [lease(3)]);
        duties.gave_back("bot");
        assert_eq!(duties.missing(), ["bot"]);
    }

    #[test]
    fn what_nobody_had_begun_ends_at_once() {
        let mut duties = holding(3);
        duties.leave();
        assert_eq!(duties.to_give_back(), [lease(3)]);
        duties.gave_back("bot");
        assert!(duties.wanted().is_empty(), "who leaves takes nothing");
    }

    #[test]
    fn what_is_not_to_be_done_any_more_is_given_back_and_forgotten() {
        let mut duties = holding(3);
        assert!(duties.begin("bot", at(1)).is_some());
        duties.remove("bot");
        assert!(duties.is_over("bot", at(1)) && duties.wanted().is_empty() && duties.held() == [lease(3)]);
        duties.learn(&answered(vec![lease(3)]), at(1));
        duties.stopped("bot");
        assert_eq!(duties.to_give_back(), [lease(3)]);
        duties.gave_back("bot");
        assert!(!duties.contains("bot"));
        duties.add("bot");
        assert_eq!(duties.missing(), ["bot"], "it is to be done again");
        duties.remove("bot");
        assert!(!duties.contains("bot"), "nobody had begun");
    }

    #[test]
    fn one_that_is_wanted_again_before_it_was_given_back_is() {
        let mut duties = holding(3);
        duties.begin("bot", at(1));
        duties.remove("bot");
        duties.add("bot");
        duties.stopped("bot");
        duties.gave_back("bot");
        assert_eq!(duties.missing(), ["bot"]);
    }

    #[test]
    fn by_its_own_clock_a_node_holds_nothing_past_the_term() {
        let mut duties = holding(3);
        duties.begin("bot", at(1));
        let end = at(0) + TERM;
        assert!(duties.token("bot", end.before(Duration::from_millis(1))).is_some());
        assert_eq!(duties.token("bot", end), None, "although nobody told it");
        assert!(duties.is_over("bot", end) && duties.begin("bot", end).is_none());
        duties.pass_time(end);
        assert!(duties.is_over("bot", at(1)));
        duties.learn(&answered(vec![lease(3)]), at(9));
        assert!(duties.is_over("bot", at(1)), "work that was told to stop stops");
    }

    #[test]
    fn one_that_is_alone_holds_what_it_took_for_good() {
        let mut duties = Duties::default();
        duties.add("bot");
        assert_eq!(duties.missing(), ["bot"]);
        duties.take(lease(1));
        duties.pass_time(at(1_000_000));
        assert_eq!(duties.token("bot", at(1_000_000)), Some(LeaseToken(1)));
    }

    #[test]
    fn what_nobody_else_takes_is_not_given_up_again_and_again() {
        let row = |node: &str| NodeRow {
            node: node.into(),
            owner: 0,
            started_at: UnixMillis(0),
            until: UnixMillis(0),
            takes: true,
            facts: String::new(),
        };
        let beat = |held: Vec<Lease>, give_up: Option<&str>, nodes: &[&str]| Beat {
            held,
            give_up: give_up.map(str::to_owned),
            nodes: nodes.iter().map(|node| row(node)).collect(),
            ..Beat::default()
        };
        let mut duties = Duties::default();
        duties.add("bot");
        duties.learn(&beat(vec![lease(3)], Some("bot"), &["a", "b"]), at(1));
        assert!(duties.unwanted(at(1)).is_empty() && duties.to_give_back() == [lease(3)]);
        assert_eq!(
            (duties.offered(at(2)), duties.offered(at(1) + OFFERED_FOR)),
            (vec!["bot".into()], vec![])
        );
        duties.gave_back("bot");
        duties.learn(&beat(vec![lease(4)], None, &["a", "b"]), at(3));
        assert_eq!(duties.unwanted(at(4)), ["bot"], "it came back");
        assert!(duties.unwanted(at(3) + UNWANTED_FOR).is_empty(), "by then somebody may want it");
        duties.learn(&beat(vec![lease(4)], None, &["a", "b", "c"]), at(5));
        assert!(duties.unwanted(at(5)).is_empty(), "whoever is new may");
    }

    #[test]
    fn whoever_leaves_begins_nothing_with_what_it_was_given_meanwhile() {
        let mut duties = Duties::default();
        duties.add("bot");
        duties.leave();
        duties.learn(&answered(vec![lease(3)]), at(1));
        assert!(duties.begin("bot", at(1)).is_none());
        assert_eq!(duties.to_give_back(), [lease(3)]);
    }
}
