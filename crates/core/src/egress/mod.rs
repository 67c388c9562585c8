//! Outbound: where an agent may write, how an action survives a crash, and how
//! one bot is shared fairly.

mod budget;
pub mod delivery;
mod ledger;
mod lookups;
mod outbox;
mod pace;
mod refusals;
mod remark;
mod target;

pub use crate::limit::Rate;
pub use budget::{Budget, Ticket};
pub use delivery::{Earlier, EgressTimings, Outcome, Reach};
pub use ledger::{ActionRow, ActionState, Dedupe, Owner, Resume, after_crash, is_suspect};
pub use lookups::{ASK_AGAIN, ASKED_IN, Lookups, MAX_ASKED, UNANSWERED_AGAIN};
pub use outbox::InHand;
pub use pace::{Paces, Urgency};
pub use refusals::{Decision, MAX_REFUSED, REFUSED_WINDOW, RefusalCounts};
pub use remark::{FOLLOW_UP, REMARK, Remark, SEND, remark_on};
pub use target::{
    Bot, Goal, MAX_CONTENT, NO_CAPABILITY, Refusal, Target, Whereabouts, could_know, decide, is_named,
    may_write,
};

use crate::admission::Routes;
use crate::inbox::InstanceId;
use std::time::Duration;

/// Longest time until an action is answered. Gateways stop waiting at 30 s.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(25);

/// How long an accepted action is tried for, counted from its acceptance. An
/// outage of a few minutes is ridden out; an answer that comes later than that
/// answers nobody any more.
pub const QUEUED_FOR: Duration = Duration::from_secs(600);

/// The sender of an action, from the stored record of its socket.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// Its tenant.
    pub tenant: &'a str,
    /// Its instance.
    pub instance: InstanceId,
}

/// Whether `sender` may write to the target covered by `places` (most specific
/// first): the same question ingress asks, on the routes as they stand now.
pub fn authorize(routes: &Routes, sender: Sender<'_>, platform: &str, bot: &str, places: &[&str]) -> bool {
    routes.resolve(platform, bot, places).is_some_and(|route| {
        route.tenant == sender.tenant && route.instance.is_none_or(|instance| instance == sender.instance)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Allow, Route, RouteOptions};

    #[test]
    fn only_the_tenant_and_instance_of_the_route_may_write() {
        let route = |place: &str, tenant: &str, instance: Option<i64>| Route {
            place: place.parse().unwrap(),
            bot: None,
            tenant: tenant.into(),
            instance: instance.map(InstanceId),
            allow: Allow::Any,
            free: true,
            while_busy: None,
            options: RouteOptions::default(),
        };
        let routes =
            Routes::new(vec![route("webchat:*", "default", None), route("webchat:lab", "acme", Some(7))]);
        let may = |tenant, instance, places: &[&str]| {
            let sender = Sender { tenant, instance: InstanceId(instance) };
            authorize(&routes, sender, "webchat", "webchat", places)
        };
        assert!(may("acme", 7, &["lab", "*"]));
        assert!(!may("acme", 8, &["lab", "*"]), "another instance of the tenant");
        assert!(!may("default", 7, &["lab", "*"]), "another tenant");
        assert!(may("default", 3, &["den", "*"]));
        assert!(!may("acme", 7, &["den", "*"]));
    }
}
