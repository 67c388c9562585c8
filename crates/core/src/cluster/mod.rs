//! The nodes of a cluster: who is there, and how what only one node may do is shared out.
//!
//! A node gives a sign of life ([`beat`]) about twice a second, in one change: it holds its
//! leases for longer, takes those that are free and its share, and learns who else is there.
//! Whoever stays silent for [`TERM`] is taken for gone; what it held is free then.

mod duties;

pub use duties::Duties;

use crate::clock::UnixMillis;
use crate::error::Result;
use crate::lease::{self, Lease, Term};
use crate::records::rows::{LeaseRow, NodeRow};
use crate::records::{Change, Records, View, change, look};
use crate::space::Class;
use crate::store::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// For how long a node is believed to be there without a sign of it, and its leases are its own.
/// Whoever takes a bot over waits for its provider's pace as well, all within five seconds.
pub const TERM: Duration = Duration::from_secs(3);
/// How often it gives one.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);
/// How long a lease has to be free before somebody takes it who has a share already: others
/// had two chances by then.
const PATIENCE: Duration = Duration::from_millis(1_100);
/// How long a node has to be there before others give leases away for its sake: one that
/// starts again and again would have them go round.
const SETTLED: Duration = Duration::from_secs(10);
/// For how long the row of a node that is gone is kept, for whoever asks what became of it.
const REMEMBERED: Duration = Duration::from_secs(600);

/// A sign of life.
#[derive(Clone, Debug)]
pub struct Sign {
    /// Who gives it.
    pub node: String,
    /// As whom the ledger knows it.
    pub owner: i64,
    /// What it tells of itself, as JSON text.
    pub facts: String,
    /// What it holds.
    pub held: Vec<Lease>,
    /// What it would hold, by name.
    pub wanted: Vec<String>,
    /// What it gave up for others just now: they come first.
    pub offered: Vec<String>,
    /// What it gave up for others before, and none of them took: it stays.
    pub unwanted: Vec<String>,
}

/// What a node learns with a sign of life.
#[derive(Clone, Debug, Default)]
pub struct Beat {
    /// What it holds from now on: what it held and nobody took, and what it took.
    pub held: Vec<Lease>,
    /// One that another node should have; it is given up as soon as its work has stopped.
    pub give_up: Option<String>,
    /// Who is there, itself among them.
    pub nodes: Vec<NodeRow>,
    /// Nodes that are gone without having said so, as long as they are remembered.
    pub gone: Vec<NodeRow>,
}

/// Being one of several nodes.
pub trait Nodes: Records {
    /// Gives a sign of life.
    fn beat(&self, sign: Sign) -> BoxFuture<'_, Result<Beat>> {
        let change_to = Change::to("give a sign of life").class(Class::Operator);
        change(self, change_to, move |view| beat(view, &sign))
    }

    /// Leaves: gives back what is held, so that nobody has to wait for its end.
    fn leave(&self, node: &str) -> BoxFuture<'_, Result<()>> {
        let node = node.to_owned();
        change(self, Change::to("leave the nodes").class(Class::Operator), move |view| leave(view, &node))
    }

    /// Who is there, and who was.
    fn nodes(&self) -> BoxFuture<'_, Result<(UnixMillis, Vec<NodeRow>)>> {
        look(self, "ask which nodes there are", |view| Ok((view.now(), view.all::<NodeRow>()?)))
    }

    /// Every lease that was ever taken.
    fn leases(&self) -> BoxFuture<'_, Result<Vec<LeaseRow>>> {
        look(self, "ask who holds what", |view| view.all::<LeaseRow>())
    }
}

impl<R: Records + ?Sized> Nodes for R {}

impl NodeRow {
    /// Whether it is there.
    pub fn is_there(&self, now: UnixMillis) -> bool {
        self.until > now
    }
}

fn beat(view: &mut View<'_>, sign: &Sign) -> Result<Beat> {
    let now = view.now();
    let mut all = view.all::<NodeRow>()?;
    // What it held while it was taken for gone may be somebody else's; the rows say so.
    let mut held = Vec::new();
    for lease in &sign.held {
        held.extend(lease::renew(view, lease, Term::For(TERM))?);
    }
    let before = all.iter().find(|row| row.node == sign.node);
    let started_at = before.map_or(now, |row| row.started_at);
    all.retain(|row| row.node != sign.node);
    for row in all.extract_if(.., |row| row.until.after(REMEMBERED) < now) {
        view.delete(&row);
    }
    let me = NodeRow {
        node: sign.node.clone(),
        owner: sign.owner,
        started_at,
        until: now.after(TERM),
        takes: !sign.wanted.is_empty(),
        facts: sign.facts.clone(),
    };
    view.put(&me);
    let (mut nodes, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|row| row.is_there(now));
    nodes.push(me);
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    let leases = view.all::<LeaseRow>()?;
    let takers = nodes.iter().filter(|node| node.takes).count();
    let share = sign.wanted.len().div_ceil(takers.max(1));
    for name in &sign.wanted {
        if held.iter().any(|lease| lease.name == *name) {
            continue;
        }
        let free = match leases.iter().find(|row| row.name == *name) {
            Some(row) => free_for(row, now),
            // It never was anybody's, and this node did not see it any earlier.
            None => Some(since(started_at, now)),
        };
        let at_once = held.len() < share && !sign.offered.contains(name);
        if free.is_some_and(|free| at_once || free >= PATIENCE) {
            held.extend(lease::acquire(view, name, &sign.node, Term::For(TERM))?);
        }
    }
    let give_up = give_up(sign, held.len(), &nodes, &leases, now);
    Ok(Beat { held, give_up, nodes, gone })
}

/// For how long a lease has been nobody's; `None` if it is somebody's.
fn free_for(row: &LeaseRow, now: UnixMillis) -> Option<Duration> {
    match row.until {
        Some(until) if row.released || until <= now => Some(since(until, now)),
        // A server that was alone gave it back, long ago.
        None if row.released => Some(Duration::MAX),
        _ => None,
    }
}

fn since(then: UnixMillis, now: UnixMillis) -> Duration {
    Duration::from_millis(u64::try_from(now.0.saturating_sub(then.0)).unwrap_or_default())
}

/// A lease that another node should have: whoever has least has two fewer than this one,
/// which has most. The last by name, so that it is the same one until it is given up; never one
/// that was only just taken, or that nobody else wants.
fn give_up(
    sign: &Sign,
    held: usize,
    nodes: &[NodeRow],
    leases: &[LeaseRow],
    now: UnixMillis,
) -> Option<String> {
    let me = sign.node.as_str();
    let mut counts: BTreeMap<&str, usize> = nodes
        .iter()
        .filter(|node| node.takes && node.started_at.after(SETTLED) <= now)
        .map(|node| (node.node.as_str(), 0))
        .collect();
    for row in leases.iter().filter(|row| row.node != me && free_for(row, now).is_none()) {
        if let Some(count) = counts.get_mut(row.node.as_str()) {
            *count += 1;
        }
    }
    counts.remove(me);
    let least = counts.values().min()?;
    let most = counts.values().max()?;
    let is_mine_to_give = held >= *most && held >= least + 2;
    let names = sign.held.iter().map(|lease| &lease.name).filter(|name| !sign.unwanted.contains(name));
    names.max().filter(|_| is_mine_to_give).cloned()
}

fn leave(view: &mut View<'_>, node: &str) -> Result<()> {
    for row in view.all::<LeaseRow>()?.into_iter().filter(|row| row.node == node && !row.released) {
        let until = Some(view.now());
        view.put(&LeaseRow { released: true, until, ..row });
    }
    if let Some(row) = view.get::<NodeRow>((node,))? {
        view.delete(&row);
    }
    Ok(())
}
