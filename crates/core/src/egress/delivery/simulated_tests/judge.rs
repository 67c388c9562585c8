//! What must be so of every call, every answer and every end, whatever happened.

use super::World;
use crate::egress::delivery::{ActionAnswer, DeliveryId};
use crate::egress::{ActionState, Dedupe};
use crate::vault::Way;

impl World {
    pub(super) fn judge_answer(&mut self, at: usize, id: DeliveryId, answer: &ActionAnswer) {
        let process = &mut self.processes[at];
        assert!(process.answered.insert(id), "{id:?} was answered twice");
        assert!(!process.ended.contains(&id), "{id:?} was answered after its end");
        let Some(number) = process.actions.get(&id) else { return };
        let known = self.ledger.get_mut(number).unwrap();
        if matches!(answer, ActionAnswer::NeverSent(_)) {
            assert!(known.out.is_none(), "{number} may be there");
            let ended = known.row.state.is_over() && known.row.owner == process.owner;
            assert!(ended, "{number} may be sent after all");
            known.told_never = true;
        }
    }

    pub(super) fn judge_call(&mut self, at: usize, id: DeliveryId, way: Option<Way>) {
        self.calls += 1;
        let process = &self.processes[at];
        assert!(!process.stopping, "{id:?} was begun while the server stops");
        assert!(self.allowed, "{id:?} was called where it may not be written");
        let number = process.actions[&id];
        let known = self.ledger.get_mut(&number).unwrap();
        let dedupe = known.asked.repeats.by(way);
        if let Some((since, before)) = known.out {
            assert_eq!(before, way, "{number} may be there in another way");
            assert!(dedupe.holds(self.now.since(since)), "{number} may be said twice: {dedupe:?}");
        }
        // What is not noted is not fenced: it cannot double, but one believed dead may still send it.
        let fenced = at + 1 == self.processes.len() || known.claimed.uses.is_some() || dedupe != Dedupe::Yes;
        assert!(!known.told_never || !fenced, "{number} is sent although it was told that it never was");
        self.judge_order(number);
        let known = self.ledger.get_mut(&number).unwrap();
        // From now on it may be there, until its outcome says that it is not.
        if known.out.is_none() {
            known.out = Some((self.now, way));
            self.processes[at].first_calls.insert(id);
        }
    }

    /// What is said of a message has its place in the order.
    pub(super) fn judge_order(&mut self, number: u64) {
        let place = self.ledger[&number].remark_on.unwrap_or(number);
        let takes_place = self.ledger[&place].claimed.uses.is_some_and(|it| it.way == Way::Original);
        if self.in_order && !takes_place {
            assert!(place >= self.reached, "{number} is called after {}", self.reached);
            self.reached = place;
        }
    }

    /// Whoever reads the chat knows of every message in doubt, and hears of it once.
    pub(super) fn judge_remarks(&self) {
        for (number, known) in &self.ledger {
            let remarks = self.ledger.values().filter(|it| it.remark_on == Some(*number)).count();
            assert!(remarks <= 1, "{number} is remarked upon {remarks} times");
            let in_doubt = known.row.state == ActionState::Ambiguous && known.asked.in_doubt.is_some();
            assert!(!in_doubt || known.forbidden || remarks == 1, "{number} is passed over in silence");
            assert!(in_doubt || remarks == 0, "{number} is not in doubt");
        }
    }
}
