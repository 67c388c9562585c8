//! Entries out, settlements in: what the window permits is pushed, as the frame that this peer reads
//! (`inbound`, `passthrough_forward` or `interrupt_inbound`), and what settled is committed.

use super::super::mailbox::{Ending, Hint, Mail};
use super::gateway_frames::MAX_LATE_ACKS;
use super::{Done, RETRY, Session};
use crate::relay::gateway_log;
use crate::telemetry::Counter;
use angelia_contract::frame::{ConnectorFrame, inbound_line, passthrough_line};
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::inbox::{
    AckHabit, Entry, EntryKind, Epoch, FrameKind, Interaction, PAGE, PAGE_MEMORY, Permit, Rendering, Seq,
    Settled, SettledBy, size,
};
use angelia_core::ports::HintKind;
use angelia_core::ports::log::{Claimed, OpenTurn, Ownership, Settlement};
use angelia_core::turns::Line;
use angelia_platforms::webchat;
use std::sync::Arc;

/// Entries remembered as done on this socket: a few times what is read at once.
const REMEMBERED: usize = 4 * PAGE.count;

/// How an entry goes over the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As a message.
    Inbound,
    /// As an interrupt.
    Interrupt,
    /// As the message an interaction makes.
    Event,
    /// As the request an interaction came as.
    Request,
}

impl Form {
    /// Whether peers acknowledge it.
    pub(super) fn kind(self) -> FrameKind {
        match self {
            Self::Inbound | Self::Event => FrameKind::Acknowledged,
            // Our own half does acknowledge a request, and that settles it too.
            Self::Interrupt | Self::Request => FrameKind::Unacknowledged,
        }
    }
}

/// The entry to push next.
struct Next {
    /// Its place in the queue; `None` for one that goes ahead.
    place: Option<usize>,
    form: Form,
    bytes: usize,
    /// What its turn has to know of it; nothing of a gateway that is given what comes.
    line: Option<Line>,
}

impl Session {
    /// Pushes entries while the window, the socket and the gateway allow it.
    pub(super) fn drain(&mut self, now: Mono) {
        if self.looking_at_late || !self.late.is_empty() {
            // What may be done already is not pushed before that is known.
            return;
        }
        if self.backlog.is_low() && self.has_room_for_page(now) {
            self.load_pages();
        }
        self.push_ready(now);
        self.read_conversations(now);
    }

    /// Whether there is memory for what is about to be read; asked again a little later if not.
    fn has_room_for_page(&mut self, now: Mono) -> bool {
        if self.page_again.is_some() {
            return false;
        }
        // For what goes ahead as well; what is not needed of it is given back at once.
        let fits = self.held.resize(self.held.bytes() + 2 * PAGE_MEMORY);
        self.page_again = (!fits).then(|| now + RETRY);
        fits
    }

    /// Keeps what the mailbox brought, as far as there is memory for it: the rest is in the log.
    pub(super) fn keep_mail(&mut self, mail: &mut Mail) {
        let bytes: usize = mail.hints.iter().map(|hint| size(&hint.entry)).sum();
        let fits = bytes == 0 || self.held.resize(self.held.bytes() + bytes);
        for Hint { mark, entry, kind } in mail.hints.drain(..) {
            if kind == HintKind::Appended && self.heard_of_held(&entry) {
                self.backlog.passed_over(mark);
                continue;
            }
            let gift = fits.then_some(entry);
            match kind {
                HintKind::Redriven => self.backlog.redriven(mark, gift),
                HintKind::Appended => self.backlog.appended(mark, gift, false),
                HintKind::Ahead => self.backlog.appended(mark, gift, true),
            }
        }
        if let Some(mark) = mail.told {
            self.backlog.told(mark);
            self.turns.heard_of_some();
        }
        self.backlog.revise(&mut mail.revised);
        for seq in mail.removed.drain(..) {
            self.backlog.remove(seq);
            self.held_lines.release(seq);
            self.turns.removed(seq);
        }
    }

    /// Makes this socket the one that drains the instance, whatever node another is on.
    pub(super) fn claim_log(&mut self) {
        if std::mem::replace(&mut self.claiming, true) {
            return;
        }
        let (relay, instance) = (self.relay.clone(), self.record.instance);
        let claiming = relay.begin_claim();
        self.jobs.push(Box::pin(async move {
            let _claiming = claiming;
            let claimed = async {
                let claimed = relay.ports.log.claim(instance, relay.cluster.node()).await?;
                relay.take_over(instance, &claimed).await;
                Ok((claimed, relay.ports.log.open_turns(instance).await?))
            };
            Done::Claimed(or_later(claimed.await).await)
        }));
    }

    pub(super) fn claimed(&mut self, outcome: Result<(Claimed, Vec<OpenTurn>)>) {
        self.claiming = false;
        if let Ok((Claimed { epoch, mark, usage, .. }, turns)) = outcome {
            if self.epoch.is_none() {
                gateway_log::connected(&self.record, &self.dialled, usage.entries);
            }
            self.epoch = Some(epoch);
            self.relay.sessions.drains(self.record.instance, &self.mailbox, epoch);
            self.turns.restore(turns, mark.tail, clock::mono());
            self.backlog.claimed(mark, usage.entries);
        }
        // Asked again if it failed, unless the socket is on its way out.
        self.join();
    }

    /// What is written under; one that was never claimed under is older than all.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch.unwrap_or_default()
    }

    /// Ends the socket if another one drains the instance by now.
    pub(super) fn heed(&mut self, ownership: Ownership) {
        if ownership == Ownership::Lost {
            self.mailbox.end(Ending::Replaced);
        }
    }

    fn load_pages(&mut self) {
        if let Some(after) = self.backlog.wants_page() {
            let (ports, instance) = (self.relay.ports.clone(), self.record.instance);
            let held = self.turns.pass_over();
            self.jobs.push(Box::pin(async move {
                Done::Page(or_later(ports.log.load(instance, after, &held, PAGE).await).await)
            }));
        }
        if self.backlog.wants_ahead() {
            let (ports, instance) = (self.relay.ports.clone(), self.record.instance);
            self.jobs.push(Box::pin(async move {
                Done::Ahead(or_later(ports.log.load_ahead(instance, PAGE).await).await)
            }));
        }
    }

    fn push_ready(&mut self, now: Mono) {
        while self.outgoing.has_room() && self.backlog.knows_ahead() {
            let Some(next) = self.next_entry(now) else { break };
            // An interrupt is no message: it overtakes the window as well.
            let kind = next.form.kind();
            let free = next.place.is_none() && kind == FrameKind::Unacknowledged;
            if !free && self.window.permit(kind, next.bytes, now) == Permit::Wait {
                break;
            }
            let entry = match next.place {
                None => self.backlog.pop_ahead(),
                Some(place) => self.backlog.take_at(place),
            };
            let Some(entry) = entry else { break };
            if self.not_again.contains(&entry.seq) {
                continue;
            }
            if next.place.is_none() || next.line.is_some() {
                self.remember_not_again(entry.seq);
            }
            self.push(&entry, next.form, next.line.as_ref(), now);
        }
        if let Some(number) = self.window.ping_due() {
            self.ping(number, now);
        }
    }

    /// What to push next: what goes ahead, else the first entry of a chat that
    /// is not being left alone and of a conversation in which no turn is open.
    fn next_entry(&mut self, now: Mono) -> Option<Next> {
        let mut stuck: Vec<Seq> = Vec::new();
        // Whose files are not here, nor on their way: what was said behind them waits as well.
        let mut in_line: Vec<Arc<str>> = Vec::new();
        loop {
            let ahead = self.backlog.front_ahead().filter(|entry| !self.is_too_soon(entry));
            let held = |entry: &Entry| {
                self.is_left_alone(entry) || stuck.contains(&entry.seq) || in_line.contains(&entry.chat_id)
            };
            let ahead = ahead.filter(|entry| !stuck.contains(&entry.seq)).map(|entry| (None, entry));
            let first = || self.backlog.first(held).map(|(place, entry)| (Some(place), entry));
            let (place, entry) = ahead.or_else(first)?;
            if self.lacks_files(entry) {
                let entry = entry.clone();
                stuck.push(entry.seq);
                self.bring_files(&entry);
                in_line.push(entry.chat_id);
                continue;
            }
            let (form, bytes, seq) = (self.form(entry), entry.body.len(), entry.seq);
            let line = self.line_of(entry);
            // Cloned, because what waits leaves the backlog.
            let entry = line.as_ref().map(|_| entry.clone());
            let may_go = line.as_ref().zip(entry).is_none_or(|(line, entry)| self.may_go(line, &entry, now));
            if may_go {
                return Some(Next { place, form, bytes, line });
            }
            let held = line.is_some_and(|line| self.turns.is_held(&line.conversation));
            if place.is_none() && held {
                // It is read with its conversation.
                self.backlog.remove(seq);
            }
            stuck.push(seq);
        }
    }

    fn is_too_soon(&self, entry: &Entry) -> bool {
        self.settled_in_at.is_some() && &*entry.platform != webchat::NAME
    }

    pub(super) fn is_left_alone(&self, entry: &Entry) -> bool {
        let answered = self.breathers.iter().any(|(chat, _)| **chat == *entry.chat_id);
        self.is_too_soon(entry) || answered || self.files.holds(&entry.chat_id)
    }

    /// Keeps an entry from being pushed on this socket. What goes ahead, and what is read with its
    /// conversation, is read without a place to go on from, so it may be read again; what was
    /// acknowledged late may be in a page that is just being read.
    pub(super) fn remember_not_again(&mut self, seq: Seq) {
        if self.not_again.len() >= REMEMBERED {
            self.not_again.pop_front();
        }
        self.not_again.push_back(seq);
    }

    pub(super) fn push(&mut self, entry: &Entry, form: Form, line: Option<&Line>, now: Mono) {
        let Some(text) = self.render(entry, form) else { return self.drop_unreadable(entry) };
        self.outgoing.line(&text);
        if let Some(line) = line {
            self.turns.pushed(line, now);
            self.may_be_unanswered(&line.conversation, entry, now);
        }
        self.pushes_unwritten = true;
        self.held_lines.release(entry.seq);
        self.files.pushed(entry.seq);
        self.window.pushed(entry.seq, form.kind(), entry.body.len(), now);
        self.relay.metrics.count(Counter::Pushed);
    }

    /// The form in which this peer is given an entry.
    pub(super) fn form(&self, entry: &Entry) -> Form {
        match entry.kind {
            // Others act on the text `/stop` and not on the frame (docs/decisions/0040).
            EntryKind::Stop if self.may_interrupt(entry) => Form::Interrupt,
            EntryKind::Message | EntryKind::Stop => Form::Inbound,
            EntryKind::Interaction => match self.rendering(entry) {
                Rendering::Event => Form::Event,
                Rendering::Auto if self.profile.loses_forwards || self.is_only_own(entry) => Form::Event,
                Rendering::Auto | Rendering::Passthrough => Form::Request,
            },
        }
    }

    /// What the operator wants for the bot; one that is not configured any more has no wish.
    fn rendering(&self, entry: &Entry) -> Rendering {
        let bot = self.relay.bots.position(&BotKey::new(&entry.platform, &entry.bot));
        bot.map(|bot| self.relay.bots[bot].rendering()).unwrap_or_default()
    }

    /// The line that gives an entry to the peer; `None` if it cannot be read.
    fn render(&self, entry: &Entry, form: Form) -> Option<String> {
        let id = entry.seq.buffer_id();
        let (platform, bot) = (&*entry.platform, &*entry.bot);
        let line = match form {
            Form::Interrupt => {
                self.relay.metrics.count(Counter::Interrupts);
                let (session_key, chat_id) = (entry.session_key.to_string(), entry.chat_id.to_string());
                return Some(ConnectorFrame::InterruptInbound { session_key, chat_id }.to_line());
            }
            Form::Inbound => match self.reworded(entry) {
                Some(event) => {
                    let event = serde_json::to_vec(&event).ok()?;
                    inbound_line(&id, platform, bot, &self.readable(entry, &event))
                }
                None => inbound_line(&id, platform, bot, &self.readable(entry, &entry.body)),
            },
            Form::Event => {
                let event = Interaction::read(&entry.body)?.event;
                let event = serde_json::to_vec(&self.in_words(entry, event)).ok()?;
                inbound_line(&id, platform, bot, &self.readable(entry, &event))
            }
            Form::Request => {
                let forward = Interaction::read(&entry.body)?.into_forward(platform, bot);
                passthrough_line(&id, platform, bot, &serde_json::to_vec(&forward).ok()?)
            }
        };
        Some(text(line))
    }

    /// Takes an entry out that nobody can be given: what waits behind it goes on.
    pub(super) fn drop_unreadable(&mut self, entry: &Entry) {
        tracing::error!(
            gateway = %self.record.gateway_id, entry = %entry.seq.buffer_id(), kind = entry.kind.as_str(),
            "an entry could not be read and was dropped"
        );
        let by = SettledBy::Unreadable;
        self.to_settle.push(Settlement { seq: entry.seq, by, pushed_at: None });
    }

    pub(super) fn settle(&mut self, settled: Vec<Settled>, now: Mono) {
        for done in &settled {
            self.turns.acknowledged(done.seq, now);
        }
        let wall = clock::wall();
        self.relay.metrics.add(Counter::Settled, settled.len() as u64);
        self.to_settle.extend(settled.into_iter().map(|done| Settlement {
            seq: done.seq,
            by: done.by,
            pushed_at: Some(wall_time(done.pushed_at, now, wall)),
        }));
    }

    /// Lets the journal know of frames that wait for their acknowledgement.
    pub(super) fn note_lingering(&mut self, now: Mono) {
        let lingering = self.window.lingering(now);
        if lingering.is_empty() {
            return;
        }
        let wall = clock::wall();
        let pushed = lingering.into_iter().map(|(seq, at)| (seq, wall_time(at, now, wall))).collect();
        let (ports, instance) = (self.relay.ports.clone(), self.record.instance);
        self.jobs.push(Box::pin(async move {
            let _ = ports.log.note_pushed(instance, pushed).await;
            Done::Noted(Ownership::Ours)
        }));
    }

    /// One commit at a time: what settles meanwhile shares the next.
    pub(super) fn commit_settled(&mut self) {
        if !self.settling.is_empty() {
            return;
        }
        let (later, settled): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.to_settle).into_iter().partition(|done| self.is_unnoted(done.seq));
        self.to_settle = later;
        if settled.is_empty() {
            return;
        }
        self.settling = settled.iter().map(|settlement| settlement.seq).collect();
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        self.jobs.push(Box::pin(async move {
            let outcome = or_later(ports.log.settle(instance, epoch, settled.clone()).await).await;
            Done::Settled(outcome, settled)
        }));
    }

    /// Has the store look at what was acknowledged late. Not before a replaced socket
    /// has noted what it pushed.
    pub(super) fn look_at_late(&mut self) {
        if self.looking_at_late || self.waits_for_old || self.late.is_empty() {
            return;
        }
        self.looking_at_late = true;
        let (ports, instance) = (self.relay.ports.clone(), self.record.instance);
        let late = std::mem::take(&mut self.late);
        self.jobs.push(Box::pin(async move {
            Done::Late(or_later(ports.log.settle_late(instance, late.clone()).await).await, late)
        }));
    }

    /// What was really pushed before is done; the rest was made up and is left alone.
    pub(super) fn looked_at_late(&mut self, outcome: Result<Vec<Seq>>, late: Vec<Seq>) {
        self.looking_at_late = false;
        match outcome {
            Ok(settled) => {
                for seq in settled {
                    self.backlog.remove(seq);
                    self.remember_not_again(seq);
                }
                self.backlog.look_ahead_again();
            }
            Err(_) => {
                self.late.splice(0..0, late);
                self.late.truncate(MAX_LATE_ACKS);
            }
        }
    }

    /// Remembers which bots the gateway answers for now.
    pub(super) fn keep_fronts(&mut self) {
        let (relay, instance) = (self.relay.clone(), self.record.instance);
        let fronts = self.handshake.take_fronts();
        if relay.identities.now().fronts(instance) == fronts {
            return;
        }
        self.jobs.push(Box::pin(async move {
            if let Err(error) = relay.identities.keep_fronts(instance, fronts).await {
                tracing::warn!(%error, "what a gateway fronts could not be kept");
            }
            Done::Noted(Ownership::Ours)
        }));
    }

    /// Remembers which commands the gateway knows now.
    pub(super) fn keep_commands(&mut self) {
        let (relay, instance) = (self.relay.clone(), self.record.instance);
        let Some(commands) = self.handshake.take_commands() else { return };
        let known = relay.identities.now();
        if *known.commands(instance) == *commands {
            return;
        }
        if !known.has_room_for(instance, &commands) {
            relay.metrics.add(Counter::CommandsDropped, commands.len() as u64);
            return;
        }
        self.jobs.push(Box::pin(async move {
            if let Err(error) = relay.identities.keep_commands(instance, commands).await {
                tracing::warn!(%error, "the commands of a gateway could not be kept");
            }
            Done::Noted(Ownership::Ours)
        }));
    }

    /// Remembers what this socket taught about the gateway's habit.
    pub(super) fn note_habit(&mut self, before: AckHabit) {
        let habit = self.window.habit();
        if habit == before {
            return;
        }
        self.relay.sessions.update(self.record.instance, |standing| standing.habit = habit);
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        self.jobs.push(Box::pin(async move {
            Done::Noted(ports.log.set_habit(instance, epoch, habit).await.unwrap_or(Ownership::Ours))
        }));
    }
}

/// Holds a failure back a little: the store may be full or locked, and asking at once helps nobody.
pub(super) async fn or_later<T>(outcome: Result<T>) -> Result<T> {
    if outcome.is_err() {
        tokio::time::sleep(RETRY).await;
    }
    outcome
}

pub(super) fn wall_time(at: Mono, now: Mono, wall: UnixMillis) -> UnixMillis {
    wall.before(now.since(at))
}

/// Serialized events are UTF-8; anything else would be a defect, not a reason to lose the socket.
fn text(line: Vec<u8>) -> String {
    String::from_utf8(line).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
