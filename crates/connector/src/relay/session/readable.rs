//! An event as the peer reads it, where it differs from what is kept.

use super::Session;
use angelia_contract::event::Event;
use angelia_core::context::reply_as_line;
use angelia_core::inbox::Entry;
use angelia_core::media::has_files;
use std::borrow::Cow;

/// What an event has that refers to another message. Within a text the quotation marks are escaped.
const REFERS: &[u8] = b"\"reply_to\":{";

impl Session {
    /// What a peer is given of an event: what it refers to is a line before it, where only lines
    /// are read (hermes 0.19.0), and its files are where this peer finds them.
    pub(super) fn readable<'a>(&self, entry: &Entry, event: &'a [u8]) -> Cow<'a, [u8]> {
        let refers = || event.windows(REFERS.len()).any(|window| window == REFERS);
        let (reply, files) = (!self.profile.reads_replies && refers(), has_files(event));
        if !reply && !files {
            return event.into();
        }
        let Ok(mut read) = serde_json::from_slice::<Event>(event) else { return event.into() };
        if reply {
            reply_as_line(&mut read);
        }
        if files {
            self.with_files(entry, &mut read);
        }
        serde_json::to_vec(&read).map_or(event.into(), Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_contract::event::{ContextItem, ReplyTo};

    #[test]
    fn what_is_replied_to_is_the_last_line_and_the_rest_is_as_it_was() {
        let reply_to =
            ReplyTo { text: Some("at noon".into()), author: Some("Ann".into()), ..ReplyTo::default() };
        let before = ContextItem { text: "hi".into(), ..ContextItem::default() };
        let event = Event { reply_to: Some(reply_to), context: vec![before], ..Event::default() };
        let kept = serde_json::to_vec(&event).unwrap();
        assert!(kept.windows(REFERS.len()).any(|window| window == REFERS));
        let mut read: Event = serde_json::from_slice(&kept).unwrap();
        reply_as_line(&mut read);
        assert_eq!((&read.reply_to, &read.text), (&event.reply_to, &event.text));
        assert_eq!(read.context[0], event.context[0]);
        let last = &read.context[1];
        assert_eq!((last.source.user_name.as_deref(), &*last.text), (Some("(in reply to) Ann"), "at noon"));
    }
}
