//! The last lines of chats, as far as anybody may be told of them.

use super::{ALL_BYTES, CHAT_BYTES, ID_BYTES, KEPT_FOR, Said, TENANT_BYTES, newest, worth_telling};
use crate::clock::{Mono, UnixMillis};
use crate::inbox::InstanceId;
use angelia_contract::event::ContextItem;
use hashlink::LinkedHashMap;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What a line or a chat takes beside its texts, roughly.
const LINE: usize = 160;
const CHAT: usize = 512;
/// Instances that a line is remembered to have been given to. A place that changed hands more
/// often within half an hour begins anew.
const GIVEN_TO: usize = 4;
/// Events of a chat that are remembered to have asked: one that is read again, because it could
/// not be committed, gets the same lines.
const ASKED: usize = 8;

/// A chat, or a thread of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChatKey {
    platform: String,
    bot: String,
    chat_id: String,
    thread_id: Option<String>,
}

impl ChatKey {
    /// The chat that a bot of a platform knows by these ids. A thread may be a chat itself.
    pub fn new(platform: &str, bot: &str, chat_id: &str, thread_id: Option<&str>) -> Self {
        let thread_id = thread_id.filter(|thread| *thread != chat_id).map(str::to_owned);
        Self { platform: platform.to_owned(), bot: bot.to_owned(), chat_id: chat_id.to_owned(), thread_id }
    }

    fn bytes(&self) -> usize {
        let thread = self.thread_id.as_ref().map_or(0, String::len);
        // It is there twice.
        2 * (self.platform.len() + self.bot.len() + self.chat_id.len() + thread) + CHAT
    }
}

/// An event that lines are wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// Whose place it is.
    pub tenant: &'a str,
    /// The instance that gets it.
    pub instance: InstanceId,
    /// The provider's id of it.
    pub message_id: &'a str,
    /// When it was said.
    pub at: UnixMillis,
    /// Lines it may have.
    pub most: usize,
}

#[derive(Clone, Debug)]
struct Kept {
    said: Said,
    heard: Mono,
    /// Who was given it, with which event; with none, whoever was passed over.
    given: Vec<(InstanceId, Option<Arc<str>>)>,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.said.bytes() + LINE
    }

    fn was_given(&self, instance: InstanceId) -> bool {
        self.given.iter().any(|(to, _)| *to == instance) || self.given.len() >= GIVEN_TO
    }

    fn went_with(&self, asking: Asking<'_>) -> bool {
        let is_it = |with: &Arc<str>| **with == *asking.message_id;
        self.given.iter().any(|(to, with)| *to == asking.instance && with.as_ref().is_some_and(is_it))
    }
}

#[derive(Debug, Default)]
struct Chat {
    lines: VecDeque<Kept>,
    asked: VecDeque<(InstanceId, Arc<str>)>,
    bytes: usize,
}

/// The chats of a tenant, the one heard of longest ago first.
#[derive(Debug, Default)]
struct OfTenant {
    chats: LinkedHashMap<ChatKey, Chat>,
    bytes: usize,
}

/// The last lines of many chats. They belong to the tenant whose place it was when they were
/// said: nobody else is ever given them.
#[derive(Debug, Default)]
pub struct RecentLines {
    /// The one heard of longest ago first.
    tenants: LinkedHashMap<Arc<str>, OfTenant>,
    whose: HashMap<ChatKey, Arc<str>>,
    bytes: usize,
}

impl RecentLines {
    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a line of a chat that is this tenant's now: the last `most` of them.
    pub fn note(&mut self, chat: &ChatKey, tenant: &str, most: usize, said: Said, now: Mono) {
        if self.whose.get(chat).is_some_and(|whose| **whose != *tenant) {
            self.forget_chat(chat);
        }
        if most == 0 {
            return;
        }
        if let Some(known) = self.find(chat, |line| line.said.message_id == said.message_id) {
            // A provider brought it again.
            self.change(chat, |lines| lines[known].said = said);
            return;
        }
        self.make(chat, tenant);
        self.change(chat, |lines| {
            lines.push_back(Kept { said, heard: now, given: Vec::new() });
            let extra = lines.len().saturating_sub(most);
            lines.drain(..extra);
            let mut bytes: usize = lines.iter().map(Kept::bytes).sum();
            while bytes > CHAT_BYTES && lines.len() > 1 {
                bytes -= lines.pop_front().map_or(0, |line| line.bytes());
            }
        });
        self.make_room(tenant);
    }

    /// The lines before an event, oldest first, that `may` be told; each goes to an instance
    /// once. An event that asked before gets what it got.
    pub fn take(
        &mut self,
        chat: &ChatKey,
        asking: Asking<'_>,
        may: impl Fn(&Said) -> bool,
        now: Mono,
    ) -> Vec<ContextItem> {
        if asking.message_id.len() > ID_BYTES || asking.message_id.is_empty() {
            return Vec::new();
        }
        let Some(known) = self.chat(chat, asking.tenant) else { return Vec::new() };
        let asker: (InstanceId, Arc<str>) = (asking.instance, asking.message_id.into());
        if !known.asked.contains(&asker) {
            if known.asked.len() >= ASKED {
                known.asked.pop_front();
            }
            known.asked.push_back(asker.clone());
            let (mut left, since) = (asking.most, asking.at.before(KEPT_FOR));
            for line in known.lines.iter_mut().rev().filter(|line| !line.was_given(asking.instance)) {
                let is_recent = line.said.at >= since && now.since(line.heard) < KEPT_FOR;
                let is_other = line.said.message_id != asking.message_id;
                let goes = left > 0 && is_recent && is_other && may(&line.said);
                left -= usize::from(goes);
                line.given.push((asking.instance, goes.then(|| asker.1.clone())));
            }
        }
        self.again(chat, asking, may)
    }

    /// The lines that went with an event, as far as they are still known and `may` be told: its
    /// author changed what it says.
    pub fn again(
        &mut self,
        chat: &ChatKey,
        asking: Asking<'_>,
        may: impl Fn(&Said) -> bool,
    ) -> Vec<ContextItem> {
        let Some(known) = self.chat(chat, asking.tenant) else { return Vec::new() };
        let went = known.lines.iter().filter(|line| line.went_with(asking) && may(&line.said));
        newest(went.map(|line| line.said.item()).collect())
    }

    /// An event that asked is not delivered: the next may have its lines.
    pub fn give_back(&mut self, chat: &ChatKey, instance: InstanceId, message_id: &str) {
        let Some(tenant) = self.whose.get(chat).cloned() else { return };
        let Some(known) = self.chat(chat, &tenant) else { return };
        known.asked.retain(|(to, with)| *to != instance || **with != *message_id);
        for line in &mut known.lines {
            line.given.retain(|(to, with)| {
                *to != instance || with.as_ref().is_none_or(|with| **with != *message_id)
            });
        }
    }

    /// A line says something else now; whoever was told it before is not told again.
    pub fn reword(&mut self, chat: &ChatKey, message_id: &str, text: &str) {
        let Some(at) = self.find(chat, |line| line.said.message_id == message_id) else { return };
        match worth_telling(text) {
            Some(text) => self.change(chat, |lines| lines[at].said.text = text),
            None => self.forget(chat, message_id),
        }
    }

    /// A line is gone.
    pub fn forget(&mut self, chat: &ChatKey, message_id: &str) {
        self.change(chat, |lines| lines.retain(|line| line.said.message_id != message_id));
    }

    /// Forgets what was said too long ago.
    pub fn sweep(&mut self, now: Mono) {
        let chats: Vec<ChatKey> = self.whose.keys().cloned().collect();
        for chat in chats {
            self.change(&chat, |lines| lines.retain(|line| now.since(line.heard) < KEPT_FOR));
        }
    }

    fn chat(&mut self, chat: &ChatKey, tenant: &str) -> Option<&mut Chat> {
        self.tenants.get_mut(tenant)?.chats.get_mut(chat)
    }

    fn find(&mut self, chat: &ChatKey, which: impl Fn(&Kept) -> bool) -> Option<usize> {
        let tenant = self.whose.get(chat)?.clone();
        self.chat(chat, &tenant)?.lines.iter().position(which)
    }

    /// A chat of a tenant, heard of just now.
    fn make(&mut self, chat: &ChatKey, tenant: &str) {
        let tenant: Arc<str> = tenant.into();
        let of_tenant = self.tenants.entry(tenant.clone()).or_insert_with(OfTenant::default);
        if !of_tenant.chats.contains_key(chat) {
            of_tenant.chats.insert(chat.clone(), Chat { bytes: chat.bytes(), ..Chat::default() });
            of_tenant.bytes += chat.bytes();
            self.bytes += chat.bytes();
            self.whose.insert(chat.clone(), tenant.clone());
        }
        of_tenant.chats.to_back(chat);
        self.tenants.to_back(&tenant);
    }

    /// Changes the lines of a chat and counts anew; one without lines is forgotten.
    fn change(&mut self, chat: &ChatKey, change: impl FnOnce(&mut VecDeque<Kept>)) {
        let Some(tenant) = self.whose.get(chat).cloned() else { return };
        let Some(of_tenant) = self.tenants.get_mut(&tenant) else { return };
        let Some(known) = of_tenant.chats.get_mut(chat) else { return };
        change(&mut known.lines);
        let before = known.bytes;
        known.bytes = chat.bytes() + known.lines.iter().map(Kept::bytes).sum::<usize>();
        of_tenant.bytes = of_tenant.bytes - before + known.bytes;
        self.bytes = self.bytes - before + known.bytes;
        if known.lines.is_empty() {
            self.forget_chat(chat);
        }
    }

    fn forget_chat(&mut self, chat: &ChatKey) {
        let Some(tenant) = self.whose.remove(chat) else { return };
        let Some(of_tenant) = self.tenants.get_mut(&tenant) else { return };
        let gone = of_tenant.chats.remove(chat).map_or(0, |chat| chat.bytes);
        of_tenant.bytes -= gone;
        self.bytes -= gone;
        if of_tenant.chats.is_empty() {
            self.tenants.remove(&tenant);
        }
    }

    /// Forgets the chats that were heard of longest ago, of the tenant and then of all.
    fn make_room(&mut self, tenant: &str) {
        while let Some(of_tenant) = self.tenants.get(tenant).filter(|it| it.bytes > TENANT_BYTES) {
            let Some(oldest) = of_tenant.chats.front().map(|(chat, _)| chat.clone()) else { break };
            self.forget_chat(&oldest);
        }
        while self.bytes > ALL_BYTES {
            let quietest = self.tenants.front().and_then(|(_, of_tenant)| of_tenant.chats.front());
            let Some(oldest) = quietest.map(|(chat, _)| chat.clone()) else { break };
            self.forget_chat(&oldest);
        }
    }

    /// What it all counts to, anew.
    #[cfg(test)]
    pub(super) fn recount(&self) -> (usize, Vec<usize>, usize) {
        let of_chat = |(key, chat): (&ChatKey, &Chat)| {
            let lines: usize = chat.lines.iter().map(Kept::bytes).sum();
            assert_eq!(chat.bytes, key.bytes() + lines);
            assert!(lines <= CHAT_BYTES && !chat.lines.is_empty());
            chat.bytes
        };
        let tenants = self.tenants.values().map(|it| {
            let counted = it.chats.iter().map(of_chat).sum::<usize>();
            assert_eq!(counted, it.bytes);
            counted
        });
        let tenants: Vec<usize> = tenants.collect();
        (tenants.iter().sum(), tenants, self.whose.len())
    }
}
