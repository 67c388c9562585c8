//! WeCom as a platform.

use super::address::user_of;
use super::send::{BOT, PERSON};
use super::{NAME, Wecom, descriptor, webhook};
use crate::ingress::Ingress;
use crate::kit::health::{Checkup, Health};
use crate::platform::{Delivery, Outcome, Platform};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_contract::source::chat_type;
use angelia_core::egress::{Bot, Dedupe, Rate, Target, Whereabouts};
use angelia_core::error::Error;
use angelia_core::error::Result;
use angelia_core::vault::Way;
use axum::Router;
use futures_util::future::BoxFuture;
use std::sync::Arc;

impl Bot for Wecom {
    fn platform(&self) -> &str {
        NAME
    }

    fn id(&self) -> &str {
        &self.account.key.bot
    }

    fn places(&self, target: &Target) -> Whereabouts {
        self.whereabouts(target)
    }
}

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

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            Ok(match user_of(target) {
                Some(user) => ActionResult::chat(user, chat_type::DM),
                None => ActionResult::failed("this is not a chat"),
            })
        })
    }

    fn recall<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.account.directory.find(&target.chat_id).await.map(drop) })
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

    fn name(&self) -> &str {
        &self.config.name
    }

    fn health(&self) -> Option<Health> {
        Some(self.account.health.health())
    }

    fn check<'a>(&'a self, public_url: &'a str) -> BoxFuture<'a, Result<Checkup>> {
        Box::pin(self.look_over(public_url))
    }
}
