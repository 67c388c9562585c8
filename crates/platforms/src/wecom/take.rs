//! Taking in what WeCom posted: committed before it is acknowledged.

use super::Wecom;
use super::address::is_user;
use super::normalize::{Meaning, Message};
use crate::ingress::Ingress;
use crate::kit::Sighting;
use angelia_core::admission::{DropReason, link_command};
use angelia_core::error::Result;
use std::sync::Arc;

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

/// Whether a link code is in what was decrypted.
pub(super) fn holds_code(plain: &[u8]) -> bool {
    let meaning = Message::read(plain).ok().map(|message| message.meaning(false));
    matches!(meaning, Some(Meaning::Said(event)) if link_command(&event.text).is_some())
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
        let sighting = Sighting::of_person(&self.config.name, user, &message.id());
        match message.meaning(ingress.source_flags) {
            Meaning::Happened => {
                if is_user(user) {
                    sighting.dropped(ingress, &account.key, DropReason::Consumed);
                }
                Ok(Took::It)
            }
            Meaning::Said(event) => {
                let taken = account.take_posted(self, ingress, &sighting, &event).await?;
                Ok(if taken { Took::It } else { Took::Full })
            }
        }
    }
}
