//! Leases: what only one node may do at a time, such as reading the streams of a bot.
//!
//! A lease says who; it keeps nobody from writing. That is what its token is for: it
//! grows with every holder, goes along with what the holder writes, and the store
//! refuses the write if it is not the last one. So a node that stood still and does not
//! know yet that it was replaced does no harm.

use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::error::{Error, Result};
use crate::ports::BoxFuture;
use crate::records::rows::LeaseRow;
use crate::records::{Change, Changed, Records, Rule, View, change, look};
use std::ops::Deref;
use std::time::Duration;

/// Which holder it is: larger than every earlier one of the same lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken(pub i64);

/// A lease that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What it is for.
    pub name: String,
    /// The node that holds it.
    pub node: String,
    /// What goes along with everything it writes.
    pub token: LeaseToken,
    /// When it ends unless it is renewed; `None` for one without an end.
    pub until: Option<UnixMillis>,
}

/// Under which lease something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Under {
    /// What the lease is for.
    pub lease: String,
    /// Which holder writes.
    pub token: LeaseToken,
}

impl Under {
    /// The lease of whoever reads a bot.
    pub fn bot(bot: &BotKey, token: LeaseToken) -> Self {
        Self { lease: of_bot(bot), token }
    }
}

/// For how long a lease is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// There is only this one process: it takes the lease whoever had it, without an end.
    Alone,
    /// Among others: until then, unless it is renewed.
    For(Duration),
}

/// What whoever writes without the lease, or under one that another node has by now, is told.
/// Nothing was written; a provider that tries again may reach the one that has it.
pub fn lease_lost() -> Error {
    Error::unavailable("another node does what this one did; nothing was written")
}

/// Taking, keeping and giving back leases.
pub trait Leases: Records {
    /// Takes a lease that nobody holds; `None` while somebody does.
    fn acquire(&self, name: &str, node: &str, term: Term) -> BoxFuture<'_, Result<Option<Lease>>> {
        let (name, node) = (name.to_owned(), node.to_owned());
        change(self, Change::to("take a lease"), move |view| acquire(view, &name, &node, term))
    }

    /// Holds a lease for longer; `None` if another one has it by now.
    fn renew(&self, lease: &Lease, term: Term) -> BoxFuture<'_, Result<Option<Lease>>> {
        let lease = lease.clone();
        change(self, Change::to("renew a lease"), move |view| renew(view, &lease, term))
    }

    /// Gives a lease back, so that nobody has to wait for its end. `false` if another one has it.
    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<bool>> {
        let lease = lease.clone();
        change(self, Change::to("give back a lease"), move |view| release(view, &lease))
    }

    /// Gives several back at once; those that another one has are left alone.
    fn release_all(&self, leases: &[Lease]) -> BoxFuture<'_, Result<()>> {
        let leases = leases.to_vec();
        change(self, Change::to("give back leases"), move |view| {
            leases.iter().try_for_each(|lease| release(view, lease).map(drop))
        })
    }

    /// Who holds a lease.
    fn holder(&self, name: &str) -> BoxFuture<'_, Result<Option<Lease>>> {
        let name = name.to_owned();
        look(self, "ask who holds a lease", move |view| holder(view, &name))
    }
}

impl<R: Records + ?Sized> Leases for R {}

/// Records that are changed under a lease: a change is refused once another node has it.
pub struct Fenced<R> {
    records: R,
    under: Under,
}

impl<R> Fenced<R> {
    /// These, for whoever holds this.
    pub fn new(records: R, under: Under) -> Self {
        Self { records, under }
    }
}

impl<R: Deref<Target: Records> + Send + Sync> Records for Fenced<R> {
    fn change(&self, change: Change, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        let Under { lease, token } = self.under.clone();
        let fenced = move |view: &mut View<'_>| {
            let row = view.get::<LeaseRow>((&lease,))?;
            if row.is_some_and(|row| LeaseToken(row.token) == token && !row.released) {
                rule(view)
            } else {
                Err(lease_lost())
            }
        };
        self.records.change(change, Box::new(fenced))
    }

    fn look(&self, what: &'static str, rule: Rule) -> BoxFuture<'_, Result<()>> {
        self.records.look(what, rule)
    }

    fn changed(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Changed>>> {
        self.records.changed(after, limit)
    }
}

/// The lease of whoever reads the streams of a bot, and makes its calls.
pub fn of_bot(bot: &BotKey) -> String {
    format!("bot {}/{}", bot.platform, bot.bot)
}

/// The lease of whoever reads one shard of a bot, where its shards are spread over nodes. Of
/// another number of shards each is another one.
pub fn of_shard(bot: &BotKey, shard: u32, count: u32) -> String {
    format!("shard {}/{}/{shard}/{count}", bot.platform, bot.bot)
}

/// Takes a lease that nobody holds. A new holder has a new token, also the node that had
/// it before: of what it did then something may still be on its way.
pub(crate) fn acquire(view: &mut View<'_>, name: &str, node: &str, term: Term) -> Result<Option<Lease>> {
    let former = view.get::<LeaseRow>((name,))?;
    if term != Term::Alone && former.as_ref().is_some_and(|row| row.is_held(view)) {
        return Ok(None);
    }
    // Whoever worked on what waits does so until the new holder has taken that up.
    let (token, owner) = former.map_or((1, 0), |row| (row.token + 1, row.owner));
    let until = end(view, term);
    let (name, node) = (name.to_owned(), node.to_owned());
    view.put(&LeaseRow { name: name.clone(), node: node.clone(), token, until, released: false, owner });
    Ok(Some(Lease { name, node, token: LeaseToken(token), until }))
}

/// Holds a lease for longer. Late is no matter as long as nobody else took it.
pub(crate) fn renew(view: &mut View<'_>, lease: &Lease, term: Term) -> Result<Option<Lease>> {
    let Some(row) = ours(view, lease)? else { return Ok(None) };
    let until = end(view, term);
    view.put(&LeaseRow { until, ..row });
    Ok(Some(Lease { until, ..lease.clone() }))
}

/// Gives a lease back. Its row stays: the next token is to be larger.
fn release(view: &mut View<'_>, lease: &Lease) -> Result<bool> {
    let Some(row) = ours(view, lease)? else { return Ok(false) };
    let until = Some(view.now());
    view.put(&LeaseRow { released: true, until, ..row });
    Ok(true)
}

/// Who holds a lease.
fn holder(view: &mut View<'_>, name: &str) -> Result<Option<Lease>> {
    let row = view.get::<LeaseRow>((name,))?.filter(|row| row.is_held(view));
    Ok(row.map(|LeaseRow { name, node, token, until, .. }| Lease {
        name,
        node,
        token: LeaseToken(token),
        until,
    }))
}

/// Whether somebody may note how far a bot was read: whoever holds the lease of that, or anybody
/// if there never was one.
pub fn may_advance(under: Option<&Under>, current: Option<LeaseToken>) -> Result<()> {
    if under.map(|under| under.token) == current { Ok(()) } else { Err(lease_lost()) }
}

fn ours(view: &mut View<'_>, lease: &Lease) -> Result<Option<LeaseRow>> {
    let row = view.get::<LeaseRow>((&lease.name,))?;
    Ok(row.filter(|row| LeaseToken(row.token) == lease.token && !row.released))
}

fn end(view: &View<'_>, term: Term) -> Option<UnixMillis> {
    match term {
        Term::Alone => None,
        Term::For(span) => Some(view.now().after(span)),
    }
}

impl LeaseRow {
    fn is_held(&self, view: &View<'_>) -> bool {
        !self.released && self.until.is_none_or(|until| until > view.now())
    }
}
