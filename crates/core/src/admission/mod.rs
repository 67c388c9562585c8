//! Whose message is it: from what was observed to exactly one instance, or a
//! reason why not.

mod place;
mod route;

pub use place::Place;
pub use route::{Allow, Route, Routes};

use crate::inbox::InstanceId;

/// Why an event reached nobody. Each is counted and can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// No route covers the place.
    NoRoute,
    /// The route does not let this author speak.
    AuthorNotAllowed,
    /// The tenant has no instance that could receive it.
    NoInstance,
}

impl DropReason {
    /// Every reason, for counters.
    pub const ALL: [Self; 3] = [Self::NoRoute, Self::AuthorNotAllowed, Self::NoInstance];

    /// The word for counters and `explain`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRoute => "no_route",
            Self::AuthorNotAllowed => "author_not_allowed",
            Self::NoInstance => "no_instance",
        }
    }
}

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
}

/// The receiver of an admitted event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The tenant the place belongs to.
    pub tenant: String,
    /// The one instance that gets it.
    pub instance: InstanceId,
}

/// Decides who receives an event. `default_instance` tells a tenant's default.
pub fn admit(
    routes: &Routes,
    default_instance: impl Fn(&str) -> Option<InstanceId>,
    observed: Observed<'_>,
) -> Result<Admitted, DropReason> {
    let route =
        routes.resolve(observed.platform, observed.bot, observed.places).ok_or(DropReason::NoRoute)?;
    if !route.allow.admits(observed.author) {
        return Err(DropReason::AuthorNotAllowed);
    }
    let instance =
        route.instance.or_else(|| default_instance(&route.tenant)).ok_or(DropReason::NoInstance)?;
    Ok(Admitted { tenant: route.tenant.clone(), instance })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(place: &str, tenant: &str, instance: Option<i64>, allow: Allow) -> Route {
        Route {
            place: place.parse().unwrap(),
            bot: None,
            tenant: tenant.into(),
            instance: instance.map(InstanceId),
            allow,
            free: false,
        }
    }

    fn observe<'a>(places: &'a [&'a str], author: &'a str) -> Observed<'a> {
        Observed { platform: "webchat", bot: "webchat", places, author }
    }

    #[test]
    fn the_most_specific_place_wins_and_reasons_are_told() {
        let routes = Routes::new(vec![
            route("webchat:*", "default", None, Allow::Any),
            route("webchat:lab", "acme", Some(7), Allow::People(vec!["ann".into()])),
        ]);
        let default = |tenant: &str| (tenant == "default").then_some(InstanceId(1));
        let ok = |tenant: &str, id| Ok(Admitted { tenant: tenant.into(), instance: InstanceId(id) });
        assert_eq!(admit(&routes, default, observe(&["lab", "*"], "ann")), ok("acme", 7));
        assert_eq!(admit(&routes, default, observe(&["den", "*"], "bob")), ok("default", 1));
        assert_eq!(admit(&routes, default, observe(&["lab", "*"], "bob")), Err(DropReason::AuthorNotAllowed));
        assert_eq!(admit(&routes, |_| None, observe(&["den", "*"], "bob")), Err(DropReason::NoInstance));
        assert_eq!(
            admit(&Routes::default(), default, observe(&["den", "*"], "bob")),
            Err(DropReason::NoRoute)
        );
    }
}
