//! Routes, as an operator makes them, the codes that let others make one, and where
//! people write that nobody listens.

use super::Admin;
use super::gateways::{check_welcome, gateway};
use super::other_nodes::{self, HeardPlace};
use super::types::Nothing;
use crate::bootstrap::DEFAULT_TENANT;
use angelia_core::admission::{self, Allow, Approve, Context, Place, RouteOptions, Threads};
use angelia_core::audit::Actor;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::identity::check_name;
use angelia_core::secret::{fingerprint, random_hex};
use angelia_core::store::{AccessStore, CodeAllow, IdentityStore, LinkCode};
use angelia_core::turns::WhileBusy;
use angelia_platforms::PLACES;
use std::sync::Arc;
use std::time::Duration;

asked! {
    /// A route to be made.
    pub struct AddRoute {
        /// The place, as `platform:path`.
        pub place: String,
        /// Whose place it becomes.
        pub tenant: String,
        /// Only messages to this bot.
        pub bot: Option<String>,
        /// The gateway that answers there, if not the tenant's default.
        pub gateway: Option<String>,
        /// Who may speak there: ids, or the word `any`.
        pub allow: Option<Vec<String>>,
        /// Whether messages that do not address the bot are delivered too.
        #[serde(default)]
        pub free: bool,
        /// What becomes of messages while the agent is busy; if not said, what its gateway says.
        pub while_busy: Option<WhileBusy>,
        /// Who gives the agent leave to do something; if not said, the person in whose turn it asks.
        pub approve: Option<Approve>,
        /// What the agent gets to know of what was not said to it: `off`, a number of lines, `any`
        /// for those of everybody there, or `any,50`; if not said, 20 lines of those who may speak.
        pub context: Option<Context>,
        /// Whether conversations get threads of their own, where the bot may open them; if not said, off.
        pub threads: Option<Threads>,
        /// Whether it takes the place of the route that is there, if one is.
        #[serde(default)]
        pub replace: bool,
    }

    /// A route to be taken away.
    pub struct RemoveRoute {
        /// The place.
        pub place: String,
        /// The route of this bot, where it has one of its own.
        pub bot: Option<String>,
    }

    /// A code to be made.
    pub struct MakeCode {
        /// Whose the place becomes where it is typed.
        pub tenant: String,
        /// The gateway that answers there, if not the tenant's default.
        pub gateway: Option<String>,
        /// Who may speak there; without it only whoever types the code.
        pub allow: Option<Vec<String>>,
        /// Whether messages that do not address the bot are delivered too.
        #[serde(default)]
        pub free: bool,
    }
}

answered! {
    /// A route that is gone.
    pub struct RemovedRoute {
        /// Its place.
        pub removed: String,
    }

    /// Every route.
    pub struct Routes {
        /// In the order they were made.
        pub routes: Vec<Route>,
    }

    /// A route.
    pub struct Route {
        /// Its place.
        pub place: String,
        /// The bot it is for; `null` for any.
        pub bot: Option<String>,
        /// Whose place it is.
        pub tenant: String,
        /// The gateway that answers there, if not the tenant's default.
        pub gateway: Option<String>,
        /// Who may speak there: ids, or the word `any`.
        pub allow: Vec<String>,
        /// Whether messages that do not address the bot are delivered too.
        pub free: bool,
        /// What becomes of messages while the agent is busy; `null` for what its gateway says.
        pub while_busy: Option<WhileBusy>,
        /// Who gives the agent leave to do something.
        pub approve: Approve,
        /// What the agent gets to know of what was not said to it.
        pub context: Context,
        /// Whether conversations get threads of their own.
        pub threads: Threads,
    }

    /// The last places that spoke without a route.
    pub struct Unrouted {
        /// The one heard of last first.
        pub unrouted: Vec<UnroutedPlace>,
        /// Nodes that did not answer in time, and may have heard of more.
        pub not_asked: Vec<String>,
    }

    /// A place that spoke without a route.
    pub struct UnroutedPlace {
        /// The command that gives it to a tenant.
        pub add: String,
        /// The place.
        pub place: String,
        /// The bot that heard it.
        pub bot: String,
        /// How many messages.
        pub count: u64,
        /// When the last one came.
        pub last_at: UnixMillis,
    }

    /// A code that gives away the place where it is typed, once.
    pub struct RouteCode {
        /// The code.
        pub code: String,
        /// Until when it is good.
        pub expires_at: UnixMillis,
        /// What to type.
        pub say: String,
    }
}

/// How long a code can be used: long enough to type it in another window.
const CODE_FOR: Duration = Duration::from_secs(15 * 60);
/// Bytes of randomness in a code. It is typed by hand, lives for minutes and
/// is guessed a few times at most.
const CODE_BYTES: usize = 10;

/// The word that lets everybody speak.
const ANYBODY: &str = "any";

pub(super) async fn add(admin: Arc<Admin>, body: AddRoute) -> Result<Route> {
    check_name("tenant", &body.tenant)?;
    let here = admin.bots.descriptors();
    let here: Vec<&str> = here.iter().map(|known| known.platform.as_str()).collect();
    let place = PLACES.meant(&body.place, &here)?;
    let allow = allowed(body.allow)?.or_else(|| PLACES.default_allow(&place)).ok_or_else(|| {
        Error::invalid(format!(
            "say who may speak in {place}: --allow ID,… for some people, --allow any for everybody there"
        ))
    })?;
    let mut route = route(&admin, place, Some(&body.tenant), body.gateway.as_deref(), allow, body.free)?;
    route.bot = body.bot.filter(|bot| !bot.is_empty());
    route.while_busy = body.while_busy;
    route.options.approve = body.approve.unwrap_or_default();
    route.options.context = body.context.unwrap_or_default();
    route.options.threads = body.threads.unwrap_or_default();
    let shown = show(&admin, &route);
    if body.replace {
        admin.ports.records.replace_route(route, &Actor::operator()).await?;
        admin.identities.follow().await?;
    } else {
        store_route(&admin, route).await?;
    }
    Ok(shown)
}

/// Who was named; `None` if nobody was.
fn allowed(people: Option<Vec<String>>) -> Result<Option<Allow>> {
    let people = people.unwrap_or_default();
    people.iter().try_for_each(|person| check_person(person))?;
    if people.iter().any(|person| person == ANYBODY) && people.len() > 1 {
        return Err(Error::invalid("allow either any, or some people by their ids, not both"));
    }
    Ok(match people.as_slice() {
        [] => None,
        [any] if any == ANYBODY => Some(Allow::Any),
        _ => Some(Allow::People(people)),
    })
}

/// Refuses what can be nobody's id: a route that admits nobody is a slip.
fn check_person(person: &str) -> Result<()> {
    if person.is_empty() || person.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Error::invalid(format!(
            "{person:?} is nobody's id; write ids with commas between them, and no spaces: --allow 81,82"
        )));
    }
    if person != ANYBODY && person.eq_ignore_ascii_case(ANYBODY) {
        return Err(Error::invalid("to let everybody speak, write it in small letters: --allow any"));
    }
    Ok(())
}

pub(super) async fn remove(admin: Arc<Admin>, body: RemoveRoute) -> Result<RemovedRoute> {
    let place = PLACES.read(&body.place)?;
    if !admin.ports.records.remove_route(&place, body.bot.as_deref(), &Actor::operator()).await? {
        return Err(Error::not_found(format!("{place} has no route")));
    }
    Ok(RemovedRoute { removed: place.to_string() })
}

pub(super) async fn list(admin: Arc<Admin>, _: Nothing) -> Result<Routes> {
    let routes = admin.ports.records.routes().await?;
    Ok(Routes { routes: routes.iter().map(|route| show(&admin, route)).collect() })
}

pub(super) async fn make_code(admin: Arc<Admin>, body: MakeCode) -> Result<RouteCode> {
    check_name("tenant", &body.tenant)?;
    let record = body.gateway.as_deref().map(|id| gateway(&admin, Some(&body.tenant), id)).transpose()?;
    record.iter().try_for_each(|record| check_welcome(record))?;
    let code = random_hex::<CODE_BYTES>();
    let expires_at = clock::wall().after(CODE_FOR);
    let new = LinkCode {
        fingerprint: fingerprint(&code),
        tenant: body.tenant,
        instance: record.map(|record| record.instance),
        allow: allowed(body.allow)?.map_or(CodeAllow::Typist, CodeAllow::Given),
        free: body.free,
        expires_at,
    };
    admin.ports.records.mint_link_code(new, &Actor::operator()).await?;
    Ok(RouteCode { say: format!("/link {code}"), code, expires_at })
}

/// A route to a tenant, or to one of its gateways.
pub(super) fn route(
    admin: &Admin,
    place: Place,
    tenant: Option<&str>,
    gateway_id: Option<&str>,
    allow: Allow,
    free: bool,
) -> Result<admission::Route> {
    let record = gateway_id.map(|id| gateway(admin, tenant, id)).transpose()?;
    record.iter().try_for_each(|record| check_welcome(record))?;
    let owner = record.as_ref().map(|record| record.tenant.as_str()).or(tenant);
    Ok(admission::Route {
        place,
        bot: None,
        tenant: owner.unwrap_or(DEFAULT_TENANT).to_owned(),
        instance: record.map(|record| record.instance),
        allow,
        free,
        while_busy: None,
        options: RouteOptions::default(),
    })
}

/// Makes a route durable and lets it count from now on.
pub(super) async fn store_route(admin: &Admin, route: admission::Route) -> Result<()> {
    admin.ports.records.add_route(route, &Actor::operator()).await?;
    admin.identities.follow().await
}

pub(super) fn show(admin: &Admin, route: &admission::Route) -> Route {
    let known = admin.identities.now();
    let gateway = route.instance.and_then(|instance| known.serving(instance));
    let allow = match &route.allow {
        Allow::Any => vec![ANYBODY.to_owned()],
        Allow::People(people) => people.clone(),
    };
    Route {
        place: route.place.to_string(),
        bot: route.bot.clone(),
        tenant: route.tenant.clone(),
        gateway: gateway.map(|record| record.gateway_id.clone()),
        allow,
        free: route.free,
        while_busy: route.while_busy,
        approve: route.options.approve,
        context: route.options.context,
        threads: route.options.threads,
    }
}

pub(super) async fn unrouted(admin: Arc<Admin>, _: Nothing) -> Result<Unrouted> {
    let (mut heard, not_asked) = other_nodes::unrouted(&admin).await;
    let known = admin.identities.now();
    // Somebody may have taken care of it since.
    heard.retain(|it| !is_routed(known.routes(), &it.place, &it.bot));
    let row = |HeardPlace { place, bot, count, last_at }: HeardPlace| UnroutedPlace {
        add: add_command(&place),
        place,
        bot,
        count,
        last_at,
    };
    Ok(Unrouted { unrouted: heard.into_iter().map(row).collect(), not_asked })
}

/// Whether the place, one around it or the whole platform has a route by now.
fn is_routed(routes: &admission::Routes, place: &str, bot: &str) -> bool {
    let Some((platform, path)) = place.split_once(':') else { return false };
    let around = path.split_once('/').map_or(path, |(around, _)| around);
    routes.resolve(platform, bot, &[path, around, "*"]).is_some()
}

/// The command that gives a place to a tenant.
fn add_command(place: &str) -> String {
    let private = PLACES.read(place).is_ok_and(|place| PLACES.private_person(&place).is_some());
    // In a private chat that person is meant unless somebody else is named.
    let allow = if private { "" } else { "--allow ID,… " };
    format!("angelia route add --tenant TENANT {allow}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_asks_who_may_speak_where_that_is_a_choice() {
        let command = add_command("discord:10/20");
        assert_eq!(command, "angelia route add --tenant TENANT --allow ID,… discord:10/20");
        assert_eq!(add_command("webchat:dm:ann"), "angelia route add --tenant TENANT webchat:dm:ann");
    }
}
