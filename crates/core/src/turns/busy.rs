//! The decision for a line that comes while a turn is open in its conversation: it passes, waits,
//! or ends the turn.

use super::signs::Signs;
use super::turn::Turn;
use super::{Line, Sort, WhileBusy};
use crate::clock::Mono;
use std::time::Duration;

/// A turn is interrupted for somebody's second thought, not for each of their lines.
const BETWEEN_INTERRUPTS: Duration = Duration::from_secs(10);

/// Which gateway it is, as far as its way with turns goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// It sent a manifest of its commands, or reacts: a line in mid-turn makes it deaf for a while.
    Newer,
    /// The published client before that. What it files under `relay` goes as with newer ones;
    /// elsewhere texts become its next turn, and commands make it deaf.
    Older,
    /// Any other: it is given what comes.
    #[default]
    Other,
}

/// What is known of the gateway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    /// Which it is.
    pub generation: Generation,
    /// It acts on interrupts.
    pub interrupts: bool,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is pushed.
    Push,
    /// It waits.
    Hold,
    /// It waits, and the turn is asked to end.
    Interrupt,
}

/// What becomes of a line while `turn` is open. `interrupted` is when its conversation was last.
pub(super) fn decide(
    line: &Line,
    turn: &Turn,
    peer: Peer,
    signs: Signs,
    interrupted: Option<Mono>,
    now: Mono,
) -> Verdict {
    let may_interrupt = peer.interrupts && turn.interrupted_at.is_none();
    match line.sort {
        sort if sort.goes_ahead() => return Verdict::Push,
        Sort::Reset if turn.unmoved_at().is_some_and(|at| at <= now) => return Verdict::Push,
        Sort::Reset if may_interrupt => return Verdict::Interrupt,
        Sort::Reset if peer.interrupts => return Verdict::Hold,
        Sort::Text if turn.hears_at(signs).is_some_and(|at| at <= now) => return Verdict::Push,
        _ => {}
    }
    match line.while_busy {
        WhileBusy::Pass => Verdict::Push,
        WhileBusy::Collect | WhileBusy::Followup => Verdict::Hold,
        WhileBusy::Interrupt if may_interrupt => Verdict::Interrupt,
        WhileBusy::Interrupt => Verdict::Hold,
        WhileBusy::Auto => match peer.generation {
            Generation::Other => Verdict::Push,
            Generation::Older
                if line.sort == Sort::Text && turn.is_known_at(signs).is_some_and(|at| at <= now) =>
            {
                Verdict::Push
            }
            Generation::Older => Verdict::Hold,
            Generation::Newer => {
                let own = line.sort == Sort::Text && line.author.is_some() && line.author == turn.row.author;
                let calm = interrupted.is_none_or(|at| now.since(at) >= BETWEEN_INTERRUPTS);
                let early = turn.is_young(now) && turn.is_typing(now) && !turn.may_ask();
                if own && calm && early && may_interrupt { Verdict::Interrupt } else { Verdict::Hold }
            }
        },
    }
}

/// Whether a line of this gateway never waits, so that nothing has to be known of it.
pub(super) fn never_waits(while_busy: WhileBusy, generation: Generation) -> bool {
    match while_busy {
        WhileBusy::Pass => true,
        WhileBusy::Auto => generation == Generation::Other,
        WhileBusy::Collect | WhileBusy::Followup | WhileBusy::Interrupt => false,
    }
}
