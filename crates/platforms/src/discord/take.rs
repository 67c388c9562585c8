//! What somebody said: admitted to an instance, or only the newest of its chat.

use super::chats::{IngestError, Spot};
use super::link::may_hold_code;
use super::normalize::{self, Writing};
use super::parse::{Deleted, Id, Message, Update, read};
use super::{Discord, NAME, address};
use crate::admission::Which;
use crate::inbound;
use crate::ingress::Ingress;
use crate::kit::Sighting;
use angelia_core::admission::{Admitted, DropReason, link_command};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::seal::{self, Sealed};
use angelia_core::store::{Intake, NewEntry, NewQuarantined, Taken, Traffic, Withdrawal};
use angelia_core::{clock, error, threads};
use std::sync::Arc;

/// What is kept of something that cannot be read and may hold a link code.
const NOT_KEPT: &str = "not kept: it may hold a link code";

/// A bot at its ingress.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) discord: Arc<Discord>,
    pub(super) ingress: Ingress,
}

/// What something that was received comes to.
#[derive(Default)]
pub(super) struct Heard {
    /// What is to be committed.
    pub(super) intake: Intake,
    /// Whether that has to be at once: chatter waits for the next occasion.
    pub(super) at_once: bool,
    /// What admission was shown, should the instance be gone when it is committed.
    sighting: Option<Sighting>,
}

impl Heard {
    /// Something that has to be committed before anything else is read.
    pub(super) fn at_once(intake: Intake) -> Self {
        Self { intake, at_once: true, sighting: None }
    }

    /// It was meant for an instance, which gets it as this entry.
    pub(super) fn is_for(&mut self, entry: NewEntry, sighting: Sighting) {
        let instance = entry.instance;
        // Only a thread goes on being meant for whom it was begun with.
        if sighting.addressed && sighting.thread_id.is_some() && sighting.engaged != Some(instance) {
            self.intake.engaged = Some((sighting.chat_id.clone(), instance));
        }
        self.intake.entry = Some(entry);
        (self.sighting, self.at_once) = (Some(sighting), true);
    }
}

/// A message, as far as admission cares.
pub(super) fn sighting(message: &Message, spot: &Spot, addressed: bool) -> Result<Sighting, IngestError> {
    let chat = &spot.chat.chat;
    let places = address::places(chat).ok_or_else(|| "nobody knows where it was written".to_owned())?;
    let scopes = [Some(&chat.chat_id), chat.parent.as_ref(), chat.scope.as_ref()];
    let is_thread = chat.kind == ChatKind::Thread;
    Ok(Sighting {
        places,
        scopes: scopes.into_iter().flatten().cloned().collect(),
        chat_id: chat.chat_id.clone(),
        thread_id: is_thread.then(|| chat.chat_id.clone()),
        message_id: message.id.0.clone(),
        author: message.author.id.0.clone(),
        private: chat.kind == ChatKind::Dm,
        author_is_bot: normalize::is_by_bot(message),
        addressed,
        engaged: spot.chat.engaged.filter(|_| is_thread),
        at: said_at(message),
        language: chat.language.unwrap_or_default(),
    })
}

/// When a message was written: by Discord's clock, so that none here can hold it back.
fn said_at(message: &Message) -> UnixMillis {
    address::snowflake(&message.id).map_or_else(clock::wall, address::made_at)
}

impl Reader {
    /// The bot's own id.
    pub(super) fn bot(&self) -> &str {
        self.discord.own_id()
    }

    /// What a message comes to.
    pub(super) async fn message(&self, raw: &str) -> Result<Heard, IngestError> {
        let mut message: Message = read(raw)?;
        let mut heard = Heard::default();
        heard.intake.traffic.push(Traffic {
            chat_id: message.channel_id.0.clone(),
            message_id: message.id.0.clone(),
            at: said_at(&message),
        });
        let discord = &*self.discord;
        if message.author.id.0 == discord.own_id() {
            return Ok(heard);
        }
        if !normalize::is_said(&message) {
            discord.account.health.count("skipped");
            return Ok(heard);
        }
        normalize::spell_out(&mut message);
        let spot = discord.spot(&message).await?;
        let addressed = address::addresses(&message, discord.own_id(), spot.own_roles());
        if normalize::is_empty(&message) {
            if !addressed && spot.chat.chat.kind != ChatKind::Dm {
                discord.account.health.count("skipped");
                return Ok(heard);
            }
            normalize::mark_unsupported(&mut message);
        }
        let text = self.said(&message, &spot);
        let sighting = self::sighting(&message, &spot, addressed)?;
        if !sighting.author_is_bot
            && let Some(code) = link_command(text)
        {
            // Others' bots have such a command too: among many people it has to be meant for this one.
            if addressed || sighting.private {
                self.link(&message, &spot, code).await;
                heard.at_once = true;
            }
            self.dropped(&sighting, DropReason::Consumed);
            return Ok(heard);
        }
        let mut event = normalize::event(&message, &spot, text, self.writing(false));
        let key = &discord.account.key;
        match self.admit(&sighting) {
            Ok(admitted) => {
                let author = normalize::answered_author(&message);
                sighting.inform(&self.ingress, key, &admitted, false, (&mut event, author.as_ref()));
                let chat = &spot.chat.chat;
                let has_threads = chat.kind == ChatKind::Group && chat.scope.is_some();
                heard.intake.opens = has_threads && threads::begins(&admitted, &event, addressed);
                heard.intake.follows = threads::follows(&admitted, &event);
                let entry = inbound::entry(key, &event, admitted, clock::wall());
                heard.is_for(entry.map_err(never)?, sighting);
            }
            Err(reason) => sighting.overhear(&self.ingress, key, reason, &event),
        }
        Ok(heard)
    }

    /// What an update of a message comes to. Most are Discord's own, who adds
    /// pictures to links; those of a person carry a time.
    pub(super) async fn update(&self, raw: &str) -> Result<Heard, IngestError> {
        let nothing = Heard::default();
        let update: Update = read(raw)?;
        let is_edit = update.author.is_some() && update.edited_timestamp.is_some();
        if !is_edit || update.content.is_none() {
            return Ok(nothing);
        }
        let message: Message = read(raw)?;
        let discord = &*self.discord;
        let is_own = message.author.id.0 == discord.own_id();
        if is_own || !normalize::is_said(&message) || normalize::is_empty(&message) {
            return Ok(nothing);
        }
        let spot = discord.spot(&message).await?;
        let text = self.said(&message, &spot);
        let (key, sighting) = (&discord.account.key, self::sighting(&message, &spot, true)?);
        if link_command(text).is_some() {
            sighting.reword(&self.ingress, key, "");
            return Ok(nothing);
        }
        let mut event = normalize::event(&message, &spot, text, self.writing(true));
        sighting.reword(&self.ingress, key, &event.text);
        // What waits was meant for the agent when it was written; who may speak to
        // it there is asked anew, because a route may have moved since.
        let Ok(admitted) = sighting.decide(&self.ingress, key) else { return Ok(nothing) };
        let author = normalize::answered_author(&message);
        sighting.inform(&self.ingress, key, &admitted, true, (&mut event, author.as_ref()));
        let revision = inbound::revision(key, &event, admitted, clock::wall()).map_err(never)?;
        Ok(Heard::at_once(Intake { revision: Some(revision), ..Intake::default() }))
    }

    /// What the end of messages comes to: those that still wait are not for anybody any more.
    pub(super) fn deleted(&self, raw: &str) -> Result<Heard, String> {
        let Deleted { channel_id, id, ids } = read(raw)?;
        let key = &self.discord.account.key;
        let withdrawn = |message: Id| {
            let which = Which { chat_id: &channel_id, thread_id: None, message_id: &message };
            self.ingress.admission.overheard().forget(key, which);
            Withdrawal {
                platform: key.platform.clone(),
                bot: key.bot.clone(),
                chat_id: channel_id.0.as_str().into(),
                message_id: message.0,
            }
        };
        let withdrawals = id.0.into_iter().chain(ids.0).map(withdrawn).collect();
        Ok(Heard::at_once(Intake { withdrawals, ..Intake::default() }))
    }

    /// Whether a route covers a chat: elsewhere nothing that is said is for anybody here.
    pub(super) fn is_routed(&self, chat: &Chat) -> bool {
        // What cannot be placed yet is once somebody writes there.
        let Some(places) = address::places(chat) else { return true };
        let sighting =
            Sighting { places, private: chat.kind == ChatKind::Dm, addressed: true, ..Sighting::default() };
        let decided = sighting.decide(&self.ingress, &self.discord.account.key);
        !matches!(decided, Err(DropReason::NoRoute))
    }

    /// Whom a message is for; why it is for nobody is noted.
    pub(super) fn admit(&self, sighting: &Sighting) -> Result<Admitted, DropReason> {
        let decided = sighting.decide(&self.ingress, &self.discord.account.key);
        decided.inspect_err(|reason| self.dropped(sighting, *reason))
    }

    /// Takes note of why nobody got a message.
    pub(super) fn dropped(&self, sighting: &Sighting, reason: DropReason) {
        sighting.dropped(&self.ingress, &self.discord.account.key, reason);
    }

    /// What follows when it is committed.
    pub(super) fn committed(&self, heard: Heard, taken: Taken) {
        let Heard { intake, sighting, .. } = heard;
        if taken.given_up {
            self.discord.account.health.count("given_up");
            return;
        }
        if sighting.is_some() {
            // Where an interaction told of its chat, the store knows more than what is at hand.
            self.discord.account.directory.unlearn(&intake.chats);
        }
        if let (true, Some(sighting)) = (taken.opens, &sighting) {
            self.ingress.admission.opens(&self.discord.account.key, &sighting.chat_id);
        }
        if intake.quarantined.is_some() {
            self.discord.account.health.count("quarantined");
        }
        if taken.no_instance {
            if let Some(sighting) = sighting {
                self.dropped(&sighting, DropReason::NoInstance);
            }
        } else if let Some((chat_id, instance)) = intake.engaged {
            self.discord.account.directory.change(&chat_id, |known| known.engaged = Some(instance));
        }
    }

    /// What is kept of something that cannot be read.
    pub(super) fn quarantined(&self, what: String, why: String, raw: &str) -> Heard {
        let bot = self.bot();
        tracing::warn!(bot, what, why, "an update of Discord's cannot be read; it is in quarantine");
        let raw = if may_hold_code(raw) { NOT_KEPT } else { raw };
        let sealed = self.ingress.seal.seal(raw, &seal::quarantine(NAME, bot)).unwrap_or_else(|error| {
            tracing::error!(bot, what, %error, "what cannot be read cannot be sealed either: it is not kept");
            Sealed::default()
        });
        let quarantined = NewQuarantined { what, why, sealed, at: clock::wall() };
        Heard::at_once(Intake { quarantined: Some(quarantined), ..Intake::default() })
    }

    fn said<'a>(&self, message: &'a Message, spot: &Spot) -> &'a str {
        let text = message.content.as_deref().unwrap_or_default();
        let said = address::said(text, self.bot(), spot.own_roles());
        // A mention alone is all that was said, unless something was shown with it.
        if said.is_empty() && message.attachments.is_empty() { text } else { said }
    }

    pub(super) fn writing(&self, is_edit: bool) -> Writing<'_> {
        Writing { own_id: self.bot(), source_flags: self.ingress.source_flags, is_edit }
    }
}

/// An event that cannot be written will not be written later either.
pub(super) fn never(error: error::Error) -> IngestError {
    IngestError::Unreadable(error.to_string())
}
