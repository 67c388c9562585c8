//! Conversations that get a thread of their own: what was taken in and waits for one is released
//! into the log as a message of it, or as it was where none could be opened.
//!
//! The messages of a chat are attended to one after the other, so that those for which there is no
//! thread stay in order. A message waits for seconds at the most: whatever fails, its agent gets it.

use super::action::{Origin, OutboundAction, Reply};
use super::capability::Claims;
use super::{Egress, asked, threads};
use crate::supervise::Lifecycle;
use angelia_contract::action::Action;
use angelia_contract::event::Event;
use angelia_core::admission::DropReason;
use angelia_core::clock::{self, Mono};
use angelia_core::directory::BotKey;
use angelia_core::egress::{Goal, Target};
use angelia_core::fail;
use angelia_core::ports::{Opening, Openings, Released};
use angelia_core::threads::{Opened, initial};
use angelia_platforms::Outcome;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How long a message waits for its thread.
const OPENED_WITHIN: Duration = Duration::from_secs(5);
/// How long whoever noted that it opens a thread is believed to be at it. Twice as long as that
/// takes.
const BELIEVED_FOR: Duration = Duration::from_secs(15);
/// What waits for longer than this was left by a node that is gone.
const LEFT_AFTER: Duration = Duration::from_secs(20);
/// How often what was left is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How soon a store that does not answer is asked again.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// How often a thread is opened for a message, where that opens one: a message that ends the
/// process each time goes on without.
const MAX_TRIES: u32 = 3;
/// How long no thread is opened in a chat whose provider refused one: the bot may not, and
/// refusals are counted.
const SHUT_FOR: Duration = Duration::from_secs(600);
/// The same where it did not answer in time.
const SLOW_FOR: Duration = Duration::from_secs(60);
/// Chats that are heard of, attended to, or shut. What is beyond it is found by looking.
const MAX_CHATS: usize = 10_000;

/// A chat of a bot.
type Chat = (BotKey, String);

/// Where messages wait for threads, as bots say that took them in.
#[derive(Default)]
pub(crate) struct Beginnings {
    chats: Mutex<HashSet<Chat>>,
    bell: Notify,
}

impl Beginnings {
    /// Something waits in a chat.
    pub(crate) fn heard(&self, bot: &BotKey, chat_id: &str) {
        let mut chats = self.chats.lock();
        if chats.len() < MAX_CHATS {
            chats.insert((bot.clone(), chat_id.to_owned()));
        }
        drop(chats);
        self.bell.notify_one();
    }

    /// The chats that were heard of since.
    async fn next(&self) -> HashSet<Chat> {
        loop {
            let heard = std::mem::take(&mut *self.chats.lock());
            if !heard.is_empty() {
                return heard;
            }
            self.bell.notified().await;
        }
    }
}

/// What is being done about them.
#[derive(Default)]
pub(super) struct OpeningWork {
    /// The chats that somebody attends to, and whether more came there since.
    under_way: Mutex<HashMap<Chat, bool>>,
    /// Where no thread is opened, and until when.
    shut: Mutex<HashMap<Chat, Mono>>,
}

impl OpeningWork {
    /// Has a chat attended to; `false` if somebody does, who looks again then.
    fn begin(&self, chat: &Chat) -> bool {
        let mut under_way = self.under_way.lock();
        if let Some(more) = under_way.get_mut(chat) {
            *more = true;
            return false;
        }
        let has_room = under_way.len() < MAX_CHATS;
        if has_room {
            under_way.insert(chat.clone(), false);
        }
        has_room
    }

    /// Ends that; `false` if more came since.
    fn end(&self, chat: &Chat) -> bool {
        let mut under_way = self.under_way.lock();
        let more = under_way.get_mut(chat).is_some_and(std::mem::take);
        if !more {
            under_way.remove(chat);
        }
        !more
    }

    fn is_shut(&self, chat: &Chat, now: Mono) -> bool {
        self.shut.lock().get(chat).is_some_and(|until| *until > now)
    }

    fn shut(&self, chat: Chat, span: Duration, now: Mono) {
        let mut shut = self.shut.lock();
        shut.retain(|_, until| *until > now);
        if shut.len() < MAX_CHATS {
            shut.insert(chat, now + span);
        }
    }
}

/// Why a message goes on without a thread.
pub(super) enum NoThread {
    /// The provider, or the routes as they stand, do not let the bot.
    Refused(String),
    /// It could not be opened in time.
    NotNow(String),
}

impl Egress {
    /// Opens threads for what waits for them, for as long as the server runs.
    pub(crate) async fn open_threads(self: Arc<Self>, life: Arc<Lifecycle>) {
        loop {
            self.look_for_openings(&life).await;
            let look = tokio::time::sleep(LOOK_EVERY);
            tokio::pin!(look);
            loop {
                let heard = async {
                    tokio::select! {
                        () = &mut look => None,
                        chats = self.beginnings.next() => Some(chats),
                    }
                };
                match life.unless_stopped(heard).await {
                    None => return,
                    Some(None) => break,
                    Some(Some(chats)) => chats.into_iter().for_each(|chat| self.attend(chat, &life)),
                }
            }
        }
    }

    /// Finds what nobody is told of: what was there before this server, or was left by another node.
    async fn look_for_openings(self: &Arc<Self>, life: &Arc<Lifecycle>) {
        let age = if self.cluster.is_shared() { LEFT_AFTER } else { Duration::ZERO };
        let Ok(found) = self.ingest.openings(Openings::OlderThan(age)).await else { return };
        for chat in found.into_iter().map(|it| (it.bot, it.chat_id)).collect::<HashSet<_>>() {
            self.attend(chat, life);
        }
    }

    /// Attends to a chat, unless somebody does.
    fn attend(self: &Arc<Self>, chat: Chat, life: &Arc<Lifecycle>) {
        if !self.openings.begin(&chat) {
            return;
        }
        let (egress, life) = (self.clone(), life.clone());
        tokio::spawn(async move {
            while !life.is_stopping() {
                let of_chat = Openings::OfChat(chat.0.clone(), chat.1.clone());
                let found = egress.ingest.openings(of_chat).await;
                let done = match found {
                    Ok(found) if found.is_empty() => true,
                    Ok(found) => !egress.release_all(&chat, found, &life).await,
                    Err(_) => !life.pause(STORE_AGAIN).await,
                };
                if done && egress.openings.end(&chat) {
                    return;
                }
            }
            egress.openings.under_way.lock().remove(&chat);
        });
    }

    /// Releases messages of a chat, in order; `false` if the rest is somebody else's.
    async fn release_all(&self, chat: &Chat, found: Vec<Opening>, life: &Lifecycle) -> bool {
        for opening in found {
            if life.is_stopping() {
                return false;
            }
            let believed = if self.cluster.is_shared() { BELIEVED_FOR } else { Duration::ZERO };
            let tries = match self.ingest.begin_opening(opening.id, believed).await {
                Ok(Some(tries)) => tries,
                Ok(None) => return false,
                Err(_) => return life.pause(STORE_AGAIN).await,
            };
            fail::point("opening_begun");
            if !self.release_one(chat, &opening, tries).await {
                return life.pause(STORE_AGAIN).await;
            }
        }
        true
    }

    /// Opens a thread for a message, if that can be, and has it go on; `false` if the store does
    /// not take that.
    async fn release_one(&self, chat: &Chat, opening: &Opening, tries: u32) -> bool {
        let bot = self.bots.position(&opening.bot);
        let moved = match bot {
            // Where opening it twice opens two, one try is all: a crash leaves an empty one at the most.
            Some(bot) if tries == 1 || self.bots[bot].reopens() && tries <= MAX_TRIES => {
                let opened = self.open_for(chat, bot, opening).await;
                opened.and_then(|opened| self.bots[bot].moved(&opening.chat_id, &opened))
            }
            _ => None,
        };
        fail::point("opening_made");
        match self.ingest.release(opening.id, moved).await {
            Ok(Released::NoInstance) => {
                self.metrics.dropped(DropReason::NoInstance);
                true
            }
            Ok(Released::InLog | Released::Gone) => true,
            Err(_) => false,
        }
    }

    /// Opens a thread for a message, unless its chat is shut; a failure shuts it for a while.
    async fn open_for(&self, chat: &Chat, bot: usize, opening: &Opening) -> Option<Opened> {
        if self.openings.is_shut(chat, clock::mono()) {
            return None;
        }
        let action = wanted(bot, opening)?;
        let opening = async {
            if self.is_elsewhere(bot) {
                asked::open_thread(self, &action, OPENED_WITHIN).await
            } else {
                open_here(self, &action).await
            }
        };
        let late = || Err(NoThread::NotNow("the platform did not answer in time".into()));
        let (why, span) = match tokio::time::timeout(OPENED_WITHIN, opening).await.unwrap_or_else(|_| late())
        {
            Ok(opened) => return Some(opened),
            Err(NoThread::Refused(why)) => (why, SHUT_FOR),
            Err(NoThread::NotNow(why)) => (why, SLOW_FOR),
        };
        self.openings.shut(chat.clone(), span, clock::mono());
        let platform = self.bots[bot].platform();
        tracing::warn!(
            platform,
            chat = chat.1,
            why,
            "no thread can be opened; messages go on where they are"
        );
        None
    }
}

/// The thread that a message wants; `None` if the message cannot be read.
fn wanted(bot: usize, opening: &Opening) -> Option<Arc<OutboundAction>> {
    let event: Event = serde_json::from_slice(&opening.body).ok()?;
    let author = event.source.user_display_name.as_deref().or(event.source.user_name.as_deref());
    let action = Action::ThreadCreate {
        chat_id: opening.chat_id.clone(),
        thread_name: initial(&event.text, author),
        message_id: Some(opening.message_id.clone()),
        metadata: Default::default(),
    };
    let origin = Origin { tenant: opening.tenant.clone(), instance: opening.instance, gateway_id: None };
    let goal = Goal { bot, target: Target::chat(opening.chat_id.clone()) };
    Some(OutboundAction::new(origin, goal, action, Claims::Nothing, Reply::default(), None))
}

/// Opens a thread by a bot that this node holds, if the one it is for may write there.
async fn open_here(egress: &Egress, action: &OutboundAction) -> Result<Opened, NoThread> {
    let Action::ThreadCreate { thread_name, message_id, .. } = &action.action else {
        return Err(NoThread::Refused("this opens no thread".into()));
    };
    let not_now = |why: &str| NoThread::NotNow(why.to_owned());
    let tenant = &action.origin.tenant;
    let slot = egress.refusals.slot_at_once(tenant).ok_or_else(|| not_now("too much was refused lately"))?;
    let permit = action.rate_limit(egress).turn(tenant).await;
    action.recall(egress).await.map_err(|error| NoThread::NotNow(error.to_string()))?;
    if !action.may_call_now(egress) {
        return Err(not_now("the bot is not this node's, or may not write there"));
    }
    permit.made();
    let (platform, may) = (action.platform(egress), || action.may_call_now(egress));
    let made = platform.open_thread(&action.target, thread_name, message_id.as_deref(), &may).await;
    slot.over(matches!(made, Err(Outcome::Refused { .. })));
    let opened = made.map_err(|outcome| match outcome {
        Outcome::Refused { why } => NoThread::Refused(why),
        Outcome::Later { why, .. } | Outcome::Unknown { why } | Outcome::Open { why } => {
            NoThread::NotNow(why)
        }
        Outcome::Sent { .. } => NoThread::NotNow(String::new()),
    })?;
    threads::keep(egress, action.bot, &action.target, &opened, action.origin.instance).await;
    Ok(opened)
}

/// Opens a thread for another node, which releases the message.
pub(super) async fn open_for_other(egress: &Egress, action: &OutboundAction) -> Result<Opened, String> {
    open_here(egress, action).await.map_err(|no_thread| match no_thread {
        NoThread::Refused(why) | NoThread::NotNow(why) => why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(id: &str) -> Chat {
        (BotKey::new("discord", "77"), id.to_owned())
    }

    #[test]
    fn one_attends_to_a_chat_and_looks_again_if_more_came() {
        let work = OpeningWork::default();
        assert!(work.begin(&chat("1")) && work.begin(&chat("2")));
        assert!(!work.begin(&chat("1")), "somebody does");
        assert!(!work.end(&chat("1")), "more came since");
        assert!(work.end(&chat("1")) && work.begin(&chat("1")));
    }

    #[test]
    fn where_a_thread_was_refused_none_is_tried_for_a_while() {
        let (work, now) = (OpeningWork::default(), Mono(Duration::from_secs(9_000)));
        work.shut(chat("1"), SHUT_FOR, now);
        assert!(work.is_shut(&chat("1"), now) && !work.is_shut(&chat("2"), now));
        assert!(!work.is_shut(&chat("1"), now + SHUT_FOR));
    }

    #[tokio::test]
    async fn what_was_heard_of_is_told_once() {
        let beginnings = Beginnings::default();
        beginnings.heard(&BotKey::new("discord", "77"), "1");
        beginnings.heard(&BotKey::new("discord", "77"), "1");
        assert_eq!(beginnings.next().await, HashSet::from([chat("1")]));
        assert!(beginnings.chats.lock().is_empty());
    }
}
