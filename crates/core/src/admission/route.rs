//! Finding the route of a place: which tenant it belongs to, and who may speak there.

use super::Place;
use crate::inbox::InstanceId;
use crate::turns::WhileBusy;
use rpds::HashTrieMapSync;

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
    /// What becomes of a message while the agent is busy; `None` if its gateway says so.
    pub while_busy: Option<WhileBusy>,
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
}

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
        let mut there = self.at(&place).to_vec();
        match there.iter_mut().find(|known| known.bot == route.bot) {
            Some(known) => *known = route,
            None => there.push(route),
        }
        self.by_place.insert_mut(place, there);
    }

    /// Takes the route for a bot at a place away, if there is one.
    pub fn remove(&mut self, place: &str, bot: Option<&str>) {
        let mut there = self.at(place).to_vec();
        there.retain(|route| route.bot.as_deref() != bot);
        if there.is_empty() {
            self.by_place.remove_mut(place);
        } else {
            self.by_place.insert_mut(place.to_owned(), there);
        }
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
