//! Providers: they answer, refuse, ask to wait, or are not heard of again, and
//! recognise what they are given twice for ever, for a while, or not at all.

use super::judge::Judge;
use super::members::{BOTS, MemberId};
use super::process::ChatKey;
use crate::dice::Dice;
use angelia_core::clock::Mono;
use angelia_core::egress::delivery::{DeliveryId, Repeats};
use angelia_core::egress::{Dedupe, Outcome, Owner, Reach};
use angelia_core::ports::ActionId;
use std::time::Duration;

/// Longest time for which a call is on its way; then it never arrives.
pub(super) const LONGEST_WAY: Duration = Duration::from_secs(10);
/// What clocks are corrected by now and then, to and fro.
pub(super) const CORRECTED_BY: Duration = Duration::from_secs(2);

/// For how long each bot's provider says that it recognises a message.
const RECOGNISES: [Dedupe; BOTS] = [Dedupe::No, Dedupe::For(Duration::from_secs(120)), Dedupe::Yes];

/// Whether a bot's provider recognises an action, given twice. The same change of
/// the same message twice is one change.
pub(super) fn repeats(bot: usize, is_edit: bool) -> Repeats {
    Repeats::always(if is_edit { Dedupe::Yes } else { RECOGNISES[bot] })
}

/// Whether it recognises what was first written so long ago. It does so for longer
/// than it says, by what a call takes and clocks are off: nobody can know better.
fn is_recognised(bot: usize, is_edit: bool, since: Duration) -> bool {
    match repeats(bot, is_edit).message {
        Dedupe::For(life) => since < life + LONGEST_WAY + 2 * CORRECTED_BY,
        other => other.holds(since),
    }
}

/// Who called for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) node: usize,
    pub(super) member: MemberId,
    pub(super) chat: ChatKey,
    pub(super) id: DeliveryId,
    pub(super) owner: Owner,
    pub(super) action: ActionId,
}

/// A call on its way.
struct Request {
    caller: Caller,
    made: Mono,
}

/// What a caller hears.
#[derive(Debug)]
pub(super) enum Heard {
    FirstPart(String),
    Outcome(Outcome),
}

/// What is on its way to providers, and back.
#[derive(Default)]
pub(super) struct Provider {
    requests: Vec<Request>,
    /// To each caller in order.
    pub(super) replies: Vec<(Caller, Heard)>,
}

impl Provider {
    pub(super) fn call(&mut self, caller: Caller, made: Mono) {
        self.requests.push(Request { caller, made });
    }

    /// A call arrives, and something comes of it.
    pub(super) fn receive(
        &mut self,
        dice: &mut Dice,
        faulty: bool,
        now: Mono,
        judge: &mut Judge,
    ) -> Option<Caller> {
        let Request { caller, .. } = dice.take(&mut self.requests)?;
        let why = || "why".to_owned();
        let message_id = format!("m{}", caller.action.0);
        let later = |dice: &mut Dice| {
            let reach = [Reach::Action, Reach::Chat, Reach::Bot][dice.below(3)];
            Outcome::Later { after: Duration::from_secs(dice.below(8) as u64), reach, why: why() }
        };
        let roll = if faulty { dice.below(100) } else { 99 };
        let is_there = judge
            .written(caller.action)
            .is_some_and(|(at, is_edit)| is_recognised(caller.chat.bot, is_edit, now.since(at)));
        let outcome = match roll {
            0..10 => later(dice),
            10..16 => Outcome::Unknown { why: why() },
            16..19 => Outcome::Open { why: why() },
            19..27 if !is_there => Outcome::Refused { why: why() },
            _ => {
                judge.arrived(caller, is_there, now);
                if roll >= 80 && faulty && dice.percent(50) {
                    self.replies.push((caller, Heard::FirstPart(message_id.clone())));
                }
                match roll {
                    27..35 => Outcome::Unknown { why: why() },
                    35..38 => Outcome::Open { why: why() },
                    // The rest of its parts has to wait, or is refused.
                    38..44 => {
                        self.replies.push((caller, Heard::FirstPart(message_id)));
                        if dice.percent(50) { later(dice) } else { Outcome::Refused { why: why() } }
                    }
                    _ => Outcome::Sent { message_id, recorded: false },
                }
            }
        };
        self.replies.push((caller, Heard::Outcome(outcome)));
        Some(caller)
    }

    /// The next that somebody hears: for each caller the first of what is on its way.
    pub(super) fn reply(&mut self, dice: &mut Dice) -> Option<(Caller, Heard)> {
        if self.replies.is_empty() {
            return None;
        }
        let any = self.replies[dice.below(self.replies.len())].0;
        let same = |it: &Caller| (it.member, it.id) == (any.member, any.id);
        let first = self.replies.iter().position(|(caller, _)| same(caller))?;
        Some(self.replies.remove(first))
    }

    /// What was on its way for too long never arrives.
    pub(super) fn time_out(&mut self, now: Mono) {
        let replies = &mut self.replies;
        self.requests.retain(|request| {
            let lost = now.since(request.made) >= LONGEST_WAY;
            if lost {
                let why = "no answer came".to_owned();
                replies.push((request.caller, Heard::Outcome(Outcome::Unknown { why })));
            }
            !lost
        });
    }

    /// Nobody hears what comes of a process's calls any more; they arrive all the same.
    pub(super) fn hang_up(&mut self, member: MemberId) {
        self.replies.retain(|(caller, _)| caller.member != member);
    }
}
