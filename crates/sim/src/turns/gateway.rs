//! The gateway: it reads one frame after the other, works on one message of a conversation at a
//! time, and shows where a turn begins and ends as far as its kind does.

use super::Violation;
use super::agenda::SocketId;
use super::judge::Judge;
use super::people;
use crate::dice::Dice;
use angelia_contract::action::{Action, Metadata};
use angelia_core::inbox::{Entry, Seq};
use std::collections::BTreeMap;
use std::time::Duration;

/// What goes to it.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Push(Entry),
    Interrupt(String),
    Result(u64, bool),
}

/// What comes from it.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Ack(Seq),
    Ask(u64, Action),
}

/// What it does by itself, a little later, for a turn or a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    Works(u64),
    Types(u64, u32),
    Cut(u64),
    Fails(u64),
    Frees(u64),
}

/// How it marks its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By reactions, as newer ones do.
    Reacts,
    /// By the message that ends one.
    Notifies,
    /// Not at all; some of them do not even type.
    Mute { types: bool },
}

/// It asked in a conversation: by words, or with buttons.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) session_key: String,
    pub(crate) prompt: Option<String>,
}

/// How far a turn is; what a number waits for is the result of that request.
#[derive(Clone, Debug)]
enum Stage {
    Marking(u64),
    Working,
    Saying(u64),
    Asking,
    Prompting(u64, String),
    Approval(String),
    Answering(u64),
    LettingGo(u64),
    MarkingDone(u64),
    Freeing,
}

#[derive(Debug)]
struct Turn {
    number: u64,
    session_key: String,
    chat_id: String,
    message_id: String,
    stage: Stage,
    /// How often it may still ask.
    questions: usize,
    /// Counts how often it took up work, so that it types once at a time.
    shift: u32,
    cut: bool,
    /// Whether it asked on a socket that has ended: the next one does not know of it.
    unknown: bool,
    /// Whether it typed on this socket.
    typed: bool,
}

impl Turn {
    /// The request whose result it waits for.
    fn awaits(&self) -> Option<u64> {
        match &self.stage {
            Stage::Marking(ticket)
            | Stage::Saying(ticket)
            | Stage::Prompting(ticket, _)
            | Stage::Answering(ticket)
            | Stage::LettingGo(ticket)
            | Stage::MarkingDone(ticket) => Some(*ticket),
            Stage::Working | Stage::Asking | Stage::Approval(_) | Stage::Freeing => None,
        }
    }

    fn is_ending(&self) -> bool {
        use Stage::{Answering, Freeing, LettingGo, MarkingDone};
        matches!(self.stage, Answering(_) | LettingGo(_) | MarkingDone(_) | Freeing)
    }
}

/// The gateway.
pub(crate) struct Gateway {
    pub(crate) kind: Kind,
    pub(crate) socket: Option<SocketId>,
    /// What it writes, does later, and asked, since somebody looked.
    pub(crate) out: Vec<Up>,
    pub(crate) timers: Vec<(Duration, Timer)>,
    pub(crate) asked: Vec<Asked>,
    turns: BTreeMap<String, Turn>,
    dice: Dice,
    tickets: u64,
    numbers: u64,
}

impl Gateway {
    pub(crate) fn new(kind: Kind, dice: Dice) -> Self {
        let (out, timers, asked) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, socket: None, out, timers, asked, turns: BTreeMap::new(), dice, tickets: 0, numbers: 0 }
    }

    /// Whether it works on nothing.
    pub(crate) fn is_free(&self) -> bool {
        self.turns.is_empty()
    }

    /// Whether it works in a conversation.
    pub(crate) fn works_in(&self, session_key: &str) -> bool {
        self.turns.contains_key(session_key)
    }

    /// A new process: it knows of nothing.
    pub(crate) fn restarts(&mut self) {
        self.turns.clear();
    }

    /// Its socket is gone: what it waits for fails.
    pub(crate) fn hung_up(&mut self) {
        self.socket = None;
        if self.kind == (Kind::Mute { types: false }) {
            // Nobody could tell that it works on.
            self.turns.clear();
        }
        for turn in self.turns.values_mut() {
            turn.unknown |= matches!(turn.stage, Stage::Asking | Stage::Approval(_));
            turn.typed = false;
            self.timers.extend(turn.awaits().map(|ticket| (Duration::ZERO, Timer::Fails(ticket))));
        }
    }

    /// It did something before its socket knew of its turns.
    pub(crate) fn was_not_understood(&mut self, action: &Action) {
        if matches!(action, Action::Prompt { .. } | Action::Send { .. } | Action::Typing { .. }) {
            let here = |turn: &&mut Turn| Some(turn.chat_id.as_str()) == action.chat_id();
            self.turns.values_mut().filter(here).for_each(|turn| turn.unknown = true);
        }
    }

    /// Asks for something; without a socket it fails at once.
    fn ask(&mut self, action: Action) -> u64 {
        self.tickets += 1;
        if self.socket.is_some() {
            self.out.push(Up::Ask(self.tickets, action));
        } else {
            self.timers.push((Duration::ZERO, Timer::Fails(self.tickets)));
        }
        self.tickets
    }

    /// Reads a frame.
    pub(crate) fn reads(&mut self, frame: Down, judge: &mut Judge) -> Result<(), Violation> {
        match frame {
            Down::Push(entry) => return self.takes(&entry, judge),
            Down::Result(ticket, ok) => self.result(ticket, ok),
            Down::Interrupt(session_key) => {
                if let Some(turn) = self.turns.get_mut(&session_key).filter(|turn| !turn.is_ending()) {
                    turn.cut = true;
                    self.timers.push((Duration::from_millis(200), Timer::Cut(turn.number)));
                }
            }
        }
        Ok(())
    }

    fn takes(&mut self, entry: &Entry, judge: &mut Judge) -> Result<(), Violation> {
        self.out.push(Up::Ack(entry.seq));
        if judge.pushed(entry)? {
            return Ok(());
        }
        let event = people::event(entry);
        let key = entry.session_key.to_string();
        if let Some(press) = event.prompt_response {
            let waits =
                |turn: &&mut Turn| matches!(&turn.stage, Stage::Approval(id) if *id == press.prompt_id);
            if let Some(turn) = self.turns.get_mut(&key).filter(waits) {
                let number = turn.number;
                self.works(number);
            }
            return judge.reached(entry);
        }
        if let Some(turn) = self.turns.get(&key) {
            let number = turn.number;
            let asks = matches!(turn.stage, Stage::Asking) && !turn.cut;
            let answers = asks && !event.text.starts_with('/');
            if !answers && !turn.unknown {
                return Err(Violation::IntoATurn(entry.seq));
            }
            if answers {
                self.works(number);
            }
            return judge.reached(entry);
        }
        let (chat_id, message_id) = (entry.chat_id.to_string(), event.message_id.unwrap_or_default());
        if event.text.starts_with('/') {
            self.ask(said(&chat_id, Some(message_id), self.notifies()));
        } else {
            self.begins(key, chat_id, message_id);
        }
        judge.reached(entry)
    }

    fn begins(&mut self, session_key: String, chat_id: String, message_id: String) {
        self.numbers += 1;
        let number = self.numbers;
        // Typing names the chat alone, so whoever asks in one of several people is not understood.
        let alone = people::is_alone(&chat_id);
        let questions = if alone && self.dice.percent(25) { 1 + self.dice.below(2) } else { 0 };
        let stage = Stage::Working;
        let mut turn = Turn {
            number,
            session_key: session_key.clone(),
            chat_id,
            message_id,
            stage,
            questions,
            shift: 0,
            cut: false,
            unknown: false,
            typed: false,
        };
        if self.kind == Kind::Reacts {
            turn.stage = Stage::Marking(self.ask(mark(&turn, "👀", false)));
        }
        self.turns.insert(session_key, turn);
        if self.kind != Kind::Reacts {
            self.works(number);
        }
    }

    fn turn(&mut self, number: u64) -> Option<&mut Turn> {
        self.turns.values_mut().find(|turn| turn.number == number)
    }

    /// It takes up work, or goes on with it.
    fn works(&mut self, number: u64) {
        let span = match self.dice.below(100) {
            0..70 => 300 + self.dice.below(6_000),
            70..95 => 6_000 + self.dice.below(24_000),
            _ => 40_000 + self.dice.below(80_000),
        };
        // Whoever shows nothing for a minute is taken for done.
        let span = if self.kind == (Kind::Mute { types: false }) { span.min(50_000) } else { span };
        let Some(turn) = self.turn(number) else { return };
        turn.stage = Stage::Working;
        turn.shift += 1;
        let types = Timer::Types(number, turn.shift);
        self.timers.push((Duration::ZERO, types));
        self.timers.push((Duration::from_millis(span as u64), Timer::Works(number)));
    }

    /// Some time is over.
    pub(crate) fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::Types(number, shift) => self.types(number, shift),
            Timer::Fails(ticket) => self.result(ticket, false),
            Timer::Works(number) => {
                if self.turn(number).is_some_and(|turn| matches!(turn.stage, Stage::Working)) {
                    self.speaks(number);
                }
            }
            Timer::Cut(number) => {
                if self.turn(number).is_some_and(|turn| !turn.is_ending()) {
                    self.lets_go(number);
                }
            }
            Timer::Frees(number) => self.turns.retain(|_, turn| turn.number != number),
        }
    }

    fn types(&mut self, number: u64, shift: u32) {
        let types = self.kind != Kind::Mute { types: false };
        let working = |turn: &Turn| turn.shift == shift && matches!(turn.stage, Stage::Working);
        let Some(chat_id) = self.turn(number).filter(|turn| working(turn)).map(|turn| turn.chat_id.clone())
        else {
            return;
        };
        if types {
            let heard = self.socket.is_some();
            self.turn(number).into_iter().for_each(|turn| turn.typed |= heard);
            self.ask(Action::Typing { chat_id, content: None, metadata: Metadata::new() });
            self.timers.push((Duration::from_secs(2), Timer::Types(number, shift)));
        }
    }

    /// A stretch of work is done: it asks, or answers.
    fn speaks(&mut self, number: u64) {
        // Whoever never says which message is the last ends a turn by any that it sends.
        let in_words = self.kind == Kind::Reacts && self.dice.percent(50);
        let asks = self.kind == Kind::Reacts || self.kind == Kind::Notifies;
        let Some(turn) = self.turn(number) else { return };
        let (chat_id, message_id) = (turn.chat_id.clone(), turn.message_id.clone());
        if turn.questions > 0 && asks {
            turn.questions -= 1;
            // Words of one that shows nothing else may be anybody's.
            turn.unknown |= in_words && !turn.typed;
            let stage = if in_words {
                Stage::Saying(self.ask(said(&chat_id, None, false)))
            } else {
                let id = format!("p{}", self.tickets + 1);
                Stage::Prompting(self.ask(prompt(&chat_id, &id)), id)
            };
            self.set(number, stage);
        } else {
            let notifies = self.notifies();
            let reply_to = (!people::is_alone(&chat_id) || self.dice.percent(50)).then_some(message_id);
            let stage = Stage::Answering(self.ask(said(&chat_id, reply_to, notifies)));
            self.set(number, stage);
        }
    }

    /// Whether it says of a message that it is the last.
    fn notifies(&self) -> bool {
        !matches!(self.kind, Kind::Mute { .. })
    }

    fn set(&mut self, number: u64, stage: Stage) {
        if let Some(turn) = self.turn(number) {
            turn.stage = stage;
        }
    }

    /// The marks of a turn that is over, if it makes any.
    fn lets_go(&mut self, number: u64) {
        if self.kind != Kind::Reacts {
            return self.turns.retain(|_, turn| turn.number != number);
        }
        let Some(action) = self.turn(number).map(|turn| mark(turn, "👀", true)) else { return };
        let stage = Stage::LettingGo(self.ask(action));
        self.set(number, stage);
    }

    /// The result of a request came.
    fn result(&mut self, ticket: u64, ok: bool) {
        let Some(turn) = self.turns.values_mut().find(|turn| turn.awaits() == Some(ticket)) else { return };
        let (number, session_key) = (turn.number, turn.session_key.clone());
        match turn.stage.clone() {
            Stage::Marking(_) => self.works(number),
            Stage::Saying(_) if ok => {
                turn.stage = Stage::Asking;
                self.asked.push(Asked { session_key, prompt: None });
            }
            Stage::Prompting(_, id) if ok => {
                turn.stage = Stage::Approval(id.clone());
                self.asked.push(Asked { session_key, prompt: Some(id) });
            }
            Stage::Saying(_) | Stage::Prompting(..) => self.works(number),
            Stage::Answering(_) => self.lets_go(number),
            // One that was cut off may leave it at that.
            Stage::LettingGo(_) if turn.cut && self.dice.percent(30) => self.frees(number),
            Stage::LettingGo(_) => {
                let action = mark(turn, "✅", false);
                let stage = Stage::MarkingDone(self.ask(action));
                self.set(number, stage);
            }
            Stage::MarkingDone(_) => self.frees(number),
            Stage::Working | Stage::Asking | Stage::Approval(_) | Stage::Freeing => {}
        }
    }

    fn frees(&mut self, number: u64) {
        self.set(number, Stage::Freeing);
        let span = Duration::from_millis(self.dice.below(40) as u64);
        self.timers.push((span, Timer::Frees(number)));
    }
}

fn mark(turn: &Turn, emoji: &str, remove: bool) -> Action {
    let (chat_id, message_id) = (turn.chat_id.clone(), turn.message_id.clone());
    Action::React { chat_id, message_id, emoji: emoji.to_owned(), remove, metadata: Metadata::new() }
}

fn said(chat_id: &str, reply_to: Option<String>, notifies: bool) -> Action {
    let metadata =
        if notifies { Metadata::from_iter([("notify".to_owned(), true.into())]) } else { Metadata::new() };
    Action::Send { chat_id: chat_id.to_owned(), content: "words".to_owned(), reply_to, metadata }
}

fn prompt(chat_id: &str, id: &str) -> Action {
    Action::Prompt {
        chat_id: chat_id.to_owned(),
        prompt_kind: "approval".to_owned(),
        prompt_id: id.to_owned(),
        content: "May I?".to_owned(),
        options: Vec::new(),
        timeout_s: None,
        reply_to: None,
        metadata: Metadata::new(),
    }
}
