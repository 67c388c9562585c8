//! The `Platform` trait for SMS: who does what.

use super::address::{NUMBER, PERSON, is_reachable};
use super::{Sms, descriptor, webhook};
use crate::ingress::Ingress;
use crate::kit::Account;
use crate::kit::health::Checkup;
use crate::platform::{Delivery, FetchedFile, Outcome, Platform};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_contract::source::chat_type;
use angelia_core::egress::{Dedupe, Rate, Target};
use angelia_core::error::{Error, Result};
use angelia_core::vault::Way;
use axum::Router;
use futures_util::future::BoxFuture;
use std::sync::Arc;

impl Platform for Sms {
    fn descriptor(&self) -> Descriptor {
        descriptor()
    }

    /// Twilio sends what it is given, as often as it is given it.
    fn dedupe(&self, _action: &Action, _way: Option<Way>) -> Dedupe {
        Dedupe::No
    }

    fn budget(&self) -> Option<Rate> {
        Some(NUMBER)
    }

    fn chat_budget(&self, _target: &Target) -> Option<Rate> {
        Some(PERSON)
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome> {
        Box::pin(self.perform(delivery))
    }

    fn fetch_file<'a>(&'a self, at: &'a str) -> BoxFuture<'a, Result<FetchedFile>> {
        Box::pin(self.api.fetch(at))
    }

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            // A person has no name here but the number.
            Ok(match self.account.directory.find(&target.chat_id).await? {
                Some(known) => ActionResult::chat(known.chat.chat_id.clone(), chat_type::DM),
                None => ActionResult::failed("this chat is not known yet"),
            })
        })
    }

    fn tell<'a>(&'a self, target: &'a Target, text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if !is_reachable(&target.chat_id) {
                return Err(Error::invalid("nobody can write to this sender"));
            }
            Ok(self.say_own(&target.chat_id, text).await?)
        })
    }

    fn listen(self: Arc<Self>, ingress: Ingress) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.keep_up(&ingress).await })
    }

    fn webhooks(self: Arc<Self>, ingress: Ingress) -> Router {
        let _ = self.public_url.set(ingress.public_url.clone());
        webhook::routes(self, ingress)
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }

    fn check<'a>(&'a self, public_url: &'a str) -> BoxFuture<'a, Result<Checkup>> {
        Box::pin(self.look_over(public_url))
    }
}
