//! The `Platform` trait for WeCom: who does what.

use super::address::user_of;
use super::send::{BOT, PERSON};
use super::{Wecom, descriptor, webhook};
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

impl Platform for Wecom {
    fn descriptor(&self) -> Descriptor {
        descriptor()
    }

    /// WeCom offers to leave out what it was given within half an hour, by what it says
    /// and not by who said it when: two answers "ok" would be one. So that is
    /// not asked for, and a message may be sent twice.
    fn dedupe(&self, _action: &Action, _way: Option<Way>) -> Dedupe {
        Dedupe::No
    }

    fn budget(&self) -> Option<Rate> {
        Some(BOT)
    }

    fn chat_budget(&self, _target: &Target) -> Option<Rate> {
        Some(PERSON)
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome> {
        Box::pin(self.perform(delivery))
    }

    fn fetch_file<'a>(&'a self, at: &'a str) -> BoxFuture<'a, Result<FetchedFile>> {
        Box::pin(self.fetch(at))
    }

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            Ok(match user_of(target) {
                Some(user) => ActionResult::chat(user, chat_type::DM),
                None => ActionResult::failed("this is not a chat"),
            })
        })
    }

    fn tell<'a>(&'a self, target: &'a Target, text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let user = user_of(target).ok_or_else(|| Error::invalid("this is not a chat"))?;
            Ok(self.say_own(user, text).await?)
        })
    }

    fn listen(self: Arc<Self>, ingress: Ingress) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.run(&ingress).await })
    }

    fn webhooks(self: Arc<Self>, ingress: Ingress) -> Router {
        webhook::routes(self, ingress)
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }

    fn check<'a>(&'a self, public_url: &'a str) -> BoxFuture<'a, Result<Checkup>> {
        Box::pin(self.look_over(public_url))
    }
}
