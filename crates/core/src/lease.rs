//! The rules of leases: who may take one, and whose writes still count.

use crate::directory::BotKey;
use crate::error::Result;
use crate::ports::{Lease, LeaseToken, Term, lease_lost};
use crate::records::View;
use crate::records::rows::LeaseRow;

/// The lease of whoever reads the streams of a bot.
pub fn of_bot(bot: &BotKey) -> String {
    format!("bot {}/{}", bot.platform, bot.bot)
}

/// Takes a lease that nobody holds. A new holder has a new token, also the node that had
/// it before: of what it did then something may still be on its way.
pub fn acquire(view: &mut View<'_>, name: &str, node: &str, term: Term) -> Result<Option<Lease>> {
    let former = view.get::<LeaseRow>((name,))?;
    if term != Term::Alone && former.as_ref().is_some_and(|row| row.is_held(view)) {
        return Ok(None);
    }
    let token = former.map_or(1, |row| row.token + 1);
    let until = end(view, term);
    view.put(&LeaseRow { name: name.to_owned(), node: node.to_owned(), token, until, released: false });
    Ok(Some(Lease { name: name.to_owned(), node: node.to_owned(), token: LeaseToken(token), until }))
}

/// Holds a lease for longer. Late is no matter as long as nobody else took it.
pub fn renew(view: &mut View<'_>, lease: &Lease, term: Term) -> Result<Option<Lease>> {
    let Some(row) = ours(view, lease)? else { return Ok(None) };
    let until = end(view, term);
    view.put(&LeaseRow { until, ..row });
    Ok(Some(Lease { until, ..lease.clone() }))
}

/// Gives a lease back. Its row stays: the next token is to be larger.
pub fn release(view: &mut View<'_>, lease: &Lease) -> Result<bool> {
    let Some(row) = ours(view, lease)? else { return Ok(false) };
    view.put(&LeaseRow { released: true, ..row });
    Ok(true)
}

/// Who holds a lease.
pub fn holder(view: &mut View<'_>, name: &str) -> Result<Option<Lease>> {
    let row = view.get::<LeaseRow>((name,))?.filter(|row| row.is_held(view));
    Ok(row.map(|LeaseRow { name, node, token, until, .. }| Lease {
        name,
        node,
        token: LeaseToken(token),
        until,
    }))
}

/// Whether somebody may note how far a bot was read: whoever holds its lease, or anybody
/// if there never was one.
pub fn may_advance(under: Option<LeaseToken>, current: Option<LeaseToken>) -> Result<()> {
    if under == current { Ok(()) } else { Err(lease_lost()) }
}

fn ours(view: &mut View<'_>, lease: &Lease) -> Result<Option<LeaseRow>> {
    let row = view.get::<LeaseRow>((&lease.name,))?;
    Ok(row.filter(|row| LeaseToken(row.token) == lease.token && !row.released))
}

fn end(view: &View<'_>, term: Term) -> Option<crate::clock::UnixMillis> {
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
