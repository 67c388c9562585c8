//! Albums: pictures that were sent together are one event. Each is an entry of its own in the log.
//! Those that are there a second after the first was seen go together, before any of them is pushed.

use super::deliver::or_later;
use super::files::Version;
use super::{Done, Session};
use angelia_contract::event::Event;
use angelia_core::error::Result;
use angelia_core::inbox::{Entry, Revisions, Seq};
use angelia_core::media::{album, has_files};
use angelia_core::ports::log::Joined;
use angelia_core::turns::{JOINED_LINES, join};
use std::time::Duration;

/// How long the rest of an album is waited for.
const COLLECTED_FOR: Duration = Duration::from_secs(1);

impl Session {
    /// Has the rest of an entry's album waited for; `false` if it is part of none, or that is over.
    pub(super) fn waits_for_album(&mut self, entry: &Entry, event: &Event) -> bool {
        if entry.is_final() || self.files.was_collected(entry.seq) {
            return false;
        }
        let Some(album) = album(event) else { return false };
        let version = (entry.seq, entry.revision);
        self.files.expect(version, &entry.chat_id);
        self.jobs.push(Box::pin(async move {
            tokio::time::sleep(COLLECTED_FOR).await;
            Done::Album(version, album)
        }));
        true
    }

    /// What is there of an album by now goes together.
    pub(super) fn album_collected(&mut self, version: Version, name: &str) {
        self.files.collected(version);
        let of_album = |entry: &&Entry| has_files(&entry.body) && album_of(entry).as_deref() == Some(name);
        let Some(first) = self.backlog.waiting().find(|entry| entry.seq == version.0) else { return };
        let (chat, bot) = (first.chat_id.clone(), (first.platform.clone(), first.bot.clone()));
        let same_chat =
            |entry: &&Entry| entry.chat_id == chat && (&entry.platform, &entry.bot) == (&bot.0, &bot.1);
        let whole = self.backlog.waiting().filter(same_chat).skip_while(|entry| entry.seq != version.0);
        let entries: Vec<&Entry> = whole.take_while(of_album).take(JOINED_LINES).collect();
        let bodies: Vec<_> = entries.iter().map(|entry| entry.body.clone()).collect();
        let lines: Vec<(Seq, u32)> = entries.iter().map(|entry| (entry.seq, entry.revision)).collect();
        let Some(body) = join(&bodies).filter(|_| lines.len() > 1) else { return };
        self.files.expect(version, &chat);
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        self.jobs.push(Box::pin(async move {
            let seqs = lines.iter().map(|(seq, _)| *seq).collect();
            let joined = ports.log.join(instance, epoch, Joined { lines, body }).await;
            Done::AlbumJoined(version, seqs, or_later(joined).await)
        }));
    }

    /// An album is one entry now. If that failed, its pictures go one by one.
    pub(super) fn album_joined(&mut self, version: Version, lines: &[Seq], outcome: Result<Option<Entry>>) {
        self.files.collected(version);
        let Ok(Some(entry)) = outcome else { return };
        for seq in lines.iter().filter(|seq| **seq != entry.seq) {
            self.backlog.remove(*seq);
            self.held_lines.release(*seq);
        }
        let mut revised = Revisions::default();
        revised.put(entry);
        self.backlog.revise(&mut revised);
    }
}

fn album_of(entry: &Entry) -> Option<String> {
    album(&serde_json::from_slice::<Event>(&entry.body).ok()?)
}
