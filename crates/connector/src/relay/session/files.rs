//! The files of entries on one socket: they are here before their entry is pushed, and its chat is
//! left alone meanwhile. A gateway fetches them while it reads nothing else, before it acknowledges.

use super::{Done, Session};
use angelia_contract::event::Event;
use angelia_core::clock::{self, Mono};
use angelia_core::directory::BotKey;
use angelia_core::inbox::{Entry, EntryKind, Seq};
use angelia_core::media::{Brought, FileId, Handing, attached, hand_over, has_files};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Entries of one bot whose files are brought at a time: a provider that stands still holds up no other.
const AT_ONCE_OF_BOT: usize = 4;
/// The same of all.
const AT_ONCE: usize = 16;
/// Those that were brought and not pushed yet. Of one that is forgotten they are found again.
const REMEMBERED: usize = 64;
/// An entry that waits for longer has its files found once more, which keeps them for longer: they are
/// there a day after that.
const FRESH: Duration = Duration::from_secs(6 * 3_600);

/// An entry as it was when its files were asked for.
pub(super) type Version = (Seq, u32);

/// Something of an entry that is waited for.
struct Coming {
    version: Version,
    chat_id: Arc<str>,
    /// Whose provider is asked; nobody's, while the rest of an album is waited for.
    asked: Option<BotKey>,
}

/// Files on their way to this socket.
#[derive(Default)]
pub(super) struct Files {
    coming: Vec<Coming>,
    here: VecDeque<(Version, Vec<Brought>, Mono)>,
    /// Entries whose albums were waited for.
    collected: VecDeque<Seq>,
}

impl Files {
    /// Whether files of a chat are on their way.
    pub(super) fn holds(&self, chat_id: &str) -> bool {
        self.coming.iter().any(|coming| *coming.chat_id == *chat_id)
    }

    /// Whether a bot's provider may be asked for those of one more entry.
    fn may_bring(&self, bot: &BotKey) -> bool {
        let asked = || self.coming.iter().filter_map(|coming| coming.asked.as_ref());
        asked().count() < AT_ONCE && asked().filter(|asked| *asked == bot).count() < AT_ONCE_OF_BOT
    }

    fn forget(&mut self, version: Version) {
        self.coming.retain(|coming| coming.version != version);
    }

    /// Something of an entry is waited for: its chat is left alone.
    pub(super) fn expect(&mut self, version: Version, chat_id: &Arc<str>) {
        self.coming.push(Coming { version, chat_id: chat_id.clone(), asked: None });
    }

    /// Its album was waited for.
    pub(super) fn collected(&mut self, version: Version) {
        self.forget(version);
        if self.collected.len() >= REMEMBERED {
            self.collected.pop_front();
        }
        self.collected.push_back(version.0);
    }

    pub(super) fn was_collected(&self, seq: Seq) -> bool {
        self.collected.contains(&seq)
    }

    fn knows(&self, entry: &Entry, now: Mono) -> bool {
        let version = (entry.seq, entry.revision);
        self.here.iter().any(|(known, _, at)| *known == version && now.since(*at) < FRESH)
    }

    fn of(&self, entry: &Entry) -> &[Brought] {
        let version = (entry.seq, entry.revision);
        let found = self.here.iter().find(|(known, ..)| *known == version);
        found.map_or(&[], |(_, files, _)| files)
    }

    /// Takes what came; an entry that is pushed by then has no more use for it.
    fn came(&mut self, version: Version, files: Vec<Brought>) {
        self.forget(version);
        if self.here.len() >= REMEMBERED {
            self.here.pop_front();
        }
        self.here.retain(|(known, ..)| *known != version);
        self.here.push_back((version, files, clock::mono()));
    }

    pub(super) fn pushed(&mut self, seq: Seq) {
        self.here.retain(|((known, _), ..)| *known != seq);
    }
}

impl Session {
    /// Whether files of an entry have to be here before it is pushed, and are not.
    pub(super) fn lacks_files(&self, entry: &Entry) -> bool {
        let has = self.relay.media.is_some() && entry.kind == EntryKind::Message && has_files(&entry.body);
        has && !self.files.knows(entry, clock::mono())
    }

    /// Has the files of an entry brought, unless they are on their way or others are first.
    pub(super) fn bring_files(&mut self, entry: &Entry) {
        let version = (entry.seq, entry.revision);
        let is_coming = self.files.coming.iter().any(|coming| coming.version == version);
        let Some(media) = self.relay.media.clone().filter(|_| !is_coming) else { return };
        // What cannot be read is found out when it is pushed.
        let Ok(event) = serde_json::from_slice::<Event>(&entry.body) else {
            return self.files.came(version, Vec::new());
        };
        if self.waits_for_album(entry, &event) {
            return;
        }
        let bot = BotKey::new(&entry.platform, &entry.bot);
        if !self.files.may_bring(&bot) {
            return;
        }
        let chat_id = entry.chat_id.clone();
        self.files.coming.push(Coming { version, chat_id, asked: Some(bot.clone()) });
        let (relay, record) = (self.relay.clone(), self.record.clone());
        self.jobs.push(Box::pin(async move {
            let adapter = relay.bots.position(&bot).map(|bot| &*relay.bots[bot]);
            let wanted = attached(&event);
            let files = media.bring(&record.tenant, record.instance, adapter, &wanted).await;
            relay.tell_missing(&record, &bot, &event.source, wanted.iter().zip(&files));
            Done::Files(version, files)
        }));
    }

    /// The files of an entry are here, or cannot be had.
    pub(super) fn files_came(&mut self, version: Version, files: Vec<Brought>) {
        self.files.came(version, files);
    }

    /// Whether the peer fetches files by reference: it said so, was seen to, or does what only releases do
    /// that fetch (marking a message, since 0.19.1).
    fn fetches(&self) -> bool {
        let seen = || {
            let standing = self.relay.sessions.standing(self.record.instance);
            standing.fetches || standing.signs.iter().any(|(_, signs)| signs.reacts)
        };
        !self.profile.wants_links && (self.profile.fetches || seen())
    }

    /// Writes the files of an entry into its event, as this peer reads them.
    pub(super) fn with_files(&self, entry: &Entry, event: &mut Event) {
        let files = self.files.of(entry);
        let base = &*self.dialled;
        let link = |file: &FileId| {
            let link = self.relay.media.as_ref()?.link(self.record.instance, file)?;
            Some(format!("{base}/media/{link}"))
        };
        let handing = if self.fetches() { Handing::References(base) } else { Handing::Links(&link) };
        hand_over(event, files, &handing);
    }
}
