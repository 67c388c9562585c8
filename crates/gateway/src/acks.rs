//! Acknowledgements, in the order of the frames.
//!
//! A connector takes the acknowledgement of a frame for that of every frame it
//! pushed before on the same socket. So none may overtake another: an event
//! that is done lets its acknowledgement go, and it is written once those of
//! all earlier frames of its socket are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Frames of one socket that may be unacknowledged. Connectors keep about ten
/// in flight; one that goes on like this does not wait for acknowledgements.
pub(crate) const MAX_FRAMES: usize = 1024;

/// More came than was acknowledged or could be kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flooded;

/// The acknowledgements one socket owes.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    line: Mutex<Line>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Line {
    /// Frames whose acknowledgement was not written, oldest first.
    frames: VecDeque<Frame>,
    /// Number of the first of them: all before were written.
    first: u64,
    /// Nothing behind `frames` is acknowledged any more.
    cut: bool,
}

#[derive(Debug)]
struct Frame {
    buffer_id: String,
    released: bool,
}

/// The acknowledgement of one frame. Unless it is released it is not written,
/// and none behind it either.
#[derive(Debug)]
pub(crate) struct Ack {
    acks: Arc<Acks>,
    number: u64,
}

impl Acks {
    /// Takes a place in line for a frame that came.
    pub(crate) fn arrive(self: &Arc<Self>, buffer_id: String) -> Result<Ack, Flooded> {
        let mut line = self.line();
        if line.frames.len() >= MAX_FRAMES {
            return Err(Flooded);
        }
        let number = line.end();
        if !line.cut {
            line.frames.push_back(Frame { buffer_id, released: false });
        }
        Ok(Ack { acks: Arc::clone(self), number })
    }

    /// Waits for ids to acknowledge, in their order. From here on they count
    /// as written.
    pub(crate) async fn next(&self) -> Vec<String> {
        loop {
            let due = self.due();
            if !due.is_empty() {
                return due;
            }
            self.ready.notified().await;
        }
    }

    /// The same without waiting.
    pub(crate) fn due(&self) -> Vec<String> {
        let mut line = self.line();
        let count = line.frames.iter().take_while(|frame| frame.released).count();
        line.first += count as u64;
        line.frames.drain(..count).map(|frame| frame.buffer_id).collect()
    }

    /// The socket is gone: nothing more is written.
    pub(crate) fn end(&self) {
        self.line().cut_at(0);
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// The place of a frame; none if it was written or cut off.
    fn place(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (place < self.frames.len()).then_some(place)
    }

    fn cut_at(&mut self, place: usize) {
        self.frames.truncate(place);
        self.cut = true;
    }
}

impl Ack {
    /// Lets it be written as soon as it is its turn.
    pub(crate) fn release(&self) {
        let mut line = self.acks.line();
        if let Some(place) = line.place(self.number)
            && let Some(frame) = line.frames.get_mut(place)
        {
            frame.released = true;
        }
        drop(line);
        self.acks.ready.notify_one();
    }

    /// Gives it up, and with it all behind it, unless it was written already.
    /// Tells whether it was given up.
    pub(crate) fn withdraw(&self) -> bool {
        let mut line = self.acks.line();
        if let Some(place) = line.place(self.number) {
            line.cut_at(place);
        }
        self.number >= line.first
    }

    fn is_written(&self) -> bool {
        self.number < self.acks.line().first
    }

    fn is_pending(&self) -> bool {
        self.acks.line().place(self.number).is_some()
    }
}

/// What an event owes for all its deliveries.
#[derive(Debug)]
pub(crate) struct Receipt(Mutex<Owed>);

#[derive(Debug)]
struct Owed {
    acks: Vec<Ack>,
    released: bool,
    /// The connector does not keep the event any more.
    settled: bool,
}

impl Receipt {
    /// Without an acknowledgement, or `awaited` as false, the connector does
    /// not keep the event whatever happens here.
    pub(crate) fn new(ack: Option<Ack>, awaited: bool) -> Arc<Self> {
        let settled = ack.is_none() || !awaited;
        Arc::new(Self(Mutex::new(Owed { acks: ack.into_iter().collect(), released: false, settled })))
    }

    /// Takes on the acknowledgement of one more delivery.
    pub(crate) fn add(&self, ack: Ack) {
        let mut owed = self.owed();
        owed.settled |= owed.acks.iter().any(Ack::is_written);
        // Those of former sockets would otherwise pile up.
        owed.acks.retain(Ack::is_pending);
        if owed.released {
            ack.release();
        }
        owed.acks.push(ack);
    }

    /// Lets all acknowledgements go, also those of later deliveries.
    pub(crate) fn release(&self) {
        let mut owed = self.owed();
        owed.released = true;
        owed.acks.iter().for_each(Ack::release);
    }

    /// Leaves the event to the connector, if that still keeps it: then no
    /// acknowledgement of it is ever written.
    pub(crate) fn withdraw(&self) -> bool {
        let mut owed = self.owed();
        let mut settled = owed.settled;
        if !settled {
            for ack in owed.acks.drain(..) {
                settled |= !ack.withdraw();
            }
        }
        owed.settled = settled;
        !settled
    }

    fn owed(&self) -> MutexGuard<'_, Owed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ids: &[&str]) -> (Arc<Acks>, Vec<Ack>) {
        let acks = Arc::new(Acks::default());
        let places = ids.iter().map(|id| acks.arrive((*id).to_owned()).unwrap()).collect();
        (acks, places)
    }

    #[test]
    fn no_acknowledgement_overtakes_another() {
        let (acks, places) = line(&["a", "b", "c"]);
        places[2].release();
        places[1].release();
        places[1].release();
        assert!(acks.due().is_empty());
        places[0].release();
        assert_eq!(acks.due(), ["a", "b", "c"]);
        assert!(acks.due().is_empty());
        places[0].release();
        let late = acks.arrive("d".to_owned()).unwrap();
        assert!(acks.due().is_empty());
        late.release();
        assert_eq!(acks.due(), ["d"]);
    }

    #[test]
    fn what_is_given_up_is_never_written_nor_anything_behind_it() {
        let (acks, places) = line(&["a", "b", "c"]);
        places[2].release();
        assert!(places[1].withdraw());
        places[1].release();
        let late = acks.arrive("d".to_owned()).unwrap();
        late.release();
        places[0].release();
        assert_eq!(acks.due(), ["a"]);
        assert!(acks.due().is_empty());
        assert!(!places[0].withdraw());
        assert!(places[2].withdraw() && late.withdraw());
    }

    #[test]
    fn the_line_is_bounded_and_ends_with_its_socket() {
        let (acks, places) = line(&["x"; MAX_FRAMES]);
        assert_eq!(acks.arrive("y".to_owned()).map(drop), Err(Flooded));
        places.iter().for_each(Ack::release);
        acks.end();
        assert!(acks.due().is_empty());
        assert!(places[0].withdraw());
    }

    #[test]
    fn an_event_is_left_only_if_no_delivery_of_it_was_acknowledged() {
        let (old, mut first) = line(&["a"]);
        let (new, mut second) = line(&["a"]);
        let receipt = Receipt::new(first.pop(), true);
        old.end();
        receipt.add(second.pop().unwrap());
        receipt.release();
        assert_eq!(new.due(), ["a"]);
        assert!(!receipt.withdraw());

        let (acks, mut place) = line(&["b"]);
        let receipt = Receipt::new(place.pop(), true);
        assert!(receipt.withdraw());
        receipt.release();
        assert!(acks.due().is_empty());

        let (acks, mut place) = line(&["c", "c"]);
        let receipt = Receipt::new(Some(place.remove(0)), true);
        receipt.release();
        assert_eq!(acks.due(), ["c"]);
        // The first is forgotten, but not that it was written.
        receipt.add(place.remove(0));
        assert!(!receipt.withdraw());
        assert_eq!(acks.due(), ["c"]);

        assert!(!Receipt::new(None, true).withdraw());
        let (_acks, mut place) = line(&["d"]);
        assert!(!Receipt::new(place.pop(), false).withdraw());
    }
}
