//! What a socket asks of the log, and what the log says.

use super::store::{INSTANCE, Store};
use angelia_core::clock::UnixMillis;
use angelia_core::inbox::{Entry, Epoch, PAGE, Seq};
use angelia_core::ports::log::{Claimed, Joined, Log, OpenTurn, Ownership, Settlement, Stretch, TurnNote};
use angelia_core::store::PageSize;
use angelia_core::turns::{ConversationKey, JOINED_BYTES, JOINED_LINES};
use std::fmt;

/// What is read of a conversation at once.
const CONVERSATION: PageSize = PageSize { count: JOINED_LINES, bytes: 4 * JOINED_BYTES };

/// What a socket asks for.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    Claim,
    Page(Seq, Vec<ConversationKey>),
    Ahead,
    Conversation(ConversationKey),
    Join(Epoch, ConversationKey, Joined),
    Notes(Epoch, Vec<TurnNote>),
    Settle(Epoch, Vec<Settlement>),
    Late(Vec<Seq>),
    Pushed(Vec<Seq>),
}

/// What the log said; `None` if it failed.
#[derive(Debug)]
pub(crate) enum Answer {
    Claimed(Option<(Claimed, Vec<OpenTurn>)>),
    Page(Option<Stretch>),
    Ahead(Option<Stretch>),
    Conversation(ConversationKey, Option<Stretch>),
    Joined(ConversationKey, Option<Option<Entry>>),
    Noted(Option<Ownership>, Vec<TurnNote>),
    Settled(Option<Ownership>, Vec<Settlement>),
    Late(Option<Vec<Seq>>, Vec<Seq>),
    Pushed,
}

impl Job {
    /// Whether it changes the log.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self, Self::Page(..) | Self::Ahead | Self::Conversation(_) | Self::Claim)
    }

    /// Has the log do it.
    pub(crate) fn run(self, store: &mut Store) -> Answer {
        match self {
            Self::Claim => {
                let claimed = store.ask(|log| log.claim(INSTANCE, "node"));
                let turns = store.ask(|log| log.open_turns(INSTANCE));
                Answer::Claimed(claimed.zip(turns))
            }
            Self::Page(after, held) => Answer::Page(store.ask(|log| log.load(INSTANCE, after, &held, PAGE))),
            Self::Ahead => Answer::Ahead(store.ask(|log| log.load_ahead(INSTANCE, PAGE))),
            Self::Conversation(key) => {
                let read = store.ask(|log| log.load_conversation(INSTANCE, &key, CONVERSATION));
                Answer::Conversation(key, read)
            }
            Self::Join(epoch, key, joined) => {
                Answer::Joined(key, store.ask(|log| log.join(INSTANCE, epoch, joined)))
            }
            Self::Notes(epoch, notes) => {
                let noted = store.ask(|log| log.note_turns(INSTANCE, epoch, notes.clone()));
                Answer::Noted(noted, notes)
            }
            Self::Settle(epoch, settled) => {
                let done = store.ask(|log| log.settle(INSTANCE, epoch, settled.clone()));
                Answer::Settled(done, settled)
            }
            Self::Late(late) => Answer::Late(store.ask(|log| log.settle_late(INSTANCE, late.clone())), late),
            Self::Pushed(seqs) => {
                let pushed = seqs.into_iter().map(|seq| (seq, UnixMillis(0))).collect();
                store.ask(|log| log.note_pushed(INSTANCE, pushed));
                Answer::Pushed
            }
        }
    }
}

impl Answer {
    /// Whether the log failed: whoever asked hears of it a little later.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Claimed(answer) => answer.is_none(),
            Self::Page(answer) | Self::Ahead(answer) | Self::Conversation(_, answer) => answer.is_none(),
            Self::Joined(_, answer) => answer.is_none(),
            Self::Noted(answer, _) | Self::Settled(answer, _) => answer.is_none(),
            Self::Late(answer, _) => answer.is_none(),
            Self::Pushed => false,
        }
    }
}

/// The numbers of entries, for a story.
fn numbers(seqs: impl Iterator<Item = Seq>) -> String {
    seqs.map(Seq::buffer_id).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim => write!(f, "the claim"),
            Self::Page(after, held) => {
                write!(f, "read on after {}, without {} conversations", after.buffer_id(), held.len())
            }
            Self::Ahead => write!(f, "read what goes ahead"),
            Self::Conversation(key) => write!(f, "read {:?}", key.session_key),
            Self::Join(_, _, joined) => {
                write!(f, "join {}", numbers(joined.lines.iter().map(|(seq, _)| *seq)))
            }
            Self::Notes(_, notes) => write!(f, "note {}", notes.iter().map(note).collect::<String>()),
            Self::Settle(_, settled) => write!(f, "settle {}", numbers(settled.iter().map(|it| it.seq))),
            Self::Late(late) => write!(f, "settle {} late", numbers(late.iter().copied())),
            Self::Pushed(seqs) => write!(f, "note that {} were pushed", numbers(seqs.iter().copied())),
        }
    }
}

fn note(note: &TurnNote) -> String {
    match note {
        TurnNote::Opened(turn) => format!("+{} ", turn.seq.buffer_id()),
        TurnNote::Closed(key) => format!("-{} ", key.session_key.as_deref().unwrap_or_default()),
        TurnNote::Interrupted(turn) => format!("!{} ", turn.seq.buffer_id()),
        TurnNote::Held(seq) => format!("~{} ", seq.buffer_id()),
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_failure() => write!(f, "nothing"),
            Self::Claimed(Some((claimed, turns))) => {
                let open = numbers(turns.iter().map(|turn| turn.seq));
                write!(f, "claimed, {} wait, open are {open}", claimed.usage.entries)
            }
            Self::Page(Some(read)) | Self::Ahead(Some(read)) | Self::Conversation(_, Some(read)) => {
                write!(
                    f,
                    "found {} up to {}",
                    numbers(read.iter().map(|it| it.seq)),
                    read.mark.tail.buffer_id()
                )
            }
            Self::Joined(_, Some(entry)) => write!(f, "joined in {}", numbers(entry.iter().map(|it| it.seq))),
            Self::Noted(..) => write!(f, "noted"),
            Self::Settled(_, settled) => write!(f, "settled {}", numbers(settled.iter().map(|it| it.seq))),
            Self::Late(Some(late), _) => write!(f, "settled {} late", numbers(late.iter().copied())),
            _ => write!(f, "done"),
        }
    }
}
