//! Routes: which tenant a place belongs to, and who may speak there.

use super::Place;
use crate::inbox::InstanceId;
use std::collections::HashMap;

/// Who may speak in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Everybody who can write there: a deliberate choice.
    Any,
    /// Only these platform user ids.
    People(Vec<String>),
}

impl Allow {
    /// Whether `author` may speak.
    pub fn admits(&self, author: &str) -> bool {
        match self {
            Self::Any => true,
            Self::People(people) => people.iter().any(|person| person == author),
        }
    }
}

/// One route; unique per (platform, bot, place).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The place it covers.
    pub place: Place,
    /// The bot it is for; `None` for every bot of the platform.
    pub bot: Option<String>,
    /// The tenant the place belongs to.
    pub tenant: String,
    /// The instance that receives, where the route names one.
    pub instance: Option<InstanceId>,
    /// Who may speak there.
    pub allow: Allow,
    /// Whether messages that do not address the bot are delivered too.
    pub free: bool,
}

/// Whether an instance that declared `front` as (platform, bot) fronts this
/// bot. One without a bot's id is for every bot of its platform.
pub fn fronts(front: (&str, &str), platform: &str, bot: &str) -> bool {
    front.0 == platform && (front.1.is_empty() || front.1 == bot)
}

/// All routes, ready to be asked.
#[derive(Debug, Default)]
pub struct Routes {
    by_place: HashMap<String, Vec<Route>>,
}

impl Routes {
    /// An index over `routes`.
    pub fn new(routes: Vec<Route>) -> Self {
        let mut by_place: HashMap<String, Vec<Route>> = HashMap::new();
        for route in routes {
            by_place.entry(route.place.to_string()).or_default().push(route);
        }
        Self { by_place }
    }

    /// The route for the first of `places` that has one; a route naming the bot
    /// wins over one for every bot at the same place.
    pub fn resolve(&self, platform: &str, bot: &str, places: &[&str]) -> Option<&Route> {
        places.iter().find_map(|path| {
            let routes = self.by_place.get(&format!("{platform}:{path}"))?;
            let named = routes.iter().find(|route| route.bot.as_deref() == Some(bot));
            named.or_else(|| routes.iter().find(|route| route.bot.is_none()))
        })
    }

    /// Every route, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.by_place.values().flatten()
    }
}
