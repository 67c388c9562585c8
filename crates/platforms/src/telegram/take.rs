//! Taking updates in: what each of them comes to, in order, committed with how far
//! they were read.

use super::address::{self, Me};
use super::albums::{self, AlbumKey};
use super::commands::{self, Own};
use super::ingest::Listener;
use super::parse::{ChatType, MemberChange, Message, Raw, Update};
use super::press::Pressed;
use super::replies::Answer;
use super::{STREAM, Telegram, learn, normalize};
use crate::inbound;
use crate::kit::Sighting;
use angelia_core::admission::DropReason;
use angelia_core::clock;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::store::{Cursor, Intake};
use angelia_core::threads;
use std::collections::VecDeque;

/// What one update comes to.
#[derive(Default)]
struct Digest {
    /// What is committed.
    intake: Intake,
    /// What is committed in front of it: pictures whose caption it is, of this album.
    early: Option<(AlbumKey, Vec<Intake>)>,
    /// What was said, where admission has a say in it.
    sighting: Option<Sighting>,
    /// Why nobody gets it.
    dropped: Option<DropReason>,
    /// What the connector itself has to do about it, apart from other updates.
    own: Option<Own>,
    /// Who is told what came of a press.
    pressed: Option<Pressed>,
}

/// A message, as far as admission cares.
pub(super) fn sighting(message: &Message, me: &Me) -> Sighting {
    let (chat_id, private) = (message.chat.id(), message.chat.is_private());
    let thread_id = message.topic().map(|topic| topic.to_string());
    let topic = thread_id.as_ref().map(|thread| format!("{chat_id}/{thread}"));
    Sighting {
        places: vec![chat_id.clone(), "*".to_owned()],
        scopes: [Some(chat_id.clone()), topic].into_iter().flatten().collect(),
        chat_id,
        thread_id,
        message_id: message.message_id.to_string(),
        // A channel post without an author is the channel's own.
        author: message.author().map_or(message.chat.id, |author| author.id).to_string(),
        private,
        author_is_bot: message.is_by_bot(),
        addressed: private || address::addresses(me, message),
        engaged: None,
        at: message.date().unwrap_or_else(clock::wall),
        language: message.language().unwrap_or_default(),
    }
}

impl Listener {
    /// Reads one update. An error means that the store could not be asked, and
    /// that nothing was done.
    async fn digest(&self, me: &Me, raw: &Raw) -> Result<Digest> {
        let mut digest = match serde_json::from_str::<Update>(&raw.json) {
            Ok(_) if raw.id.is_none() => self.unreadable(raw, "it has no number")?,
            Ok(update) => self.read(me, update).await?,
            Err(error) => {
                // The error's own words may quote the message.
                let why = format!("it is not what an update looks like (at byte {})", error.column());
                self.unreadable(raw, &why)?
            }
        };
        let position = |id: i64| Cursor { stream: STREAM.into(), position: id.saturating_add(1).to_string() };
        digest.intake.cursor = raw.id.map(position);
        Ok(digest)
    }

    fn unreadable(&self, raw: &Raw, why: &str) -> Result<Digest> {
        let what = raw.id.map_or_else(|| "update without a number".to_owned(), |id| format!("update {id}"));
        let intake = self.bot.account.quarantined(&self.ingress, &what, raw.json.as_bytes(), why)?;
        Ok(Digest { intake, ..Digest::default() })
    }

    async fn read(&self, me: &Me, update: Update) -> Result<Digest> {
        let said = update.message.or(update.channel_post);
        let changed = update.edited_message.or(update.edited_channel_post);
        if let Some(callback) = update.callback_query {
            let (intake, sighting, pressed) = self.pressed(me, callback).await?;
            return Ok(Digest { intake, sighting, pressed: Some(pressed), ..Digest::default() });
        }
        match (said, changed, update.my_chat_member) {
            (Some(message), ..) => self.said(me, &message).await,
            (_, Some(message), _) => self.changed(me, &message).await,
            (.., Some(change)) => self.membership(change).await,
            _ => Ok(Digest::default()),
        }
    }

    /// A new message.
    async fn said(&self, me: &Me, message: &Message) -> Result<Digest> {
        if let Some(own) = commands::migration(message) {
            // The chat it is in goes, or comes with the move.
            return Ok(Digest { own: Some(own), ..Digest::default() });
        }
        let mut digest = Digest::default();
        digest.intake.chats = self.bot.learn_from(message).await?;
        if self.bot.is_own(me, message).await? {
            return Ok(digest);
        }
        let mut sighting = Sighting { engaged: self.bot.engaged_in(message), ..sighting(message, me) };
        let text = address::said(me, message.words().0);
        if let Some(consumed) = commands::command(me, message, &text, sighting.addressed) {
            digest.own = consumed;
            digest.dropped = Some(DropReason::Consumed);
            digest.sighting = Some(sighting);
            return Ok(digest);
        }
        let edited = self.ingress.source_flags.then_some(false);
        let event = normalize::event(me, message, self.bot.topic_name(message), edited);
        let Some(mut event) = event else { return Ok(digest) };
        // In company only somebody who speaks to the bot waits for an answer to what nobody can read.
        if event.text == normalize::UNSUPPORTED && message.words().0.is_empty() && !sighting.addressed {
            return Ok(digest);
        }
        let key = &self.bot.account.key;
        let album = albums::key(message).filter(|_| !sighting.private);
        let speaks = sighting.addressed;
        match self.decide(&mut sighting, album.as_ref(), &event) {
            Ok(admitted) => {
                if let Some(album) = album.filter(|_| speaks) {
                    let early = self.early_pictures(&album)?;
                    digest.early = Some((album, early));
                }
                let author = normalize::answered_author(message);
                sighting.inform(&self.ingress, key, &admitted, false, (&mut event, author.as_ref()));
                digest.intake.chats.extend(self.bot.learn_language(message).await?);
                let has_topics = message.chat.is_forum == Some(true);
                digest.intake.opens = has_topics && threads::begins(&admitted, &event, sighting.addressed);
                digest.intake.follows = threads::follows(&admitted, &event);
                digest.intake.entry = Some(inbound::entry(key, &event, admitted, clock::wall())?);
            }
            Err(reason) => {
                sighting.overhear(&self.ingress, key, reason, &event);
                digest.dropped = Some(reason);
            }
        }
        digest.sighting = Some(sighting);
        Ok(digest)
    }

    /// A message that its author changed: what waits says the new thing. Who may
    /// speak there is asked anew; that it was meant for the bot is settled, or
    /// it would not wait.
    async fn changed(&self, me: &Me, message: &Message) -> Result<Digest> {
        let mut digest = Digest::default();
        digest.intake.chats = self.bot.learn_from(message).await?;
        if self.bot.is_own(me, message).await? {
            return Ok(digest);
        }
        let key = &self.bot.account.key;
        let sighting = Sighting { addressed: true, ..sighting(message, me) };
        if commands::may_hold_code(&address::said(me, message.words().0)) {
            sighting.reword(&self.ingress, key, "");
            return Ok(digest);
        }
        let edited = self.ingress.source_flags.then_some(true);
        let event = normalize::event(me, message, self.bot.topic_name(message), edited);
        let Some(mut event) = event else { return Ok(digest) };
        sighting.reword(&self.ingress, key, &event.text);
        if let Ok(admitted) = sighting.decide(&self.ingress, key) {
            let author = normalize::answered_author(message);
            sighting.inform(&self.ingress, key, &admitted, true, (&mut event, author.as_ref()));
            digest.intake.revision = Some(inbound::revision(key, &event, admitted, clock::wall())?);
        }
        Ok(digest)
    }

    /// The bot came into a chat, or has to leave it.
    async fn membership(&self, change: MemberChange) -> Result<Digest> {
        let gone = matches!(change.new_chat_member.status.as_str(), "left" | "kicked");
        let mut digest = Digest::default();
        match (gone, change.chat.is_private()) {
            // The person may come back; until then sends are refused.
            (true, true) => self.bot.account.health.count("blocked"),
            (true, false) => digest.own = Some(Own::Gone(change.chat.id())),
            (false, _) => {
                digest.intake.chats =
                    self.bot.account.directory.learn_all(vec![learn::described(&change.chat)]).await?
            }
        }
        Ok(digest)
    }

    /// Takes updates in and out of the line. With an error the rest is still in
    /// line: what was not committed has to be taken again.
    pub(super) async fn take_in(&self, me: &Me, line: &mut VecDeque<Raw>) -> Result<()> {
        self.bot.look_for_albums(me, line);
        while !line.is_empty() {
            let mut batch = Vec::with_capacity(line.len());
            let answer = self.take_batch(me, line, &mut batch).await;
            let unlearn = |digest: &Digest| self.bot.account.directory.unlearn(&digest.intake.chats);
            let answer = answer.inspect_err(|_| batch.iter().for_each(unlearn))?;
            line.drain(..batch.len());
            if let (Some(answer), Some(Digest { sighting: Some(who), .. })) = (answer, batch.first()) {
                let target = Target { chat_id: who.chat_id.clone(), thread_id: who.thread_id.clone() };
                self.bot.answer(target, answer);
            }
        }
        Ok(())
    }

    /// Commits what can be committed next: updates up to one that the connector has to do
    /// something about, or that one alone. Answers what to say to it.
    async fn take_batch(
        &self,
        me: &Me,
        line: &VecDeque<Raw>,
        batch: &mut Vec<Digest>,
    ) -> Result<Option<Answer>> {
        let mut answer = None;
        for raw in line {
            let digest = self.digest(me, raw).await?;
            let Some(own) = &digest.own else {
                batch.push(digest);
                continue;
            };
            if !batch.is_empty() {
                // It is read again when its turn comes.
                self.bot.account.directory.unlearn(&digest.intake.chats);
                break;
            }
            let settled = self.settle_once(raw.id, own, digest.sighting.as_ref()).await;
            batch.push(digest);
            answer = settled?;
            break;
        }
        let intakes = |digest: &Digest| {
            let early = digest.early.iter().flat_map(|(_, early)| early).cloned();
            early.chain([digest.intake.clone()]).collect::<Vec<_>>()
        };
        let intakes = batch.iter().flat_map(intakes).collect();
        let taken = self.ingress.take_in(&self.bot.account.key, intakes).await?;
        let mut taken = taken.into_iter();
        for digest in &*batch {
            if let Some((album, early)) = &digest.early {
                taken.by_ref().take(early.len()).for_each(drop);
                self.bot.albums.went_along(album);
            }
            let taken = taken.next().unwrap_or_default();
            if let Some(pressed) = &digest.pressed {
                self.bot.tell_presser(pressed.clone().after(taken));
            }
            if let (true, Some(sighting)) = (taken.opens, &digest.sighting) {
                self.ingress.admission.opens(&self.bot.account.key, &sighting.chat_id);
            }
            let reason = if taken.no_instance { Some(DropReason::NoInstance) } else { digest.dropped };
            if let (Some(sighting), Some(reason)) = (&digest.sighting, reason) {
                sighting.dropped(&self.ingress, &self.bot.account.key, reason);
            }
        }
        Ok(answer)
    }

    /// Does what an update calls for, unless that was done and only its commit
    /// failed: a code that was used would be found used.
    async fn settle_once(
        &self,
        number: Option<i64>,
        own: &Own,
        who: Option<&Sighting>,
    ) -> Result<Option<Answer>> {
        let mut settled = self.bot.settled.lock().await;
        if let Some((last, answer)) = &*settled
            && Some(*last) == number
        {
            return Ok(answer.clone());
        }
        let answer = self.settle(own, who).await?;
        *settled = number.map(|number| (number, answer.clone()));
        Ok(answer)
    }
}

impl Telegram {
    /// Whether the bot itself wrote it, or another bot of this server: in a
    /// channel everybody writes in the channel's name.
    async fn is_own(&self, me: &Me, message: &Message) -> Result<bool> {
        let chat_id = message.chat.id();
        if message.author().is_some_and(|author| author.id == me.id)
            || self.sent.knows(&(chat_id.clone(), message.message_id.to_string()))
        {
            return Ok(true);
        }
        let is_channel = message.chat.kind == ChatType::Channel;
        Ok(is_channel && self.is_echo(&chat_id, message.words().0).await?)
    }
}
