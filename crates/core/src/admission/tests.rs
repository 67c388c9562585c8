use super::*;
use std::collections::HashSet;

const ACME: &str = "acme";

/// A tenant's instances, as a test needs them.
#[derive(Default)]
struct World {
    fronts: Vec<(i64, &'static str, &'static str)>,
    default: Option<i64>,
    revoked: HashSet<i64>,
    policy: Policy,
}

impl Known for World {
    fn fronting(&self, tenant: &str, platform: &str, bot: &str) -> Vec<InstanceId> {
        assert_eq!(tenant, ACME, "nobody else's instances are looked at");
        let fronting = self.fronts.iter().filter(|front| fronts((front.1, front.2), platform, bot));
        fronting.map(|front| InstanceId(front.0)).collect()
    }

    fn default_instance(&self, tenant: &str) -> Option<InstanceId> {
        assert_eq!(tenant, ACME);
        self.default.map(InstanceId)
    }

    fn takes_messages(&self, instance: InstanceId) -> bool {
        !self.revoked.contains(&instance.0)
    }

    fn policy(&self, _instance: InstanceId, platform: &str) -> Policy {
        assert_eq!(platform, "discord");
        self.policy.clone()
    }
}

fn route(place: &str) -> Route {
    Route {
        place: place.parse().unwrap(),
        bot: None,
        tenant: ACME.into(),
        instance: None,
        allow: Allow::Any,
        free: false,
        while_busy: None,
        options: RouteOptions::default(),
    }
}

/// Ann speaks to bot `b1` in channel 20 of guild 10, and says so.
const ADDRESSED: Observed<'_> = Observed {
    platform: "discord",
    bot: "b1",
    places: &["10/20", "10", "*"],
    author: "ann",
    private: false,
    author_is_bot: false,
    addressed: true,
    engaged: None,
    scopes: &["20", "10"],
};

fn decide(route: Route, world: &World, observed: Observed<'_>) -> Result<i64, DropReason> {
    admit(&Routes::new(vec![route]), world, observed).map(|admitted| admitted.instance.0)
}

#[test]
fn the_route_comes_first_and_then_its_people() {
    let world = World { default: Some(1), ..World::default() };
    let elsewhere = decide(route("discord:11"), &world, ADDRESSED);
    assert_eq!(elsewhere, Err(DropReason::NoRoute));
    let for_bob = Route { allow: Allow::People(vec!["bob".into()]), ..route("discord:10") };
    // Even where there is no instance: who may not speak learns nothing else.
    let nobody = World::default();
    assert_eq!(decide(for_bob.clone(), &nobody, ADDRESSED), Err(DropReason::AuthorNotAllowed));
    assert_eq!(decide(for_bob, &world, Observed { author: "bob", ..ADDRESSED }), Ok(1));
}

#[test]
fn the_most_specific_place_wins_and_at_one_place_the_named_bot() {
    let world = World::default();
    let to = |place: &str, bot: Option<&str>, instance: i64| Route {
        bot: bot.map(str::to_owned),
        instance: Some(InstanceId(instance)),
        ..route(place)
    };
    let mut routes = vec![to("discord:*", None, 1)];
    let mut expect = |added: Option<Route>, instance: i64| {
        routes.extend(added);
        let admitted = admit(&Routes::new(routes.clone()), &world, ADDRESSED).unwrap();
        assert_eq!(admitted.instance, InstanceId(instance), "{routes:?}");
    };
    expect(None, 1);
    expect(Some(to("discord:*", Some("b1"), 2)), 2);
    expect(Some(to("discord:10", None, 3)), 3);
    expect(Some(to("discord:10", Some("b2"), 4)), 3);
    expect(Some(to("discord:10", Some("b1"), 5)), 5);
    expect(Some(to("discord:10/20", None, 6)), 6);
    expect(Some(to("discord:10/21", Some("b1"), 7)), 6);
}

#[test]
fn exactly_one_instance_receives() {
    let guild = || route("discord:10");
    let named = || Route { instance: Some(InstanceId(9)), ..guild() };
    let world = |fronts: &[(i64, &'static str, &'static str)], revoked: &[i64]| World {
        fronts: fronts.to_vec(),
        default: Some(1),
        revoked: revoked.iter().copied().collect(),
        policy: Policy::default(),
    };
    let none = Err(DropReason::NoInstance);
    let cases: &[(Route, World, Result<i64, DropReason>, &str)] = &[
        (named(), world(&[(2, "discord", "b1")], &[]), Ok(9), "the route's"),
        (named(), world(&[(2, "discord", "b1")], &[9]), none, "the route's and nobody else"),
        (guild(), world(&[(2, "discord", "b1")], &[]), Ok(2), "the only one fronting the bot"),
        (guild(), world(&[(2, "discord", "")], &[]), Ok(2), "no bot is every bot"),
        (guild(), world(&[(2, "discord", "b1"), (2, "discord", "")], &[]), Ok(2), "one, said twice"),
        (guild(), world(&[(2, "discord", "b2")], &[]), Ok(1), "another bot"),
        (guild(), world(&[(2, "telegram", "")], &[]), Ok(1), "another platform"),
        (guild(), world(&[(2, "discord", "b1"), (3, "discord", "")], &[]), Ok(1), "two front it"),
        (guild(), world(&[(2, "discord", "b1"), (3, "discord", "")], &[3]), Ok(2), "one is revoked"),
        (guild(), world(&[(2, "discord", "b1")], &[2]), Ok(1), "the only one is revoked"),
        (guild(), world(&[], &[]), Ok(1), "the default"),
        (guild(), world(&[], &[1]), none, "the default is revoked"),
        (guild(), World::default(), none, "there is none"),
    ];
    for (route, world, expected, why) in cases {
        assert_eq!(&decide(route.clone(), world, ADDRESSED), expected, "{why}");
    }
}

#[test]
fn who_is_heard_follows_the_route_and_the_policy() {
    let chatter = Observed { addressed: false, ..ADDRESSED };
    let private = Observed { private: true, ..chatter };
    let bot = Observed { author_is_bot: true, ..ADDRESSED };
    let bot_chatter = Observed { author_is_bot: true, ..chatter };
    let bot_private = Observed { author_is_bot: true, ..private };
    let strict = Policy::default;
    let relaxed = || Policy { require_address: false, ..strict() };
    let bots = || Policy { allow_other_bots: true, ..strict() };
    let free_in = |scope: &str| Policy { free_scopes: vec!["77".into(), scope.into()], ..strict() };
    let (yes, no_bots, unaddressed) = (Ok(1), Err(DropReason::BotNotAllowed), Err(DropReason::NotAddressed));
    let cases: &[(Observed<'_>, bool, Policy, Result<i64, DropReason>)] = &[
        (ADDRESSED, false, strict(), yes),
        (chatter, false, strict(), unaddressed),
        (chatter, true, strict(), yes),
        (chatter, false, relaxed(), yes),
        (chatter, false, free_in("20"), yes),
        (chatter, false, free_in("10"), yes),
        (chatter, false, free_in("2"), unaddressed),
        (chatter, false, bots(), unaddressed),
        (private, false, strict(), yes),
        (bot, false, strict(), no_bots),
        (bot, true, relaxed(), no_bots),
        (bot_private, false, strict(), no_bots),
        (bot, false, bots(), yes),
        (bot_chatter, false, strict(), no_bots),
        (bot_chatter, false, bots(), unaddressed),
        (bot_chatter, true, bots(), yes),
        (bot_private, false, bots(), yes),
    ];
    for (observed, free, policy, expected) in cases {
        let world = World { default: Some(1), policy: policy.clone(), ..World::default() };
        let route = Route { free: *free, ..route("discord:10") };
        assert_eq!(&decide(route, &world, *observed), expected, "{observed:?} free {free} {policy:?}");
    }
}

#[test]
fn what_becomes_of_a_message_while_the_agent_is_busy_is_said_by_the_route_that_admits_it() {
    let world = World { default: Some(1), ..World::default() };
    let says = |place: &str, while_busy| Route { while_busy, ..route(place) };
    let routes =
        |closer| Routes::new(vec![says("discord:10", Some(WhileBusy::Pass)), says("discord:10/20", closer)]);
    let said = |closer| admit(&routes(closer), &world, ADDRESSED).unwrap().while_busy;
    assert_eq!(said(Some(WhileBusy::Collect)), Some(WhileBusy::Collect));
    assert_eq!(said(None), None, "a route around it has no say");
}

#[test]
fn every_reason_has_a_word_of_its_own() {
    let words: HashSet<&str> = DropReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(words.len(), DropReason::ALL.len());
}
