//! Leases: what only one node may do at a time, such as reading the streams of a bot.
//!
//! A lease says who; it keeps nobody from writing. That is what its token is for: it
//! grows with every holder, goes along with what the holder writes, and the store
//! refuses the write if it is not the last one. So a node that stood still and does not
//! know yet that it was replaced does no harm.

use super::BoxFuture;
use crate::clock::UnixMillis;
use crate::error::Error;
use crate::error::Result;
use crate::lease;
use crate::records::{self, Change, Records};
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
        records::change(self, Change::to("take a lease"), move |view| {
            lease::acquire(view, &name, &node, term)
        })
    }

    /// Holds a lease for longer; `None` if another one has it by now.
    fn renew(&self, lease: &Lease, term: Term) -> BoxFuture<'_, Result<Option<Lease>>> {
        let lease = lease.clone();
        records::change(self, Change::to("renew a lease"), move |view| lease::renew(view, &lease, term))
    }

    /// Gives a lease back, so that nobody has to wait for its end. `false` if another one has it.
    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<bool>> {
        let lease = lease.clone();
        records::change(self, Change::to("give back a lease"), move |view| lease::release(view, &lease))
    }

    /// Who holds a lease.
    fn holder(&self, name: &str) -> BoxFuture<'_, Result<Option<Lease>>> {
        let name = name.to_owned();
        records::look(self, "ask who holds a lease", move |view| lease::holder(view, &name))
    }
}

impl<R: Records + ?Sized> Leases for R {}
