//! Following a room: first what the store has, then what happens.

use super::hub::Happening;
use angelia_core::store::{Line, Store};
use axum::response::sse;
use futures_util::Stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Lines in one answer.
pub(super) const PAGE: usize = 200;

/// One follower of a room.
pub(super) struct Reader {
    store: Arc<dyn Store>,
    happenings: broadcast::Receiver<Happening>,
    room: String,
    after: i64,
    ready: VecDeque<Line>,
    behind: bool,
}

impl Reader {
    /// A follower who has seen everything up to `after`.
    pub(super) fn new(
        store: Arc<dyn Store>,
        happenings: broadcast::Receiver<Happening>,
        room: String,
        after: i64,
    ) -> Self {
        Self { store, happenings, room, after, ready: VecDeque::new(), behind: true }
    }

    /// What they see, for as long as they look.
    pub(super) fn stream(self) -> impl Stream<Item = Result<sse::Event, Infallible>> {
        futures_util::stream::unfold(self, |mut reader| async move {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        })
    }

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                self.after = line.id;
                return line_event(&line);
            }
            if self.behind {
                self.ready = self.store.lines(&self.room, self.after, PAGE).await.ok()?.into();
                self.behind = self.ready.len() == PAGE;
                continue;
            }
            match self.happenings.recv().await {
                Ok(Happening::Line(line)) if line.id > self.after => self.ready.push_back(line),
                Ok(Happening::Line(_)) => {}
                Ok(Happening::Typing) => return Some(sse::Event::default().event("typing").data("{}")),
                Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

fn line_event(line: &Line) -> Option<sse::Event> {
    let kind = if line.edited { "edit" } else { "message" };
    sse::Event::default().event(kind).id(line.id.to_string()).json_data(line).ok()
}
