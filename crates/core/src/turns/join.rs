//! Lines that go together: one entry takes the text of all, and the id of the last.

use angelia_contract::event::Event;
use bytes::Bytes;

/// Lines that may go together.
pub const JOINED_LINES: usize = 32;
/// Bytes of their text.
pub const JOINED_BYTES: usize = 16 * 1024;

/// What the last of these events says with the text of all; `None` if one cannot be read.
pub fn join(bodies: &[Bytes]) -> Option<Bytes> {
    let mut texts = Vec::with_capacity(bodies.len());
    let mut last = None;
    for body in bodies {
        let mut event: Event = serde_json::from_slice(body).ok()?;
        texts.push(std::mem::take(&mut event.text));
        last = Some(event);
    }
    let mut joined = last?;
    joined.text = texts.join("\n");
    serde_json::to_vec(&joined).ok().map(Bytes::from)
}
