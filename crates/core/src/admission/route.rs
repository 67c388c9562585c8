//! Finding the route of a place: which tenant it belongs to, and who may speak there.

use super::{Context, Place};
use crate::inbox::InstanceId;
use crate::turns::WhileBusy;
use rpds::HashTrieMapSync;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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

/// Who gives an agent leave to do something, where several people speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approve {
    /// The person in whose turn it asks.
    #[default]
    Turn,
    /// Anybody who may speak there.
    Any,
}

/// Whether conversations in a shared place get threads of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// They go on where they are begun.
    #[default]
    Off,
    /// Each gets a thread, where the bot may open one.
    Auto,
}

/// What a route says beyond whose place it is. A word of a later release is passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteOptions {
    /// Who gives the agent leave.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub approve: Approve,
    /// What the agent gets to know of what was not said to it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub context: Context,
    /// Whether conversations get threads of their own.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub threads: Threads,
}

fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(given: D) -> Result<T, D::Error> {
    let given = serde_json::Value::deserialize(given)?;
    Ok(serde_json::from_value(given).unwrap_or_default())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
    /// What becomes of a message while the agent is busy; `None` if its gateway says so.
    pub while_busy: Option<WhileBusy>,
    /// What else it says.
    pub options: RouteOptions,
}

/// Whether an instance that declared `front` as (platform, bot) fronts this
/// bot. One without a bot's id is for every bot of its platform.
pub fn fronts(front: (&str, &str), platform: &str, bot: &str) -> bool {
    front.0 == platform && (front.1.is_empty() || front.1 == bot)
}

/// All routes, ready to be asked.
///
/// A copy shares everything with the one it was made from, and a change of it makes anew what
/// leads to that one place. So a route among very many costs what it would cost alone.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    by_place: HashTrieMapSync<String, Vec<Route>>,
    /// How many lead from each platform to whom: every hello may ask, and must not walk all.
    platforms: HashTrieMapSync<Receiver, BTreeMap<String, usize>>,
}

/// Whom routes lead to: a tenant, and the instance if they name one.
type Receiver = (String, Option<InstanceId>);

impl Routes {
    /// An index over `routes`.
    pub fn new(routes: Vec<Route>) -> Self {
        let mut index = Self::default();
        routes.into_iter().for_each(|route| index.put(route));
        index
    }

    /// Adds a route, in the place of the one for the same bot and place.
    pub fn put(&mut self, route: Route) {
        let place = route.place.to_string();
        self.count(&route, |routes| routes + 1);
        let mut there = self.at(&place).to_vec();
        match there.iter_mut().find(|known| known.bot == route.bot) {
            Some(known) => {
                let before = std::mem::replace(known, route);
                self.count(&before, |routes| routes.saturating_sub(1));
            }
            None => there.push(route),
        }
        self.by_place.insert_mut(place, there);
    }

    /// Takes the route for a bot at a place away, if there is one.
    pub fn remove(&mut self, place: &str, bot: Option<&str>) {
        let mut there = self.at(place).to_vec();
        let gone = there.extract_if(.., |route| route.bot.as_deref() == bot);
        gone.for_each(|route| self.count(&route, |routes| routes.saturating_sub(1)));
        if there.is_empty() {
            self.by_place.remove_mut(place);
        } else {
            self.by_place.insert_mut(place.to_owned(), there);
        }
    }

    fn count(&mut self, route: &Route, change: impl Fn(usize) -> usize) {
        let receiver = (route.tenant.clone(), route.instance);
        let mut platforms = self.platforms.get(&receiver).cloned().unwrap_or_default();
        let routes = platforms.entry(route.place.platform().to_owned()).or_default();
        *routes = change(*routes);
        platforms.retain(|_, routes| *routes > 0);
        if platforms.is_empty() {
            self.platforms.remove_mut(&receiver);
        } else {
            self.platforms.insert_mut(receiver, platforms);
        }
    }

    /// The platforms from which a route leads to an instance: one that names it, or one of
    /// its tenant's that names none.
    pub fn platforms(&self, tenant: &str, instance: InstanceId) -> BTreeSet<&str> {
        let leading_to = |instance| self.platforms.get(&(tenant.to_owned(), instance));
        let counted = [None, Some(instance)].into_iter().filter_map(leading_to);
        counted.flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// The routes of exactly this place, of whichever bots.
    pub fn at(&self, place: &str) -> &[Route] {
        self.by_place.get(place).map_or(&[], Vec::as_slice)
    }

    /// The route for the first of `places` that has one; a route naming the bot
    /// wins over one for every bot at the same place.
    pub fn resolve(&self, platform: &str, bot: &str, places: &[&str]) -> Option<&Route> {
        places.iter().find_map(|path| {
            let routes = self.at(&format!("{platform}:{path}"));
            let named = routes.iter().find(|route| route.bot.as_deref() == Some(bot));
            named.or_else(|| routes.iter().find(|route| route.bot.is_none()))
        })
    }

    /// Every route, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.by_place.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(number: usize, bot: Option<&str>) -> Route {
        Route {
            place: format!("discord:{}", number + 1).parse().unwrap(),
            bot: bot.map(str::to_owned),
            tenant: "acme".into(),
            instance: None,
            allow: Allow::Any,
            free: false,
            while_busy: None,
            options: RouteOptions::default(),
        }
    }

    #[test]
    fn one_route_among_100_000_costs_that_route() {
        const MANY: usize = 100_000;
        let before = Routes::new((0..MANY).map(|number| route(number, None)).collect());
        let mut after = before.clone();
        after.put(route(MANY, None));
        after.put(route(7, Some("bot")));
        after.remove("discord:10", None);
        let mut copied = 0;
        for known in before.iter() {
            let now = after.at(&known.place.to_string()).first();
            copied += usize::from(now.is_none_or(|now| !std::ptr::eq(now, known)));
        }
        assert_eq!(copied, 2, "all but the changed places are the same memory");
        assert_eq!([before.iter().count(), after.iter().count()], [MANY, MANY + 1]);
    }

    #[test]
    fn an_instance_is_on_the_platforms_that_lead_to_it() {
        let on = |place: &str, tenant: &str, instance: Option<i64>| Route {
            place: place.parse().unwrap(),
            tenant: tenant.into(),
            instance: instance.map(InstanceId),
            ..route(0, None)
        };
        let mut routes = Routes::new(vec![
            on("discord:1", "acme", None),
            on("discord:2", "acme", None),
            on("sms:main", "acme", Some(7)),
            on("telegram:*", "other", None),
        ]);
        let platforms = |routes: &Routes, tenant: &str, instance: i64| {
            routes.platforms(tenant, InstanceId(instance)).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(platforms(&routes, "acme", 7), ["discord", "sms"]);
        assert_eq!(platforms(&routes, "acme", 8), ["discord"], "another's are not its own");
        assert_eq!(platforms(&routes, "other", 7), ["telegram"]);
        routes.remove("discord:1", None);
        assert_eq!(platforms(&routes, "acme", 8), ["discord"], "one is left");
        routes.put(on("discord:2", "other", None));
        assert!(platforms(&routes, "acme", 8).is_empty());
        assert_eq!(platforms(&routes, "other", 9), ["discord", "telegram"]);
        routes.put(on("discord:2", "other", None));
        routes.remove("discord:2", None);
        assert_eq!(platforms(&routes, "other", 9), ["telegram"], "the same again counts once");
    }

    #[test]
    fn a_route_takes_the_place_of_the_one_for_the_same_bot() {
        let mut routes = Routes::new(vec![route(1, None), route(1, Some("bot"))]);
        routes.put(Route { free: true, ..route(1, Some("bot")) });
        assert_eq!(routes.at("discord:2"), [route(1, None), Route { free: true, ..route(1, Some("bot")) }]);
        routes.remove("discord:2", None);
        assert!(routes.resolve("discord", "other", &["2"]).is_none());
        assert!(routes.resolve("discord", "bot", &["2"]).is_some_and(|route| route.free));
        routes.remove("discord:2", Some("bot"));
        assert_eq!(routes.iter().count(), 0);
    }
}
