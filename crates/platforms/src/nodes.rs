//! The nodes that share a store, as bots see them: where a bot is, how what was posted gets there,
//! and what only one node does at a time.

use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::ports::LeaseToken;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// This node among the others that share its store.
pub trait Nodes: Send + Sync {
    /// Whether this node has a bot: reads it and makes its calls.
    fn has(&self, bot: &BotKey) -> bool;

    /// How many nodes there are, this one among them.
    fn count(&self) -> usize;

    /// Passes on to the node that has a bot what its provider posted here. `None` if that does
    /// not answer in time; it may have taken it all the same.
    fn forward<'a>(
        &'a self,
        bot: &'a BotKey,
        posted: Carried<'a>,
        within: Duration,
    ) -> BoxFuture<'a, Option<Response>>;

    /// Something that only one node does at a time. It is shared out from now on.
    fn duty(&self, name: &str) -> Arc<dyn Duty>;

    /// Something that is not shared out any more.
    fn no_duty(&self, name: &str);

    /// Has a turn that no node has again for this long; `false` if somebody has it now.
    fn turn<'a>(&'a self, name: &'a str, span: Duration) -> BoxFuture<'a, Result<bool>>;
}

/// Something that only one node does at a time.
pub trait Duty: Send + Sync {
    /// Resolves once it is this node's. Whoever asked is at work from now on, until it says
    /// [`Duty::stopped`].
    fn ours(&self) -> BoxFuture<'_, LeaseToken>;

    /// Resolves when its work has to stop. Polled before the work itself, it keeps a node that
    /// stood still from going on with it.
    fn over(&self) -> BoxFuture<'_, ()>;

    /// Nothing of it goes on here any more.
    fn stopped(&self);
}

/// What is passed on of a request.
pub struct Carried<'a> {
    /// Method, URL and headers.
    pub parts: &'a Parts,
    /// Those of the headers that whoever takes it reads.
    pub headers: &'static [&'static str],
    /// The body as it was sent.
    pub body: &'a Bytes,
}

/// Marks a request that another node passed on: it goes no further.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded;
