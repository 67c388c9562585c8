//! Taking in what WeCom posted: committed before it is acknowledged.

use super::Wecom;
use super::address::{is_user, places};
use super::normalize::{Meaning, Message};
use crate::ingress::Ingress;
use crate::kit::Sighting;
use angelia_contract::event::Event;
use angelia_core::admission::{DropReason, link_command};
use angelia_core::error::Result;
use angelia_core::store::Intake;
use std::sync::Arc;

/// Commands remembered for when WeCom posts them again, which it does within seconds.
const SETTLED: usize = 64;

/// What came of taking a callback in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// It is committed, or needs no commit.
    It,
    /// It is for another app.
    NotOurs,
    /// More waits for its agent than is kept: it has to be posted again.
    Full,
}

impl Wecom {
    /// Takes in what was decrypted. With an error nothing is committed, and it has to
    /// be posted again.
    pub(super) async fn take(self: &Arc<Self>, ingress: &Ingress, plain: &[u8]) -> Result<Took> {
        let account = &self.account;
        let message = match Message::read(plain) {
            Ok(message) => message,
            // WeCom would post it again, and no better.
            Err(why) => return account.set_aside(ingress, "callback", plain, why.0).await.map(|()| Took::It),
        };
        if !message.is_for(&self.config.agent_id) {
            return Ok(Took::NotOurs);
        }
        let user = message.from();
        let sighting = Sighting::of_person(user, &message.id(), places(&self.config.name, user));
        match message.meaning(ingress.source_flags) {
            Meaning::Happened => {
                if is_user(user) {
                    sighting.dropped(ingress, &account.key, DropReason::Consumed);
                }
            }
            Meaning::Said(event) => {
                let taken = match link_command(&event.text) {
                    Some(code) => self.link(ingress, &sighting, code).await.map(|()| true),
                    None => self.said(ingress, &sighting, &event).await,
                };
                self.strangers.remove(user);
                if !taken? {
                    if let Some(text) = account.replies.inbox_full(user) {
                        self.answer(user, text.to_owned());
                    }
                    return Ok(Took::Full);
                }
            }
        }
        Ok(Took::It)
    }

    /// Answers whether it was taken; if not, the inbox is full.
    async fn said(&self, ingress: &Ingress, sighting: &Sighting, event: &Event) -> Result<bool> {
        let account = &self.account;
        match account.admit(ingress, sighting, event)? {
            Ok(entry) => {
                let chats = account.learn_person(&sighting.author).await?;
                let intake = Intake { chats, entry: Some(entry), ..Intake::default() };
                Ok(!account.commit_said(ingress, sighting, intake).await?.full)
            }
            Err(reason) => {
                account.meet(ingress, &sighting.author).await?;
                sighting.dropped(ingress, &account.key, reason);
                Ok(true)
            }
        }
    }

    /// Tries a code, unless that was done and WeCom did not hear of it: it posts again what was
    /// not acknowledged in time, and a code that was used would be found used.
    async fn link(self: &Arc<Self>, ingress: &Ingress, sighting: &Sighting, code: &str) -> Result<()> {
        let mut settled = self.settled.lock().await;
        if settled.contains(&sighting.message_id) {
            return Ok(());
        }
        // Whoever typed it has written, and may be answered.
        self.account.meet(ingress, &sighting.author).await?;
        let answer = self.account.use_code(ingress, sighting, true, code).await?;
        if settled.len() >= SETTLED {
            settled.pop_front();
        }
        settled.push_back(sighting.message_id.clone());
        drop(settled);
        sighting.dropped(ingress, &self.account.key, DropReason::Consumed);
        self.answer(&sighting.author, answer);
        Ok(())
    }

    /// Answers a person without waiting for it.
    fn answer(self: &Arc<Self>, user: &str, text: String) {
        let (app, user) = (self.clone(), user.to_owned());
        self.account.reply(async move { app.say_own(&user, &text).await });
    }
}
