//! Which albums are meant for the bot. Each picture of an album is a message of its own, and only one of
//! them has the caption, and in it the mention: the others are meant for the bot because that one is.
//!
//! What comes in one answer of Telegram's is judged together. What comes later follows what is remembered
//! of its album. What came before its caption, with a webhook or at the end of an answer, said nothing that
//! made it the bot's: it was read and is acknowledged. It is kept in memory for a minute, and goes to
//! the agent together with the caption if that names the bot. A restart in between loses it. To hold
//! back the acknowledgement instead would make everything wait that is said behind a picture, wherever
//! the bot is, and most pictures are none of its business.

use super::Telegram;
use super::address::{self, Me};
use super::ingest::Listener;
use super::parse::{Message, Raw, Update};
use crate::inbound;
use crate::kit::Sighting;
use angelia_contract::event::Event;
use angelia_core::admission::{Admitted, DropReason};
use angelia_core::clock::{self, Mono};
use angelia_core::error::Result;
use angelia_core::store::Intake;
use angelia_core::threads;
use hashlink::LruCache;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

angelia_contract::limits! {
    /// Its pictures come within seconds. What comes later is meant for the bot only if it says so itself.
    const REMEMBERED_FOR: Duration = Duration::from_secs(60), time "for which it is known whether a Telegram album is meant for the bot";
    /// More than people send in a minute where a bot is. Beyond it the oldest is forgotten.
    const ALBUMS: usize = 256, count "Telegram albums that are remembered for a bot";
    /// As many as Telegram puts into one. Further ones go to the agent only if they come after the caption.
    const PICTURES: usize = 10, count "pictures of a Telegram album that wait for its caption";
}

/// What an album is known by. Whoever else says that theirs is part of it is not believed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AlbumKey {
    chat: i64,
    album: String,
    author: i64,
    /// Whether the chat has topics.
    has_topics: bool,
}

/// A picture that came before anything said that it is meant for the bot.
#[derive(Clone, Debug)]
struct Early {
    sighting: Sighting,
    event: Event,
}

#[derive(Debug)]
struct Album {
    is_meant: bool,
    early: Vec<Early>,
    since: Mono,
}

/// The albums that came last.
#[derive(Debug)]
pub(super) struct Albums(Mutex<LruCache<AlbumKey, Album>>);

impl Default for Albums {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(ALBUMS)))
    }
}

impl Albums {
    /// Shows an album, as it is remembered.
    fn with<T>(&self, key: &AlbumKey, now: Mono, ask: impl FnOnce(&mut Album) -> T) -> T {
        let mut albums = self.0.lock();
        if albums.get(key).is_none_or(|album| now.since(album.since) >= REMEMBERED_FOR) {
            albums.insert(key.clone(), Album { is_meant: false, early: Vec::new(), since: now });
        }
        match albums.get_mut(key) {
            Some(album) => ask(album),
            None => ask(&mut Album { is_meant: false, early: Vec::new(), since: now }),
        }
    }

    /// Whether one of its pictures said that it is meant for the bot.
    pub(super) fn is_meant(&self, key: &AlbumKey, now: Mono) -> bool {
        self.with(key, now, |album| album.is_meant)
    }

    fn is_for_us(&self, key: &AlbumKey, now: Mono) {
        self.with(key, now, |album| album.is_meant = true);
    }

    /// Keeps a picture until its caption comes.
    pub(super) fn keep(&self, key: &AlbumKey, (sighting, event): (&Sighting, &Event), now: Mono) {
        self.with(key, now, |album| {
            // One that could not be committed is read again.
            album.early.retain(|early| early.sighting.message_id != sighting.message_id);
            if album.early.len() < PICTURES {
                album.early.push(Early { sighting: sighting.clone(), event: event.clone() });
            }
        });
    }

    fn early(&self, key: &AlbumKey, now: Mono) -> Vec<Early> {
        self.with(key, now, |album| album.early.clone())
    }

    /// What waited for its caption is committed.
    pub(super) fn went_along(&self, key: &AlbumKey) {
        if let Some(album) = self.0.lock().get_mut(key) {
            album.early.clear();
        }
    }
}

/// The album that a message is part of.
pub(super) fn key(message: &Message) -> Option<AlbumKey> {
    let album = message.rest.get("media_group_id").and_then(Value::as_str)?.to_owned();
    let author = message.author().map_or(message.chat.id, |author| author.id);
    let has_topics = message.chat.is_forum == Some(true);
    Some(AlbumKey { chat: message.chat.id, album, author, has_topics })
}

impl Telegram {
    /// Looks which albums are meant for the bot, before the first of the updates is judged.
    pub(super) fn look_for_albums(&self, me: &Me, line: &VecDeque<Raw>) {
        for raw in line.iter().filter(|raw| raw.json.contains("\"media_group_id\"")) {
            let Ok(update) = serde_json::from_str::<Update>(&raw.json) else { continue };
            let Some(message) = update.message.or(update.channel_post) else { continue };
            if let Some(key) = key(&message).filter(|_| address::addresses(me, &message)) {
                self.albums.is_for_us(&key, clock::mono());
            }
        }
    }
}

impl Listener {
    /// Whom a message is for. A picture is for whoever its album is for, if that came first; else it is
    /// kept until the caption comes.
    pub(super) fn decide(
        &self,
        sighting: &mut Sighting,
        album: Option<&AlbumKey>,
        event: &Event,
    ) -> Result<Admitted, DropReason> {
        let bot = &self.bot.account.key;
        let decided = sighting.decide(&self.ingress, bot);
        let not_addressed = matches!(decided, Err(DropReason::NotAddressed));
        let Some(album) = album.filter(|_| not_addressed) else { return decided };
        if !self.bot.albums.is_meant(album, clock::mono()) {
            self.bot.albums.keep(album, (sighting, event), clock::mono());
            return decided;
        }
        let Some((meant, admitted)) = self.with_caption(album, sighting, event) else { return decided };
        *sighting = meant;
        Ok(admitted)
    }

    /// Whom a picture is for whose caption names the bot. `None` where nobody gets it: also where each
    /// conversation begins a topic. There the caption goes on in a topic of its own, and pictures
    /// without words would be questions by themselves where it was said.
    fn with_caption(
        &self,
        album: &AlbumKey,
        sighting: &Sighting,
        event: &Event,
    ) -> Option<(Sighting, Admitted)> {
        let meant = Sighting { addressed: true, ..sighting.clone() };
        let admitted = meant.decide(&self.ingress, &self.bot.account.key).ok()?;
        let stays_behind = album.has_topics && threads::follows(&admitted, event);
        (!stays_behind).then_some((meant, admitted))
    }

    /// The pictures that came before this one, whose caption names the bot.
    pub(super) fn early_pictures(&self, key: &AlbumKey) -> Result<Vec<Intake>> {
        let bot = &self.bot.account.key;
        let mut intakes = Vec::new();
        for Early { sighting, mut event } in self.bot.albums.early(key, clock::mono()) {
            let Some((meant, admitted)) = self.with_caption(key, &sighting, &event) else { continue };
            // Until now they were what somebody said to others.
            let overheard = self.ingress.admission.overheard();
            meant.observe(bot, |_, which| overheard.forget(bot, which));
            // What the album answers goes with the caption.
            event.reply_to = None;
            let entry = inbound::entry(bot, &event, admitted, clock::wall())?;
            intakes.push(Intake { entry: Some(entry), ..Intake::default() });
        }
        Ok(intakes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn album(chat: i64, author: i64) -> AlbumKey {
        AlbumKey { chat, album: "12".into(), author, has_topics: false }
    }

    fn picture(number: usize) -> (Sighting, Event) {
        (Sighting { message_id: number.to_string(), ..Sighting::default() }, Event::default())
    }

    fn kept(albums: &Albums, key: &AlbumKey, now: Mono) -> Vec<String> {
        albums.early(key, now).into_iter().map(|early| early.sighting.message_id).collect()
    }

    #[test]
    fn an_album_is_its_authors_and_is_forgotten_after_a_minute() {
        let (albums, now) = (Albums::default(), Mono(1_000 * SECOND));
        albums.is_for_us(&album(-5, 1), now);
        assert!(albums.is_meant(&album(-5, 1), now + 59 * SECOND));
        for other in [album(-6, 1), album(-5, 2)] {
            assert!(!albums.is_meant(&other, now), "{other:?}");
        }
        assert!(!albums.is_meant(&album(-5, 1), now + REMEMBERED_FOR));
    }

    #[test]
    fn what_came_before_the_caption_is_kept_once_and_within_bounds() {
        let (albums, now) = (Albums::default(), Mono(1_000 * SECOND));
        let keep = |number: usize| {
            let (sighting, event) = picture(number);
            albums.keep(&album(-5, 1), (&sighting, &event), now);
        };
        [1, 2, 2].into_iter().for_each(keep);
        assert_eq!(kept(&albums, &album(-5, 1), now), ["1", "2"]);
        (3..100).for_each(keep);
        assert_eq!(kept(&albums, &album(-5, 1), now).len(), PICTURES);
        albums.went_along(&album(-5, 1));
        assert!(kept(&albums, &album(-5, 1), now).is_empty());
        keep(1);
        assert!(kept(&albums, &album(-5, 1), now + REMEMBERED_FOR).is_empty());
        (0..2 * ALBUMS as i64).for_each(|chat| albums.is_for_us(&album(chat, 1), now));
        assert_eq!(albums.0.lock().len(), ALBUMS);
    }
}
