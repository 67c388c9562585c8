//! What people are told of turns: that a line waits for the end of one, and that one was cut off.

use super::Relay;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Goal, Sender, Target};
use angelia_core::identity::GatewayRecord;
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

    fn tell(
        &self,
        record: &Arc<GatewayRecord>,
        bot: Option<usize>,
        turn: &OpenTurn,
        reply_to: String,
        words: OwnWords,
    ) {
        let Some(bot) = bot else { return };
        let chat_id = turn.conversation.chat_id.to_string();
        let target = Target { chat_id, thread_id: turn.thread_id.clone() };
        let (egress, record) = (self.egress.clone(), record.clone());
        tokio::spawn(async move {
            let text = egress.own_words(bot, &target, record.instance, words).await;
            let owner = Sender { tenant: &record.tenant, instance: record.instance };
            egress.say(owner, Goal { bot, target }, text, reply_to);
        });
    }
}
