//! Taking in what people say where each message is posted by itself, and posted again
//! until it is acknowledged.

use super::{Account, Sighting};
use crate::ingress::Ingress;
use crate::platform::Platform;
use angelia_contract::event::Event;
use angelia_core::admission::{DropReason, link_command};
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::own_words::OwnWords;
use angelia_core::store::Intake;
use std::sync::Arc;

/// Commands remembered for when they are posted again, which happens within seconds.
const SETTLED: usize = 64;

impl Account {
    /// Takes in what a person said to `bot`: a link code is used, everything else committed
    /// for the instance it is for, if it is for any. Answers whether it was taken: otherwise an
    /// inbox is full, and it has to be posted again. With an error nothing is committed.
    pub(crate) async fn take_posted<P: Platform + 'static>(
        &self,
        bot: &Arc<P>,
        ingress: &Ingress,
        sighting: &Sighting,
        event: &Event,
    ) -> Result<bool> {
        if let Some(code) = link_command(&event.text) {
            if let Some(answer) = self.link_once(ingress, sighting, code).await? {
                self.tell(bot, &sighting.chat_id, answer);
            }
            return Ok(true);
        }
        let said = match self.admit(ingress, sighting, event).await? {
            Ok(said) => said,
            Err(reason) => {
                self.meet(ingress, &sighting.author).await?;
                sighting.dropped(ingress, &self.key, reason);
                return Ok(true);
            }
        };
        let chats = self.learn_person(&sighting.author).await?;
        let intake = Intake { chats, ..Intake::default() };
        let full = self.commit_said(ingress, sighting, said, intake).await?.full;
        // It is posted again, but not for long: whoever wrote is told.
        let may_tell = || ingress.has(&self.key) && self.replies.may_tell_full(&sighting.author);
        if full && may_tell() {
            self.tell(bot, &sighting.chat_id, OwnWords::InboxFull.text(sighting.language).to_owned());
        }
        Ok(!full)
    }

    /// Tries a code, unless that was done and the provider did not hear of it: a code that was
    /// used would be found used. Answers what to tell.
    async fn link_once(&self, ingress: &Ingress, sighting: &Sighting, code: &str) -> Result<Option<String>> {
        let mut settled = self.replies.settled.lock().await;
        if settled.contains(&sighting.message_id) {
            return Ok(None);
        }
        // Whoever typed it has written, and may be answered.
        self.meet(ingress, &sighting.author).await?;
        let answer = self.use_code(ingress, sighting, true, code).await?;
        if settled.len() >= SETTLED {
            settled.pop_front();
        }
        settled.push_back(sighting.message_id.clone());
        drop(settled);
        sighting.dropped(ingress, &self.key, DropReason::Consumed);
        Ok(Some(answer))
    }

    fn tell<P: Platform + 'static>(&self, bot: &Arc<P>, chat_id: &str, text: String) {
        let (bot, target) = (bot.clone(), Target::chat(chat_id));
        self.reply(async move { bot.tell(&target, &text).await });
    }
}

#[cfg(test)]
#[path = "posted_tests.rs"]
mod tests;
