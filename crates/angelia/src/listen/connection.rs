//! One connection: how it stands, and its end from outside.

use angelia_core::clock::{self, Mono};
use angelia_core::connections::{Doing, Standing};
use parking_lot::Mutex;
use std::io;
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// Shared by the table, the socket and the requests on it.
pub(super) struct Connection {
    state: Mutex<State>,
    over: Notify,
}

struct State {
    standing: Standing,
    ended: bool,
    /// Whether anything was asked yet.
    asked: bool,
    /// Whether the last bytes that moved were ours.
    wrote_last: bool,
    /// Whoever waits for the socket: the end must be noticed there, and a relay
    /// socket has no task that could just be dropped.
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Connection {
    pub(super) fn new(now: Mono) -> Self {
        let standing = Standing { doing: Doing::Asking, since: now, stuck_since: None, due: None };
        let state =
            State { standing, ended: false, asked: false, wrote_last: false, reader: None, writer: None };
        Self { state: Mutex::new(state), over: Notify::new() }
    }

    /// How it stands; `None` if it is about to go.
    pub(super) fn standing(&self) -> Option<Standing> {
        let state = self.state.lock();
        (!state.ended).then_some(state.standing)
    }

    /// Ends it: its task is told, and its socket fails from here on.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let waiting = [state.reader.take(), state.writer.take()];
        drop(state);
        self.over.notify_one();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Resolves when somebody ended it.
    pub(super) async fn ended(&self) {
        self.over.notified().await;
    }

    /// A request's head is complete. Whether it was sent before the answer to the
    /// one before it was: nothing was read since that was written.
    pub(super) fn asks(&self) -> bool {
        let mut state = self.state.lock();
        let ahead = state.asked && state.wrote_last;
        state.asked = true;
        ahead
    }

    pub(super) fn does(&self, doing: Doing) {
        let mut state = self.state.lock();
        // A relay socket stays one.
        if state.standing.doing != Doing::Relay && state.standing.doing != doing {
            state.standing.doing = doing;
            state.standing.since = clock::mono();
        }
    }

    /// Its peer has to have taken, by then, what it was given of an answer.
    pub(super) fn is_due(&self, due: Option<Mono>) {
        self.state.lock().standing.due = due;
    }

    /// The body of the request is complete, or nobody wants more of it.
    pub(super) fn received(&self) {
        if self.state.lock().standing.doing == Doing::Asking {
            self.does(Doing::Answering);
        }
    }

    /// What came of a read, with how many bytes.
    pub(super) fn on_read(&self, read: Poll<io::Result<usize>>, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        let mut state = self.state.lock();
        if state.ended {
            return Poll::Ready(Err(closed()));
        }
        match &read {
            Poll::Pending => remember(&mut state.reader, cx),
            Poll::Ready(Ok(1..)) => {
                state.wrote_last = false;
                if state.standing.doing == Doing::Quiet {
                    state.standing.doing = Doing::Asking;
                    state.standing.since = clock::mono();
                }
            }
            Poll::Ready(_) => {}
        }
        read
    }

    /// What came of a write.
    pub(super) fn on_write(
        &self,
        written: Poll<io::Result<usize>>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state.lock();
        if state.ended {
            return Poll::Ready(Err(closed()));
        }
        match &written {
            Poll::Pending => {
                remember(&mut state.writer, cx);
                state.standing.stuck_since.get_or_insert_with(clock::mono);
            }
            Poll::Ready(Ok(1..)) => {
                state.wrote_last = true;
                state.standing.stuck_since = None;
            }
            Poll::Ready(_) => {}
        }
        written
    }
}

fn remember(waker: &mut Option<Waker>, cx: &Context<'_>) {
    if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
        *waker = Some(cx.waker().clone());
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the connection was closed: its peer read too little")
}
