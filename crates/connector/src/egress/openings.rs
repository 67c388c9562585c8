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
use angelia_core::ports::{Begun, Opening, Openings, Released};
use angelia_core::threads::{Opened, initial};
use angelia_platforms::Outcome;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a message waits for its thread.
const OPENED_WITHIN: Duration = Duration::from_secs(5);
/// How much longer a node waits to hear of a thread that another one opens: so long at the least the
/// other has to note it and to tell.
const TOLD_AFTER: Duration = Duration::from_secs(2);
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
/// The same where it did not open one now, or did not answer in time.
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

/// Somebody attends to a chat until this is dropped, which it is by a panic too.
struct Attends<'a> {
    work: &'a OpeningWork,
    chat: &'a Chat,
    is_over: bool,
}

impl Attends<'_> {
    /// Ends that; `false` if more came since.
    fn end(&mut self) -> bool {
        let mut under_way = self.work.under_way.lock();
        let more = under_way.get_mut(self.chat).is_some_and(std::mem::take);
        if !more {
            under_way.remove(self.chat);
            // From now on somebody else may attend to it.
            self.is_over = true;
        }
        !more
    }
}

impl Drop for Attends<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.work.under_way.lock().remove(self.chat);
        }
    }
}

/// Why a message goes on without a thread.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NoThread {
    /// The provider does not let the bot.
    Refused(String),
    /// The provider was asked, and did not open it in time.
    NotNow(String),
    /// The provider was not asked.
    NotAsked(String),
}

impl NoThread {
    /// Why, and for how long none is tried in the chat. What the provider said of it lasts; else
    /// only as long as it took, so that those behind do not wait for as long each.
    fn shuts(self, took: Duration) -> (String, Duration) {
        match self {
            Self::Refused(why) => (why, SHUT_FOR),
            Self::NotNow(why) => (why, SLOW_FOR),
            Self::NotAsked(why) => (why, took),
        }
    }
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
            let mut attends = Attends { work: &egress.openings, chat: &chat, is_over: false };
            while !life.is_stopping() {
                let of_chat = Openings::OfChat(chat.0.clone(), chat.1.clone());
                let found = egress.ingest.openings(of_chat).await;
                let done = match found {
                    Ok(found) if found.is_empty() => true,
                    Ok(found) => !egress.release_all(&chat, found, &life).await,
                    Err(_) => !life.pause(STORE_AGAIN).await,
                };
                if done && attends.end() {
                    return;
                }
            }
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
                Ok(Begun::Try(tries)) => tries,
                Ok(Begun::Gone) => continue,
                Ok(Begun::NotYet) => return false,
                Err(_) => return life.pause(STORE_AGAIN).await,
            };
            fail::point("opening_begun");
            if !self.release_one(chat, &opening, tries, life).await {
                return false;
            }
        }
        true
    }

    /// Opens a thread for a message, if that can be, and has it go on; `false` if the server stops
    /// before the store takes that. Until then the thread is remembered: Telegram would open another.
    async fn release_one(&self, chat: &Chat, opening: &Opening, tries: u32, life: &Lifecycle) -> bool {
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
        let released = loop {
            match self.ingest.release(opening.id, moved.clone()).await {
                Ok(released) => break released,
                Err(_) if life.pause(STORE_AGAIN).await => {}
                Err(_) => return false,
            }
        };
        if released == Released::NoInstance {
            self.metrics.dropped(DropReason::NoInstance);
        }
        // A thread that has its message's id is a chat, and what was said there meanwhile waited.
        if bot.is_some_and(|bot| self.bots[bot].reopens()) {
            self.beginnings.heard(&opening.bot, &opening.message_id);
        }
        true
    }

    /// Opens a thread for a message, unless its chat is shut; a failure shuts it for a while.
    async fn open_for(&self, chat: &Chat, bot: usize, opening: &Opening) -> Option<Opened> {
        if self.openings.is_shut(chat, clock::mono()) {
            return None;
        }
        let action = wanted(bot, opening)?;
        let began = clock::mono();
        let opened = if self.is_elsewhere(bot) {
            asked::open_thread(self, &action, OPENED_WITHIN + TOLD_AFTER).await
        } else {
            open_here(self, &action, OPENED_WITHIN).await
        };
        let now = clock::mono();
        let (why, span) = match opened {
            Ok(opened) => return Some(opened),
            Err(no_thread) => no_thread.shuts(now.since(began)),
        };
        self.openings.shut(chat.clone(), span, now);
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

/// Opens a thread by a bot that this node holds, in time. Once it is open it is kept, however long
/// that takes: what is meant for an agent from now on is where its message goes.
async fn open_here(egress: &Egress, action: &OutboundAction, within: Duration) -> Result<Opened, NoThread> {
    let asked = AtomicBool::new(false);
    let made = tokio::time::timeout(within, call(egress, action, &asked)).await;
    let opened = made.unwrap_or_else(|_| Err(unanswered(asked.load(Ordering::Relaxed))))?;
    threads::keep(egress, action.bot, &action.target, &opened, action.origin.instance).await;
    Ok(opened)
}

/// What silence means.
fn unanswered(asked: bool) -> NoThread {
    if asked {
        NoThread::NotNow("the platform did not answer in time".into())
    } else {
        NoThread::NotAsked("the bot had too much else to do".into())
    }
}

/// Has a provider open a thread, if the one it is for may write there; notes in `asked` that it was
/// called.
async fn call(egress: &Egress, action: &OutboundAction, asked: &AtomicBool) -> Result<Opened, NoThread> {
    let not_asked = |why: &str| NoThread::NotAsked(why.to_owned());
    let Action::ThreadCreate { thread_name, message_id, .. } = &action.action else {
        return Err(not_asked("this opens no thread"));
    };
    let tenant = &action.origin.tenant;
    let slot =
        egress.refusals.slot_at_once(tenant).ok_or_else(|| not_asked("too much was refused lately"))?;
    let permit = action.rate_limit(egress).turn(tenant).await;
    action.recall(egress).await.map_err(|error| NoThread::NotAsked(error.to_string()))?;
    if !action.may_call_now(egress) {
        return Err(not_asked("the bot is not this node's, or may not write there"));
    }
    permit.made();
    let may = || {
        let may = action.may_call_now(egress);
        asked.fetch_or(may, Ordering::Relaxed);
        may
    };
    let platform = action.platform(egress);
    let made = platform.open_thread(&action.target, thread_name, message_id.as_deref(), &may).await;
    let was_asked = asked.load(Ordering::Relaxed);
    slot.over(was_asked && matches!(made, Err(Outcome::Refused { .. })));
    made.map_err(|outcome| no_thread(outcome, was_asked))
}

/// What a platform's answer means, whose provider was asked or was not.
fn no_thread(outcome: Outcome, asked: bool) -> NoThread {
    match outcome {
        Outcome::Refused { why } if asked => NoThread::Refused(why),
        Outcome::Refused { why }
        | Outcome::Later { why, .. }
        | Outcome::Unknown { why }
        | Outcome::Open { why } => {
            if asked {
                NoThread::NotNow(why)
            } else {
                NoThread::NotAsked(why)
            }
        }
        Outcome::Sent { .. } => NoThread::NotNow(String::new()),
    }
}

/// Opens a thread for another node, which releases the message, and which waits for that since it
/// noted it: by then it is opened, or never.
pub(super) async fn open_for_other(egress: &Egress, action: &OutboundAction) -> Result<Opened, NoThread> {
    let not_asked = |why: &str| NoThread::NotAsked(why.to_owned());
    let message_id = match &action.action {
        Action::ThreadCreate { message_id: Some(message_id), .. } => message_id.clone(),
        _ => return Err(not_asked("this opens no thread")),
    };
    let one = Openings::One(egress.bot_key(action.bot), action.target.chat_id.clone(), message_id);
    let found = egress.ingest.openings(one).await.map_err(|error| NoThread::NotAsked(error.to_string()))?;
    let left = found.first().and_then(|opening| OPENED_WITHIN.checked_sub(opening.begun?));
    let left = left.ok_or_else(|| not_asked("nobody waits for it any more"))?;
    open_here(egress, action, left).await
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
        let one = chat("1");
        let mut attends = Attends { work: &work, chat: &one, is_over: false };
        assert!(!attends.end(), "more came since");
        assert!(attends.end() && work.begin(&one));
        drop(attends);
        assert!(!work.begin(&one), "it is somebody else's by now");
    }

    #[tokio::test]
    async fn a_panic_leaves_a_chat_to_whoever_comes_next() {
        let work = Arc::new(OpeningWork::default());
        assert!(work.begin(&chat("1")));
        let attended = work.clone();
        let panics = tokio::spawn(async move {
            let one = chat("1");
            let _attends = Attends { work: &attended, chat: &one, is_over: false };
            panic!("on purpose");
        });
        assert!(panics.await.unwrap_err().is_panic());
        assert!(work.begin(&chat("1")));
    }

    #[test]
    fn only_what_the_provider_said_shuts_a_chat_for_long() {
        let refused = || Outcome::Refused { why: "no".into() };
        let unknown = || Outcome::Unknown { why: "no".into() };
        let spans = [(refused(), true), (unknown(), true), (refused(), false), (unknown(), false)]
            .map(|(outcome, asked)| no_thread(outcome, asked).shuts(Duration::ZERO).1);
        assert_eq!(spans, [SHUT_FOR, SLOW_FOR, Duration::ZERO, Duration::ZERO]);
        assert_eq!(unanswered(true).shuts(OPENED_WITHIN).1, SLOW_FOR);
        assert_eq!(unanswered(false).shuts(OPENED_WITHIN).1, OPENED_WITHIN);
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
