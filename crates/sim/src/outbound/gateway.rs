//! Gateways, and what they make of their answers: what was never sent is sent
//! again, what perhaps was is left alone.

use super::judge::Asked;
use super::members::{BOTS, MemberId};
use crate::dice::Dice;
use angelia_core::egress::delivery::ActionAnswer;
use angelia_core::ports::ActionId;

/// How often a gateway sends what it is told was never sent.
const REPEATED: u32 = 2;

/// What it has to say.
#[derive(Clone, Copy)]
struct Saying {
    text: u64,
    bot: usize,
    edits: Option<ActionId>,
    /// How often it was asked for before.
    tries: u32,
}

/// An agent's own half.
#[derive(Default)]
pub(super) struct Gateway {
    pub(super) socket: Option<(usize, MemberId)>,
    /// How many of this instance were revoked before it.
    pub(super) generation: u32,
    /// What it waits for.
    waiting: Vec<(u64, Saying)>,
    again: Vec<Saying>,
    /// Messages it knows of, by the actions that sent them.
    messages: [Vec<ActionId>; BOTS],
}

impl Gateway {
    /// Its next request: something new, a change, or once more what was never sent.
    pub(super) fn ask(
        &mut self,
        instance: usize,
        numbers: &mut u64,
        dice: &mut Dice,
        anew: bool,
    ) -> Option<Asked> {
        let saying = match dice.take(&mut self.again) {
            Some(again) => again,
            None if anew => self.saying(numbers, dice),
            None => return None,
        };
        *numbers += 1;
        let request = *numbers;
        self.waiting.push((request, saying));
        let Saying { text, bot, edits, .. } = saying;
        let (generation, remark_on) = (self.generation, None);
        Some(Asked { request, text, instance, generation, bot, edits, remark_on })
    }

    fn saying(&self, numbers: &mut u64, dice: &mut Dice) -> Saying {
        *numbers += 1;
        let (text, bot) = (*numbers, dice.below(BOTS));
        // Mostly the last message is changed, as one that grows is.
        let known = &self.messages[bot];
        let edits = (dice.percent(40) && !known.is_empty())
            .then(|| known[known.len() - 1 - dice.below(known.len().min(2))]);
        Saying { text, bot, edits, tries: 0 }
    }

    /// An answer arrives, if it still waits for it.
    pub(super) fn hears(&mut self, request: u64, answer: &ActionAnswer) {
        let Some(at) = self.waiting.iter().position(|(waits, _)| *waits == request) else { return };
        let (_, mut saying) = self.waiting.swap_remove(at);
        match answer {
            ActionAnswer::NeverSent(_) if saying.tries < REPEATED => {
                saying.tries += 1;
                self.again.push(saying);
            }
            ActionAnswer::Sent { message_id } if saying.edits.is_none() => {
                let sent = message_id.strip_prefix('m').and_then(|it| it.parse().ok()).map(ActionId);
                self.messages[saying.bot].extend(sent);
            }
            _ => {}
        }
    }

    /// Its socket is gone, and with it what it waited for.
    pub(super) fn hangs_up(&mut self) {
        self.socket = None;
        self.waiting.clear();
    }

    /// It is revoked; another one takes its place.
    pub(super) fn replaced(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }
}
