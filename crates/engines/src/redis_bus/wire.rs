//! What a message on the bus looks like: sixteen bytes that prove its sender, a version,
//! a header in JSON, and the body of an entry as it is.
//!
//! Whoever can write to the Redis can write to these channels. So every message proves,
//! under the cluster's key, who wrote it and for which channel; what does not is dropped.

use angelia_core::admission::DropReason;
use angelia_core::clock::UnixMillis;
use angelia_core::inbox::{Entry, EntryKind, InstanceId, Mark, Seq};
use angelia_core::ports::{Buttons, Control, Hint, HintKind, Line, RoomFile, Topic};
use angelia_core::turns::WhileBusy;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::borrow::Cow;

/// Larger bodies stay in the store: a hint without them costs its receiver one read.
pub(super) const MAX_GIFT: usize = 16 * 1024;
/// Nothing longer is sent or read. Of what would be, others are told that they missed it.
pub(super) const MAX_MESSAGE: usize = 128 * 1024;
/// Bytes of the proof.
const PROOF: usize = 16;
/// What stands before everything that is proven, so that no proof fits elsewhere. The place of
/// the proof and of the version never change, so that nodes of two versions know each other.
const DOMAIN: &[u8] = b"angelia bus";
/// How this node writes and reads the rest.
const VERSION: u8 = 1;

/// Why a message is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It was not written by a node of this cluster, or for another channel.
    Forged,
    /// It was, and this node cannot read it: most likely one that is newer wrote it.
    Unreadable,
}

/// Writes and reads messages.
pub(super) struct Wire {
    node: String,
    proof: Hmac<Sha256>,
}

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    /// The node that says it.
    #[serde(borrow)]
    n: Cow<'a, str>,
    #[serde(borrow)]
    h: Told<'a>,
}

/// A hint without the bytes that follow the header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told<'a> {
    Log {
        i: InstanceId,
        m: Mark,
        #[serde(borrow)]
        e: EntryHeader<'a>,
        k: HintKind,
    },
    Reached {
        i: InstanceId,
        m: Mark,
    },
    Removed {
        i: InstanceId,
        s: Cow<'a, [Seq]>,
    },
    Revised {
        i: InstanceId,
        #[serde(borrow)]
        e: EntryHeader<'a>,
    },
    #[serde(borrow)]
    Line(Box<LineHeader<'a>>),
    Room {
        #[serde(borrow)]
        r: Cow<'a, str>,
        #[serde(borrow)]
        e: Cow<'a, str>,
    },
    Control(Cow<'a, Control>),
    Missed(Option<Topic>),
}

/// An entry without its body.
#[derive(Serialize, Deserialize)]
struct EntryHeader<'a> {
    s: Seq,
    k: Cow<'a, str>,
    #[serde(borrow)]
    p: Cow<'a, str>,
    #[serde(borrow)]
    b: Cow<'a, str>,
    #[serde(borrow)]
    c: Cow<'a, str>,
    #[serde(borrow)]
    y: Cow<'a, str>,
    r: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    w: Option<WhileBusy>,
}

/// A line, in full: readers on other nodes are told what those here are.
#[derive(Serialize, Deserialize)]
struct LineHeader<'a> {
    id: i64,
    place: i64,
    room: Cow<'a, str>,
    message_id: Cow<'a, str>,
    author: Cow<'a, str>,
    from_agent: bool,
    text: Cow<'a, str>,
    reply_to: Option<Cow<'a, str>>,
    client_id: Option<Cow<'a, str>>,
    files: Cow<'a, [RoomFile]>,
    undelivered: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buttons: Option<Cow<'a, Buttons>>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    marks: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_name: Option<Cow<'a, str>>,
    at: UnixMillis,
    edited: bool,
}

impl Wire {
    /// Messages of `node`, proven with `key`.
    pub(super) fn new(node: &str, key: &[u8; 32]) -> Self {
        let proof = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        Self { node: node.to_owned(), proof }
    }

    /// The message that says `hint` in `channel`; `None` for one that is too long to be said.
    pub(super) fn write(&self, channel: &str, hint: &Hint) -> Option<Vec<u8>> {
        let mut message = vec![0; PROOF];
        message.push(VERSION);
        message.extend([0; 4]);
        let begin = message.len();
        let header = Header { n: Cow::Borrowed(&self.node), h: Told::of(hint) };
        serde_json::to_writer(&mut message, &header).ok()?;
        let length = u32::try_from(message.len() - begin).ok()?;
        message[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
        if let Hint::Log { entry, .. } | Hint::Revised { entry, .. } = hint {
            message.extend_from_slice(&entry.body);
        }
        if message.len() > MAX_MESSAGE {
            return None;
        }
        let proof = self.proof_of(channel.as_bytes(), &message[PROOF..]).finalize().into_bytes();
        message[..PROOF].copy_from_slice(&proof[..PROOF]);
        Some(message)
    }

    /// What a message says; `None` if this node said it itself.
    pub(super) fn read(&self, channel: &[u8], message: Vec<u8>) -> Result<Option<Hint>, Refused> {
        let (proof, said) = message.split_at_checked(PROOF).ok_or(Refused::Forged)?;
        if message.len() > MAX_MESSAGE {
            return Err(Refused::Forged);
        }
        self.proof_of(channel, said).verify_truncated_left(proof).map_err(|_| Refused::Forged)?;
        let message = Bytes::from(message);
        read(&self.node, message.slice(PROOF..)).ok_or(Refused::Unreadable)
    }

    fn proof_of(&self, channel: &[u8], said: &[u8]) -> Hmac<Sha256> {
        let mut proof = self.proof.clone();
        proof.update(DOMAIN);
        // With its length, or else a part of the message could pass for a part of the name.
        proof.update(&u64::try_from(channel.len()).unwrap_or(u64::MAX).to_be_bytes());
        proof.update(channel);
        proof.update(said);
        proof
    }
}

/// Reads what was proven; `Some(None)` if `node` said it.
fn read(node: &str, said: Bytes) -> Option<Option<Hint>> {
    let (&version, rest) = said.split_first()?;
    if version != VERSION {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (header, body) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let header: Header<'_> = serde_json::from_slice(header).ok()?;
    if header.n == node {
        return Some(None);
    }
    header.h.hint(said.slice_ref(body)).map(Some)
}

impl<'a> Told<'a> {
    fn of(hint: &'a Hint) -> Self {
        match hint {
            Hint::Log { instance, mark, entry, kind } => {
                Self::Log { i: *instance, m: *mark, e: EntryHeader::of(entry), k: *kind }
            }
            Hint::Reached { instance, mark } => Self::Reached { i: *instance, m: *mark },
            Hint::Removed { instance, seqs } => Self::Removed { i: *instance, s: Cow::Borrowed(seqs) },
            Hint::Revised { instance, entry } => Self::Revised { i: *instance, e: EntryHeader::of(entry) },
            Hint::Line(line) => Self::Line(Box::new(LineHeader::of(line))),
            Hint::Room { room, event } => Self::Room { r: Cow::Borrowed(room), e: Cow::Borrowed(event) },
            Hint::Control(control) => Self::Control(Cow::Borrowed(control)),
            Hint::Missed(of) => Self::Missed(of.clone()),
        }
    }

    fn hint(self, body: Bytes) -> Option<Hint> {
        Some(match self {
            Self::Log { i, m, e, k } => Hint::Log { instance: i, mark: m, entry: e.entry(body)?, kind: k },
            Self::Reached { i, m } => Hint::Reached { instance: i, mark: m },
            Self::Removed { i, s } => Hint::Removed { instance: i, seqs: s.into_owned() },
            Self::Revised { i, e } => Hint::Revised { instance: i, entry: e.entry(body)? },
            Self::Line(line) => Hint::Line(line.line()?),
            Self::Room { r, e } => Hint::Room { room: r.into_owned(), event: e.into_owned() },
            Self::Control(control) => Hint::Control(control.into_owned()),
            Self::Missed(of) => Hint::Missed(of),
        })
    }
}

impl<'a> EntryHeader<'a> {
    fn of(entry: &'a Entry) -> Self {
        Self {
            s: entry.seq,
            k: Cow::Borrowed(entry.kind.as_str()),
            p: Cow::Borrowed(&entry.platform),
            b: Cow::Borrowed(&entry.bot),
            c: Cow::Borrowed(&entry.chat_id),
            y: Cow::Borrowed(&entry.session_key),
            r: entry.revision,
            w: entry.while_busy,
        }
    }

    fn entry(self, body: Bytes) -> Option<Entry> {
        Some(Entry {
            seq: self.s,
            kind: EntryKind::parse(&self.k)?,
            platform: self.p.into(),
            bot: self.b.into(),
            chat_id: self.c.into(),
            session_key: self.y.into(),
            body,
            revision: self.r,
            while_busy: self.w,
        })
    }
}

impl<'a> LineHeader<'a> {
    fn of(line: &'a Line) -> Self {
        Self {
            id: line.id,
            place: line.place,
            room: Cow::Borrowed(&line.room),
            message_id: Cow::Borrowed(&line.message_id),
            author: Cow::Borrowed(&line.author),
            from_agent: line.from_agent,
            text: Cow::Borrowed(&line.text),
            reply_to: line.reply_to.as_deref().map(Cow::Borrowed),
            client_id: line.client_id.as_deref().map(Cow::Borrowed),
            files: Cow::Borrowed(&line.files),
            undelivered: line.undelivered.map(|why| Cow::Borrowed(why.as_str())),
            buttons: line.buttons.as_deref().map(Cow::Borrowed),
            marks: Cow::Borrowed(&line.marks),
            thread: line.thread.as_deref().map(Cow::Borrowed),
            thread_name: line.thread_name.as_deref().map(Cow::Borrowed),
            at: line.at,
            edited: line.edited,
        }
    }

    fn line(self) -> Option<Line> {
        let undelivered = match self.undelivered {
            Some(word) => Some(DropReason::parse(&word)?),
            None => None,
        };
        Some(Line {
            id: self.id,
            place: self.place,
            room: self.room.into_owned(),
            message_id: self.message_id.into_owned(),
            author: self.author.into_owned(),
            from_agent: self.from_agent,
            text: self.text.into_owned(),
            reply_to: self.reply_to.map(Cow::into_owned),
            client_id: self.client_id.map(Cow::into_owned),
            files: self.files.into_owned(),
            undelivered,
            buttons: self.buttons.map(|buttons| Box::new(buttons.into_owned())),
            marks: self.marks.into_owned(),
            thread: self.thread.map(Cow::into_owned),
            thread_name: self.thread_name.map(Cow::into_owned),
            at: self.at,
            edited: self.edited,
        })
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
