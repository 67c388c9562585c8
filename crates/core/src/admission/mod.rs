//! Whose message is it: from what was observed to exactly one instance, or a
//! reason why not.
//!
//! [`admit`] is a pure function of the routes, of what is [`Known`] of the
//! tenants' instances, and of what was [`Observed`].

mod context;
mod own_commands;
mod place;
mod reason;
mod route;

pub use context::{Audience, Context, MOST_LINES, USUAL_LINES, Whose};
pub use own_commands::{is_stop, link_command, may_hold_code};
pub use place::{Grammar, Place, Places, direct};
pub use reason::DropReason;
pub use route::{Allow, Approve, Route, RouteOptions, Routes, Threads, fronts};

use crate::inbox::InstanceId;
use crate::turns::WhileBusy;

/// What was observed of an event, as far as admission cares.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The platform it came from.
    pub platform: &'a str,
    /// The bot that received it.
    pub bot: &'a str,
    /// The places that cover it, most specific first, without the platform.
    pub places: &'a [&'a str],
    /// Who wrote it.
    pub author: &'a str,
    /// Whether the chat is one person and the bot: what is said there is meant for it.
    pub private: bool,
    /// Whether the author is a bot itself.
    pub author_is_bot: bool,
    /// Whether the event addresses the bot: a mention, a reply to it, a command.
    pub addressed: bool,
    /// The instance that was addressed in this thread before: what is said there
    /// goes on being meant for it.
    pub engaged: Option<InstanceId>,
    /// The ids under which a policy may name the chat: chat, thread, parent, guild.
    pub scopes: &'a [&'a str],
}

/// A gateway's policy for one platform, as `POST /relay/policy` declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether messages in groups must address the bot.
    pub require_address: bool,
    /// Chats, channels or guilds where they need not.
    pub free_scopes: Vec<String>,
    /// Whether messages of other bots are delivered.
    pub allow_other_bots: bool,
}

impl Policy {
    /// Whether it names one of a chat's ids as free.
    pub fn is_free_in(&self, scopes: &[&str]) -> bool {
        self.free_scopes.iter().any(|free| scopes.contains(&free.as_str()))
    }
}

impl Default for Policy {
    /// What holds where nothing was declared.
    fn default() -> Self {
        Self { require_address: true, free_scopes: Vec::new(), allow_other_bots: false }
    }
}

/// The receiver of an admitted event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The tenant the place belongs to.
    pub tenant: String,
    /// The one instance that gets it.
    pub instance: InstanceId,
    /// What its route says becomes of it while the agent is busy.
    pub while_busy: Option<WhileBusy>,
    /// Whether its route names the instance: no other of the tenant has a say there.
    pub named: bool,
    /// What else its route says.
    pub options: RouteOptions,
}

impl Admitted {
    /// Whoever gets what a route without further words gives to an instance.
    pub fn to(tenant: &str, instance: InstanceId) -> Self {
        let (tenant, options) = (tenant.to_owned(), RouteOptions::default());
        Self { tenant, instance, while_busy: None, named: false, options }
    }
}

/// What admission has to know of a tenant's instances.
pub trait Known {
    /// The tenant's instances that front a bot, by [`fronts`].
    fn fronting(&self, tenant: &str, platform: &str, bot: &str) -> Vec<InstanceId>;

    /// The instance that gets what nothing else assigns.
    fn default_instance(&self, tenant: &str) -> Option<InstanceId>;

    /// Whether what is for the instance may wait there: a gateway that is not revoked serves
    /// it, or it waits for its tenant's first one.
    fn takes_messages(&self, instance: InstanceId) -> bool;

    /// What the instance declared for a platform.
    fn policy(&self, instance: InstanceId, platform: &str) -> Policy;
}

/// Decides who receives an event.
pub fn admit(routes: &Routes, known: &impl Known, observed: Observed<'_>) -> Result<Admitted, DropReason> {
    let route =
        routes.resolve(observed.platform, observed.bot, observed.places).ok_or(DropReason::NoRoute)?;
    if !route.allow.admits(observed.author) {
        return Err(DropReason::AuthorNotAllowed);
    }
    let instance = receiver(route, known, observed).ok_or(DropReason::NoInstance)?;
    is_wanted(route, known, instance, observed)?;
    Ok(Admitted {
        tenant: route.tenant.clone(),
        instance,
        while_busy: route.while_busy,
        named: route.instance.is_some(),
        options: route.options.clone(),
    })
}

/// The one instance an event is for. A rule that binds a person to an instance
/// would come first here.
///
/// An instance that waits for its tenant's first gateway is one. One whose gateways were all
/// revoked is none, and where the route names it, nobody else is: others of the tenant may not
/// answer in that place.
fn receiver(route: &Route, known: &impl Known, observed: Observed<'_>) -> Option<InstanceId> {
    let takes = |instance: &InstanceId| known.takes_messages(*instance);
    if let Some(named) = route.instance {
        return Some(named).filter(takes);
    }
    let mut fronting = known.fronting(&route.tenant, observed.platform, observed.bot);
    fronting.retain(takes);
    fronting.sort_unstable();
    fronting.dedup();
    match fronting.as_slice() {
        [only] => Some(*only),
        _ => known.default_instance(&route.tenant).filter(takes),
    }
}

/// Whether the receiver wants to hear this, or why not.
fn is_wanted(
    route: &Route,
    known: &impl Known,
    instance: InstanceId,
    observed: Observed<'_>,
) -> Result<(), DropReason> {
    let engaged = observed.engaged == Some(instance);
    let meant_for_it = observed.private || observed.addressed || engaged || route.free;
    if meant_for_it && !observed.author_is_bot {
        // The policy has no say; it is not looked up for nothing.
        return Ok(());
    }
    let policy = known.policy(instance, observed.platform);
    if observed.author_is_bot && !policy.allow_other_bots {
        return Err(DropReason::BotNotAllowed);
    }
    if meant_for_it || !policy.require_address || policy.is_free_in(observed.scopes) {
        return Ok(());
    }
    Err(DropReason::NotAddressed)
}

#[cfg(test)]
mod tests;
