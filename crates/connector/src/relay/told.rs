//! What people are told of turns: that a line waits for the end of one, and that one was cut off. And
//! of files that did not come.

use super::Relay;
use angelia_contract::source::Source;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Goal, Sender, Target};
use angelia_core::identity::GatewayRecord;
use angelia_core::media::Brought;
use angelia_core::own_words::OwnWords;
use angelia_core::ports::log::OpenTurn;
use std::sync::Arc;

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

    /// Tells somebody that files of theirs did not reach the agent.
    pub(super) fn tell_missing(
        &self,
        record: &Arc<GatewayRecord>,
        bot: &BotKey,
        source: &Source,
        files: &[Brought],
    ) {
        let missing = |wanted: bool| {
            files
                .iter()
                .any(|file| matches!(file, Brought::Missing { too_large, .. } if *too_large == wanted))
        };
        let bot = self.bots.position(bot);
        for (words, is_so) in [(OwnWords::FileTooLarge, missing(true)), (OwnWords::FileLost, missing(false))]
        {
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
