//! What people are told of turns: that a line waits for the end of one, and that one was cut off. And
//! of files that did not come.

use super::Relay;
use angelia_contract::source::Source;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Goal, Sender, Target};
use angelia_core::identity::GatewayRecord;
use angelia_core::media::{Attached, Brought, FileId};
use angelia_core::own_words::OwnWords;
use angelia_core::ports::log::OpenTurn;
use hashlink::LruCache;
use parking_lot::Mutex;
use std::sync::Arc;

/// Files of which it was told that they are missing; of the one longest ago it may be told again.
const REMEMBERED: usize = 1_024;

/// Of which files it was told, on this node since its start.
pub(super) fn nobody_told() -> Mutex<LruCache<FileId, ()>> {
    Mutex::new(LruCache::new(REMEMBERED))
}

impl Relay {
    /// Tells somebody, once, that the agent was cut off while it worked and has not answered.
    pub(super) fn tell_turn_lost(&self, record: &Arc<GatewayRecord>, turn: &OpenTurn) {
        let bot = self.bots.position(&BotKey::new(&turn.platform, &turn.bot));
        self.tell(record, bot, turn, turn.message_id.clone(), OwnWords::TurnLost);
    }

    /// Tells somebody that their line waits for the end of a turn. The web chat shows it.
    pub(super) fn tell_held(&self, record: &Arc<GatewayRecord>, turn: &OpenTurn, message_id: String) {
        let bot = self.bots.position_of_others(&BotKey::new(&turn.platform, &turn.bot));
        self.tell(record, bot, turn, message_id, OwnWords::Held);
    }

    /// Tells somebody that files of theirs did not reach the agent: once of each, however often it is
    /// looked for, on another socket or with what was said next.
    pub(super) fn tell_missing<'a>(
        &self,
        record: &Arc<GatewayRecord>,
        key: &BotKey,
        source: &Source,
        files: impl Iterator<Item = (&'a Attached, &'a Brought)>,
    ) {
        let (mut large, mut lost) = (false, false);
        for (file, brought) in files {
            let Brought::Missing { too_large, .. } = brought else { continue };
            let instance = record.instance.0.to_string();
            let about = FileId::named(&[&instance, &key.platform, &key.bot, &source.chat_id, &file.at]);
            if self.missing_told.lock().insert(about, ()).is_none() {
                *(if *too_large { &mut large } else { &mut lost }) = true;
            }
        }
        let bot = self.bots.position(key);
        for (words, is_so) in [(OwnWords::FileTooLarge, large), (OwnWords::FileLost, lost)] {
            if is_so {
                let target = Target { chat_id: source.chat_id.clone(), thread_id: source.thread_id.clone() };
                let reply_to = source.message_id.clone().unwrap_or_default();
                self.tell_at(record, bot, target, reply_to, words);
            }
        }
    }

    fn tell(
        &self,
        record: &Arc<GatewayRecord>,
        bot: Option<usize>,
        turn: &OpenTurn,
        reply_to: String,
        words: OwnWords,
    ) {
        let chat_id = turn.conversation.chat_id.to_string();
        let target = Target { chat_id, thread_id: turn.thread_id.clone() };
        self.tell_at(record, bot, target, reply_to, words);
    }

    fn tell_at(
        &self,
        record: &Arc<GatewayRecord>,
        bot: Option<usize>,
        target: Target,
        reply_to: String,
        words: OwnWords,
    ) {
        let Some(bot) = bot else { return };
        let (egress, record) = (self.egress.clone(), record.clone());
        tokio::spawn(async move {
            let text = egress.own_words(bot, &target, record.instance, words).await;
            let owner = Sender { tenant: &record.tenant, instance: record.instance };
            egress.say(owner, Goal { bot, target }, text, reply_to);
        });
    }
}
