//! What is hot, done for many at once: one transaction, and one round trip, whatever waits.
//!
//! A statement takes what is usual: an instance that somebody serves and that has room, an
//! action that is its owner's. What it leaves is done one by one, as everything else is. So
//! there is one place that decides, and a second one that is fast.

mod actions;
mod append;
pub(super) mod given;
mod post;
mod settle;
mod take_in;
mod turns;

use crate::store::webchat;
use angelia_core::directory::BotKey;
use angelia_core::egress;
use angelia_core::error::Result;
use angelia_core::inbox::{Epoch, InstanceId, Quota};
use angelia_core::ports::log::{Appended, NewEntry, Ownership, Settlement, TurnNote};
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, Hint, Intake, NewAction, NewLine, Posted, Taken, Under,
};
use angelia_core::rooms::Posting;
use futures_util::future::join_all;
use given::{Given, numbers, text, texts};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::oneshot;
use tokio_postgres::{Client, Error, Row};

/// Where somebody waits for an answer.
pub(super) type Answer<T> = oneshot::Sender<Result<T>>;

/// Something that is done with others.
pub(super) enum HotWrite {
    /// [`Log::append`](angelia_core::ports::log::Log::append).
    Append(NewEntry, Answer<Appended>),
    /// [`Log::settle`](angelia_core::ports::log::Log::settle).
    Settle(InstanceId, Epoch, Vec<Settlement>, Answer<Ownership>),
    /// [`Log::note_turns`](angelia_core::ports::log::Log::note_turns).
    NoteTurns(InstanceId, Epoch, Vec<TurnNote>, Answer<Ownership>),
    /// [`Ingest::take_in`](angelia_core::ports::Ingest::take_in).
    TakeIn(BotKey, Option<Under>, Vec<Intake>, Answer<Vec<Taken>>),
    /// [`Lines::post_line`](angelia_core::ports::Lines::post_line).
    Post(Box<NewLine>, Option<Box<NewEntry>>, Answer<Posted>),
    /// [`Ledger::accept`](angelia_core::ports::Ledger::accept).
    Accept(egress::Owner, Vec<NewAction>, Answer<Vec<Accepted>>),
    /// [`Ledger::begin`](angelia_core::ports::Ledger::begin).
    Begin(egress::Owner, ActionId, Answer<bool>),
    /// [`Ledger::finish`](angelia_core::ports::Ledger::finish).
    Finish(egress::Owner, Vec<(ActionId, ActionOutcome)>, Answer<Vec<ActionId>>),
}

impl HotWrite {
    /// What it appends, if there is something usual about it.
    fn entries(&self) -> Vec<&NewEntry> {
        match self {
            Self::Append(entry, _) => vec![entry],
            Self::Post(_, entry, _) => entry.as_deref().into_iter().collect(),
            Self::TakeIn(_, _, intakes, _) if take_in::is_usual(intakes) => {
                intakes.iter().filter_map(|intake| intake.entry.as_ref()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Tells whoever waits that it failed.
    pub(super) fn fail(self, error: &angelia_core::error::Error) {
        let error = error.clone();
        match self {
            Self::Append(_, answer) => drop(answer.send(Err(error))),
            Self::Settle(.., answer) | Self::NoteTurns(.., answer) => drop(answer.send(Err(error))),
            Self::TakeIn(.., answer) => drop(answer.send(Err(error))),
            Self::Post(.., answer) => drop(answer.send(Err(error))),
            Self::Accept(.., answer) => drop(answer.send(Err(error))),
            Self::Begin(.., answer) => drop(answer.send(Err(error))),
            Self::Finish(.., answer) => drop(answer.send(Err(error))),
        }
    }

    /// Whether it moves a bot's place in what it reads.
    pub(super) fn is_intake(&self) -> bool {
        matches!(self, Self::TakeIn(..))
    }

    /// Whether a message comes with it.
    pub(super) fn carries_message(&self) -> bool {
        !self.entries().is_empty()
    }
}

/// What a batch did. Whatever is missing is done one by one.
#[derive(Default)]
pub(super) struct Did {
    /// Where each event is, by the place of its write in the batch.
    appended: BTreeMap<usize, Vec<Appended>>,
    /// Under which epoch instances were last claimed.
    epochs: BTreeMap<i64, Epoch>,
    /// What left its inbox.
    settled: BTreeSet<(i64, i64)>,
    /// What was accepted, by the place of its write in the batch.
    accepted: BTreeMap<usize, Vec<Accepted>>,
    /// Notes of turns that were written if the epoch is theirs, by the place of their write.
    noted: BTreeSet<usize>,
    /// Which lines were written, by the place of their write in the batch.
    posted: BTreeSet<usize>,
    begun: BTreeSet<i64>,
    finished: BTreeSet<i64>,
    /// What is to be told.
    pub(super) hints: Vec<Hint>,
}

/// Takes the rows of instances, in one order whoever does it.
const LOCK: &str =
    "SELECT instance, epoch FROM instances WHERE instance = ANY($1) ORDER BY instance FOR NO KEY UPDATE";
/// Takes the rows of tenants, in one order too: each statement changes what is kept of some.
const LOCK_TENANTS: &str = "SELECT 1 FROM tenant_usage WHERE tenant IN (
        SELECT tenant FROM instances WHERE instance = ANY($1)
        UNION SELECT tenant FROM actions WHERE id = ANY($2) UNION SELECT unnest($3))
    ORDER BY tenant FOR NO KEY UPDATE";
/// Has nobody adopt the actions of these owners until the end.
const SHARE_OWNERS: &str = "SELECT 1 FROM ledger_owners WHERE owner = ANY($1) ORDER BY owner FOR SHARE";
/// What the clock of the database shows, in milliseconds.
const NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
/// The number of this transaction.
const NUMBER: &str = "SELECT CAST(txid_current() AS BIGINT)";

/// One statement that is on its way: its answer is read when all are sent.
type Sent<'a> = BoxFuture<'a, std::result::Result<Vec<Row>, Error>>;

/// A batch, column by column.
struct Columns<'a> {
    instances: Vec<i64>,
    appends: append::Columns<'a>,
    /// Whose each event is, by the place of its write.
    places: Vec<(usize, &'a NewEntry)>,
    learnt: take_in::Learnt<'a>,
    settles: settle::Columns,
    turns: turns::Turns<'a>,
    accepts: actions::Accepts<'a>,
    begins: actions::Begins,
    finishes: actions::Finishes<'a>,
    posts: post::Columns<'a>,
    /// Whose each line is, by the place of its write, and the rooms.
    lines: Vec<(usize, &'a NewLine)>,
    rooms: Vec<Cow<'a, str>>,
    /// Who works on actions, which they are, and whose.
    owners: Vec<i64>,
    actions: Vec<i64>,
    tenants: Vec<Cow<'a, str>>,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a [HotWrite], quota: &Quota) -> Self {
        let posts = post::Posts::of(batch);
        let mut columns = Self {
            instances: Vec::new(),
            appends: append::Columns::new(quota),
            places: Vec::new(),
            learnt: take_in::Learnt::default(),
            settles: settle::Columns::default(),
            turns: turns::Turns::default(),
            accepts: actions::Accepts::new(quota),
            begins: actions::Begins::default(),
            finishes: actions::Finishes::default(),
            posts: post::Columns::default(),
            lines: Vec::new(),
            rooms: posts.rooms(),
            owners: Vec::new(),
            actions: Vec::new(),
            tenants: Vec::new(),
        };
        batch.iter().enumerate().for_each(|(place, write)| columns.push(place, write, &posts));
        columns.instances.sort_unstable();
        columns.instances.dedup();
        columns
    }

    fn push(&mut self, place: usize, write: &'a HotWrite, posts: &post::Posts<'a>) {
        let mut post = None;
        if let HotWrite::Post(line, entry, _) = write {
            post = posts.post(place, line);
            let Some(post) = post else { return };
            self.posts.push(post, entry.as_deref());
            self.lines.push((place, &**line));
        }
        for entry in write.entries() {
            self.instances.push(entry.instance.0);
            self.appends.push(entry, write.is_intake(), post);
            self.places.push((place, entry));
        }
        match write {
            HotWrite::TakeIn(bot, under, intakes, _) if take_in::is_usual(intakes) => {
                self.learnt.push(bot, under.as_ref(), intakes);
            }
            HotWrite::Append(..) | HotWrite::TakeIn(..) | HotWrite::Post(..) => {}
            HotWrite::Settle(instance, _, settled, _) => {
                self.instances.push(instance.0);
                self.settles.push(*instance, settled);
            }
            HotWrite::NoteTurns(instance, epoch, notes, _) => {
                self.instances.push(instance.0);
                self.turns.push(place, *instance, *epoch, notes);
            }
            HotWrite::Accept(by, actions, _) => {
                self.owners.push(by.0);
                self.tenants.extend(actions.iter().map(|action| text(&action.tenant)));
                actions.iter().for_each(|action| self.accepts.push(place, *by, action));
            }
            HotWrite::Begin(by, id, _) => {
                self.owners.push(by.0);
                self.begins.push(*by, *id);
            }
            HotWrite::Finish(by, ends, _) => {
                self.owners.push(by.0);
                self.actions.extend(ends.iter().map(|(id, _)| id.0));
                self.finishes.push(*by, ends);
            }
        }
    }
}

/// What becomes of the commit of a batch.
pub(super) enum Commit {
    /// It was sent along, and went through.
    Done,
    /// It is still to be sent, so that it can be found out what became of it: the number of
    /// the transaction.
    Pending(i64),
}

/// Runs a batch. All statements are sent before the first answer is read, and the commit with
/// them: unless something is accepted, which must not be done twice.
pub(super) async fn run(
    client: &Client,
    begin: &str,
    batch: &[HotWrite],
    quota: &Quota,
) -> std::result::Result<(Did, Commit), Error> {
    let columns = Columns::of(batch, quota);
    let learnt = columns.learnt.columns();
    let turns = columns.turns.columns();
    let before_parts = learnt.statements().into_iter().chain(turns.statements());
    let parts = [
        (!columns.appends.is_empty(), append::APPEND.as_str(), columns.appends.given()),
        (!columns.settles.is_empty(), settle::SETTLE.as_str(), columns.settles.given()),
        (!columns.accepts.is_empty(), actions::ACCEPT, columns.accepts.given()),
        (!columns.begins.is_empty(), actions::BEGIN.as_str(), columns.begins.given()),
        (!columns.finishes.is_empty(), actions::FINISH.as_str(), columns.finishes.given()),
        (!columns.posts.is_empty(), post::POST.as_str(), columns.posts.given()),
    ];
    let there = parts.each_ref().map(|(there, ..)| *there);
    let accepts = there[2];
    let mut sent = vec![plain(client, begin), ask(client, LOCK, vec![numbers(&columns.instances)])];
    if let Some(leases) = learnt.leases() {
        sent.push(ask(client, take_in::SHARE, leases));
    }
    if !columns.owners.is_empty() {
        sent.push(ask(client, SHARE_OWNERS, vec![numbers(&columns.owners)]));
    }
    if !columns.rooms.is_empty() {
        sent.push(ask(client, post::LOCK_ROOMS, vec![texts(&columns.rooms)]));
    }
    let given = vec![numbers(&columns.instances), numbers(&columns.actions), texts(&columns.tenants)];
    sent.push(ask(client, LOCK_TENANTS, given));
    sent.extend(before_parts.map(|(statement, given)| ask(client, statement, given)));
    let before = sent.len();
    let parts = parts.into_iter().filter(|(there, ..)| *there);
    sent.extend(parts.map(|(_, statement, given)| ask(client, statement, given)));
    sent.push(if accepts { ask(client, NUMBER, Vec::new()) } else { plain(client, "COMMIT") });
    let mut answers = join_all(sent).await.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let commit = match answers.pop().unwrap_or_default().first() {
        Some(row) if accepts => Commit::Pending(row.try_get(0)?),
        _ => Commit::Done,
    };
    let mut did = Did { noted: columns.turns.taken().clone(), ..Did::default() };
    for row in &answers[1] {
        did.epochs.insert(row.try_get(0)?, Epoch(row.try_get(1)?));
    }
    let mut answers = answers.into_iter().skip(before);
    let mut next = |part: usize| if there[part] { answers.next().unwrap_or_default() } else { Vec::new() };
    for row in next(0) {
        did.note_append(&columns, &row)?;
    }
    for row in next(1) {
        did.settled.insert((row.try_get(0)?, row.try_get(1)?));
    }
    for row in next(2) {
        let (place, id): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let accepted = Accepted { id: ActionId(id), uses: None, uses_until: None };
        did.accepted.entry(usize::try_from(place).unwrap_or_default()).or_default().push(accepted);
    }
    for row in next(3) {
        did.begun.insert(row.try_get(0)?);
    }
    for row in next(4) {
        did.finished.insert(row.try_get(0)?);
    }
    for row in next(5) {
        did.note_post(&columns, &row)?;
    }
    Ok((did, commit))
}

impl Did {
    fn note_append(&mut self, columns: &Columns<'_>, row: &Row) -> std::result::Result<(), Error> {
        let Some((at, mark)) = append::read(row)? else { return Ok(()) };
        if let Some((place, entry)) = columns.places.get(at) {
            self.appended.entry(*place).or_default().push(Appended::New(mark.tail));
            self.hints.push(append::hint(entry, mark));
        }
        Ok(())
    }

    fn note_post(&mut self, columns: &Columns<'_>, row: &Row) -> std::result::Result<(), Error> {
        let (at, number): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if let Some((place, line)) = usize::try_from(at).ok().and_then(|at| columns.lines.get(at)) {
            self.posted.insert(*place);
            self.hints.push(Hint::Line(webchat::written(line, number)));
        }
        Ok(())
    }

    /// Answers a write that was done; gives back what was not.
    pub(super) fn answer(&mut self, place: usize, write: HotWrite) -> Option<HotWrite> {
        match write {
            HotWrite::Append(entry, answer) => {
                match self.appended.remove(&place).and_then(|mut all| all.pop()) {
                    Some(appended) => told(answer, appended),
                    None => Some(HotWrite::Append(entry, answer)),
                }
            }
            HotWrite::TakeIn(bot, under, intakes, answer) => {
                if !take_in::is_usual(&intakes) {
                    return Some(HotWrite::TakeIn(bot, under, intakes, answer));
                }
                let mut appended = self.appended.remove(&place).unwrap_or_default().into_iter();
                let taken = intakes.iter().map(|intake| Taken {
                    appended: intake.entry.as_ref().and_then(|_| appended.next()),
                    ..Taken::default()
                });
                told(answer, taken.collect())
            }
            HotWrite::Settle(instance, epoch, mut settled, answer) => {
                settled.retain(|it| !self.settled.contains(&(instance.0, it.seq.0)));
                if settled.is_empty() {
                    told(answer, Ownership::of(self.epochs.get(&instance.0).copied(), epoch))
                } else {
                    Some(HotWrite::Settle(instance, epoch, settled, answer))
                }
            }
            HotWrite::NoteTurns(instance, epoch, notes, answer) => {
                if self.noted.contains(&place) && self.epochs.get(&instance.0) == Some(&epoch) {
                    told(answer, Ownership::Ours)
                } else {
                    Some(HotWrite::NoteTurns(instance, epoch, notes, answer))
                }
            }
            HotWrite::Post(line, entry, answer) => {
                if !self.posted.contains(&place) {
                    return Some(HotWrite::Post(line, entry, answer));
                }
                let posting = if entry.is_some() { Posting::Enters } else { Posting::Stays(None) };
                told(answer, Posted::anew(line.message_id, &posting))
            }
            HotWrite::Accept(by, actions, answer) => match self.accepted.remove(&place) {
                Some(accepted) => told(answer, accepted),
                None => Some(HotWrite::Accept(by, actions, answer)),
            },
            HotWrite::Begin(by, id, answer) => {
                if self.begun.contains(&id.0) {
                    told(answer, true)
                } else {
                    Some(HotWrite::Begin(by, id, answer))
                }
            }
            HotWrite::Finish(by, mut ends, answer) => {
                ends.retain(|(id, _)| !self.finished.contains(&id.0));
                if ends.is_empty() {
                    told(answer, Vec::new())
                } else {
                    Some(HotWrite::Finish(by, ends, answer))
                }
            }
        }
    }
}

/// Tells whoever waits; nothing is left to do.
fn told<T>(answer: Answer<T>, value: T) -> Option<HotWrite> {
    let _ = answer.send(Ok(value));
    None
}

fn plain<'a>(client: &'a Client, statements: &'a str) -> Sent<'a> {
    Box::pin(async move { client.batch_execute(statements).await.map(|()| Vec::new()) })
}

fn ask<'a>(client: &'a Client, statement: &'a str, given: Vec<Given<'a>>) -> Sent<'a> {
    Box::pin(async move { client.query_typed(statement, &given).await })
}
