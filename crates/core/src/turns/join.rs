//! Lines that go together: one entry takes the text and the files of all, and the id of the last.

use crate::context::newest;
use angelia_contract::event::Event;
use bytes::Bytes;

/// Lines that may go together.
pub const JOINED_LINES: usize = 32;
/// Bytes of their text.
pub const JOINED_BYTES: usize = 16 * 1024;

/// What the last of these events says with the text and the files of all, and the lines before each; `None`
/// if one cannot be read.
pub fn join(bodies: &[Bytes]) -> Option<Bytes> {
    let mut texts = Vec::with_capacity(bodies.len());
    let (mut context, mut media, mut last) = (Vec::new(), Vec::new(), None);
    for body in bodies {
        let mut event: Event = serde_json::from_slice(body).ok()?;
        texts.push(std::mem::take(&mut event.text));
        context.append(&mut event.context);
        media.append(&mut event.media);
        last = Some(event);
    }
    let mut joined = last?;
    texts.retain(|text| !text.is_empty());
    joined.text = texts.join("\n");
    joined.media = media;
    joined.context = newest(context);
    serde_json::to_vec(&joined).ok().map(Bytes::from)
}
