//! What is taken of manifests, what becomes of many of them, and of what people type.

mod planning;

use super::*;
use crate::inbox::InstanceId;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

const DISCORD: Rules = Rules {
    most: 100,
    description: 100,
    total: None,
    options: Some(8_000),
    hyphens: true,
    reserved: &["link"],
};
const TELEGRAM: Rules = Rules {
    most: 100,
    description: 256,
    total: Some(3_500),
    options: None,
    hyphens: false,
    reserved: &["link", "start"],
};

fn command(name: &str) -> Command {
    Command { name: name.into(), description: format!("does {name}"), options: Vec::new() }
}

fn commands(names: &[&str]) -> Vec<Command> {
    names.iter().map(|name| command(name)).collect()
}

fn with_option(name: &str, option: &str) -> Command {
    let option = CommandOption { name: option.into(), description: "x".into(), ..CommandOption::default() };
    Command { options: vec![option], ..command(name) }
}

fn declaring<'a>(tenant: &'a str, instance: i64, commands: &'a [Command]) -> Declaring<'a> {
    Declaring { tenant, gateway: "gw", instance: InstanceId(instance), commands }
}

fn names(wanted: &Wanted) -> Vec<&str> {
    wanted.commands.iter().map(|it| it.command.name.as_str()).collect()
}

#[test]
fn what_no_provider_takes_is_left_out_of_a_manifest() {
    let read = read(&[
        json!({ "name": "model", "description": " choose\n\ta \u{202e}model ", "options": [
            { "type": 3, "name": "name", "description": "which", "choices": [{ "name": "One", "value": "1" }] },
            { "type": 3, "name": "must", "description": "first", "required": true, "autocomplete": true },
            { "type": 99, "name": "odd" }, { "name": "Bad Name" }, { "type": 3, "name": "name" },
        ] }),
        json!({ "name": "Model", "description": "capital" }),
        json!({ "name": "model", "description": "again" }),
        json!({ "name": "bare" }),
        json!("words"),
        json!({ "description": "no name" }),
        json!({ "name": "x".repeat(33), "description": "long" }),
    ]);
    assert_eq!(read.dropped, 5);
    assert_eq!(read.commands.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["model", "bare"]);
    let model = &read.commands[0];
    assert_eq!(model.description, "choose a model");
    let options: Vec<_> = model.options.iter().map(|it| (it.name.as_str(), it.required)).collect();
    assert_eq!(options, [("must", true), ("name", false)], "what is required stands first");
    assert_eq!(model.options[1].choices.len(), 1);
    assert_eq!(read.commands[1].description, "bare");
}

#[test]
fn a_manifest_takes_so_much_room_and_no_more() {
    let many: Vec<Value> = (0..300).map(|n| json!({ "name": format!("c{n}"), "description": "d" })).collect();
    let taken = read(&many);
    assert_eq!((taken.commands.len(), taken.dropped), (MAX_COMMANDS, 200));
    let long: Vec<Value> =
        (0..100).map(|n| json!({ "name": format!("c{n}"), "description": "é".repeat(500) })).collect();
    let kept = json!(read(&long).commands).to_string().len();
    assert!((20_000..26_000).contains(&kept), "{kept}");
    // Commands below commands, deeper than any provider has them.
    let mut deep = json!({ "type": 3, "name": "leaf" });
    for _ in 0..20 {
        deep = json!({ "type": 1, "name": "below", "options": [deep] });
    }
    let read = read(&[json!({ "name": "deep", "description": "d", "options": [deep] })]);
    assert!(json!(read.commands).to_string().matches("below").count() <= 3, "{read:?}");
}

#[test]
fn commands_below_a_command_stand_alone() {
    let read = read(&[json!({ "name": "skill", "description": "d", "options": [
        { "type": 1, "name": "run", "description": "r", "options": [{ "type": 3, "name": "what", "required": true }] },
        { "type": 3, "name": "stray", "description": "s" },
    ] })]);
    let options = &read.commands[0].options;
    assert_eq!((options.len(), options[0].kind, options[0].options[0].required), (1, BELOW, true));
}

#[test]
fn a_group_has_commands_and_nothing_else() {
    let read = read(&[json!({ "name": "skill", "options": [
        { "type": 2, "name": "group", "options": [
            { "type": 3, "name": "stray", "required": true },
            { "type": 1, "name": "run", "options": [{ "type": 1, "name": "deep" }, { "type": 3, "name": "what" }] },
        ] },
        { "type": 2, "name": "empty" },
        { "type": 2, "name": "of-none", "options": [{ "type": 3, "name": "stray" }] },
    ] })]);
    let groups = &read.commands[0].options;
    assert_eq!((groups.len(), groups[0].name.as_str(), groups[0].options.len()), (1, "group", 1));
    let run = &groups[0].options[0];
    assert_eq!((run.kind, run.options.len(), run.options[0].name.as_str()), (BELOW, 1, "what"));
}

#[test]
fn a_choice_is_there_once_and_no_number_is_too_large() {
    let of = |kind: u8, values: &[(&str, Value)]| {
        let choices: Vec<Value> =
            values.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let option = json!({ "type": kind, "name": "o", "choices": choices });
        let read = read(&[json!({ "name": "c", "options": [option] })]);
        read.commands[0].options[0].choices.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    let twice = [("a", json!("1")), ("a", json!("2")), ("b", json!("1")), ("c", json!("3"))];
    assert_eq!(of(TEXT, &twice), ["a", "c"], "by name and by value");
    assert_eq!(of(10, &[("a", json!(1)), ("b", json!(1.0)), ("c", json!(2))]), ["a", "c"]);
    let most = 1_i64 << 53;
    assert_eq!(of(4, &[("a", json!(most)), ("b", json!(-most))]), ["a", "b"]);
    assert!(of(4, &[("a", json!(1)), ("b", json!(i64::MAX))]).is_empty(), "then it may be anything");
    assert!(of(10, &[("a", json!(-1e300))]).is_empty());
}

#[test]
fn what_the_operator_configured_comes_first_and_is_not_changed() {
    let (own, theirs) = (commands(&["ask", "model"]), [with_option("model", "name"), command("new")]);
    let union = union(&[declaring("acme", 1, &theirs)]);
    let wanted = wanted(&own, &union, &DISCORD);
    assert_eq!(names(&wanted), ["ask", "model", "new"]);
    assert_eq!(wanted.commands[1].command, own[1]);
    assert_eq!((wanted.commands[1].own, wanted.commands[1].gateways), (true, 1));
    assert_eq!((wanted.commands[2].own, &*wanted.commands[2].by), (false, &["acme/gw".to_owned()][..]));
}

#[test]
fn gateways_that_disagree_leave_a_text_to_follow() {
    let (one, two) = ([with_option("model", "name"), command("new")], [with_option("model", "which")]);
    let union = union(&[declaring("acme", 2, &two), declaring("beta", 1, &one)]);
    assert_eq!((union[0].command.name.as_str(), union[0].tenants, union[0].differs), ("model", 2, true));
    let option = &union[0].command.options[0];
    assert_eq!((option.kind, option.required, union[0].command.options.len()), (TEXT, false, 1));
    assert!(!union[1].differs && union[1].command.options.is_empty());
    let same = [with_option("model", "name")];
    let agreed = super::union(&[declaring("acme", 1, &one), declaring("beta", 2, &same)]);
    assert_eq!(agreed[0].command.options, same[0].options);
}

#[test]
fn who_declares_very_many_takes_the_place_of_nobody() {
    let many: Vec<Command> = (0..100).map(|n| command(&format!("a{n}"))).collect();
    let few = commands(&["zoo", "zebra"]);
    let union = union(&[declaring("greedy", 1, &many), declaring("modest", 2, &few)]);
    let wanted = wanted(&commands(&["ask"]), &union, &DISCORD);
    assert_eq!(wanted.commands.len(), 100);
    for name in ["ask", "zoo", "zebra"] {
        assert!(names(&wanted).contains(&name), "{name}");
    }
    assert_eq!(wanted.left_out.len(), 3);
    assert!(wanted.left_out[0].why.contains("room for 100"));
}

#[test]
fn who_has_very_many_gateways_takes_the_place_of_nobody() {
    let many: Vec<Vec<Command>> = (0..120).map(|n| vec![command(&format!("a{n:03}"))]).collect();
    let few = commands(&["zoo", "zebra", "zeta"]);
    let mut all: Vec<Declaring<'_>> =
        many.iter().zip(1..).map(|(commands, instance)| declaring("greedy", instance, commands)).collect();
    all.push(declaring("modest", 500, &few));
    let wanted = wanted(&[], &union(&all), &DISCORD);
    for name in ["zoo", "zebra", "zeta"] {
        assert!(names(&wanted).contains(&name), "{name}");
    }
    assert_eq!(names(&wanted)[..3], ["a000", "zoo", "a001"]);
}

#[test]
fn a_list_that_is_too_much_in_all_gets_shorter_words_and_then_less() {
    let bytes = |wanted: &Wanted| -> usize {
        wanted.commands.iter().map(|it| it.command.name.len() + it.command.description.len()).sum()
    };
    let many = |count: usize| -> Vec<Command> {
        (0..count)
            .map(|n| Command { description: "d".repeat(200), ..command(&format!("gateway-{n:02}")) })
            .collect()
    };
    let want = |own: &[Command], count: usize| {
        let theirs = many(count);
        wanted(own, &union(&[declaring("acme", 1, &theirs)]), &TELEGRAM)
    };
    let own = [Command { description: "o".repeat(200), ..command("own") }];
    let few = want(&own, 5);
    assert!(few.commands.iter().all(|it| it.command.description.len() == 200), "there is room");
    let some = want(&own, 40);
    assert_eq!((some.commands.len(), some.left_out.len()), (41, 0));
    assert_eq!(some.commands[0].command.description.len(), 200, "the operator's are as they are");
    assert!(some.commands[1..].iter().all(|it| it.command.description.len() == 60), "all alike");
    let full = want(&own, 90);
    assert!(bytes(&full) <= 3_500 && full.commands[0].own);
    assert!(full.commands[1..].iter().all(|it| it.command.description.len() == 40));
    assert_eq!(full.commands.len() + full.left_out.len(), 91);
    assert_eq!(full.left_out.last().unwrap().name, "gateway_89");
    assert!(full.left_out[0].why.contains("3500 bytes"), "{:?}", full.left_out[0]);
    let too_many_own = want(&many(90), 0);
    assert!(bytes(&too_many_own) <= 3_500 && too_many_own.commands.len() > 60);
    // What is from elsewhere takes its part of it.
    let there = shown(&[Command { description: "x".repeat(200), ..command("theirs") }]);
    let planned = plan(full.clone(), &there, &[], Elsewhere::Stay, &TELEGRAM);
    assert!(planned.commands.len() < full.commands.len(), "{}", planned.commands.len());
}

#[test]
fn telegram_has_underscores_no_options_and_its_own_start() {
    let theirs = [with_option("set-model", "name"), command("set_model"), command("start"), command("link")];
    let wanted = wanted(&[], &union(&[declaring("acme", 1, &theirs)]), &TELEGRAM);
    assert_eq!(names(&wanted), ["set_model"]);
    assert!(wanted.commands[0].command.options.is_empty());
    assert_eq!(wanted.left_out.len(), 3);
    let discord = super::wanted(&[], &union(&[declaring("acme", 1, &theirs)]), &DISCORD);
    assert_eq!(names(&discord), ["set-model", "set_model", "start"]);
}

#[test]
fn what_is_too_much_for_one_command_becomes_a_text() {
    let option = |n: usize| CommandOption {
        name: format!("o{n}"),
        description: "d".repeat(100),
        choices: (0..25)
            .map(|c| Choice { name: format!("{c}{}", "n".repeat(50)), value: json!("v") })
            .collect(),
        ..CommandOption::default()
    };
    let big = Command { options: (0..25).map(option).collect(), ..command("big") };
    let fitted = wanted(&[], &union(&[declaring("acme", 1, &[big])]), &DISCORD);
    assert_eq!(fitted.commands[0].command.options.len(), 1);
}

fn shown(commands: &[Command]) -> Vec<Shown> {
    commands.iter().map(|it| Shown { command: Some(it.clone()), raw: json!({ "name": it.name }) }).collect()
}

#[test]
fn a_command_that_the_gateway_does_not_know_goes_as_words() {
    let own = commands(&["ask", "new", "tell-me", "stop"]);
    let manifest = commands(&["new", "set-model", "plain"]);
    let said = |text: &str| reworded(text, &manifest, &own);
    assert_eq!(said("/ask what is up").as_deref(), Some("what is up"));
    assert_eq!(said("/tell_me  a story").as_deref(), Some("tell_me a story"));
    assert_eq!(said("/tell-me").as_deref(), Some("tell-me"));
    assert_eq!(said("/set_model one").as_deref(), Some("/set-model one"));
    assert_eq!(said("/set_model").as_deref(), Some("/set-model"));
    for as_typed in ["/new", "/new thing", "/other x", "ask me", "/", "/ ask", "/ask", "/stop", "/plain"] {
        assert_eq!(said(as_typed), None, "{as_typed}");
    }
    // Of one that declared nothing only this is known.
    assert_eq!(reworded("/ask why", &[], &own).as_deref(), Some("why"));
    assert_eq!(reworded("/new", &[], &own), None);
    assert_eq!(reworded("/tell_me x", &[], &own), None);
    assert_eq!(reworded("/ask why", &[], &commands(&["new"])), None, "the operator has no such command");
    assert_eq!(reworded("/ask why", &commands(&["ask"]), &own), None, "its gateway has one itself");
}

fn any_manifest() -> impl Strategy<Value = Vec<Command>> {
    let name = prop::sample::select(vec!["new", "model", "set-x", "set_x", "link", "help", "a", "b", "c"]);
    let one = (name, prop::option::of(prop::sample::select(vec!["name", "which"])));
    prop::collection::vec(one, 0..9).prop_map(|list| {
        let mut made: Vec<Command> = Vec::new();
        for (name, option) in list {
            if made.iter().all(|it| it.name != name) {
                made.push(option.map_or_else(|| command(name), |option| with_option(name, option)));
            }
        }
        made
    })
}

proptest! {
    #[test]
    fn a_merge_depends_on_no_order_and_keeps_to_the_rules(
        manifests in prop::collection::vec((0..3_usize, any_manifest()), 0..6),
        own in any_manifest(),
        most in 1..12_usize,
        turn in 0..6_usize,
    ) {
        let tenants = ["acme", "beta", "gamma"];
        let mut all: Vec<Declaring<'_>> = manifests
            .iter()
            .enumerate()
            .map(|(n, (tenant, commands))| declaring(tenants[*tenant], n as i64, commands))
            .collect();
        let rules = Rules { most, ..TELEGRAM };
        let before = wanted(&own, &union(&all), &rules);
        let by = turn % all.len().max(1);
        all.rotate_left(by);
        prop_assert_eq!(&before, &wanted(&own, &union(&all), &rules));
        prop_assert!(before.commands.len() <= most);
        let shown: BTreeSet<&str> = names(&before).into_iter().collect();
        prop_assert_eq!(shown.len(), before.commands.len(), "each once");
        prop_assert!(!shown.contains("link") && shown.iter().all(|name| !name.contains('-')));
        // Everything that was declared is shown or accounted for.
        let declared: BTreeSet<&str> =
            all.iter().flat_map(|it| it.commands).chain(&own).map(|it| it.name.as_str()).collect();
        prop_assert_eq!(before.commands.len() + before.left_out.len(), declared.len());
        // Nothing of a gateway stands before what the operator configured.
        let flags: Vec<bool> = before.commands.iter().map(|it| it.own).collect();
        prop_assert!(flags.is_sorted_by_key(|own| !own));
    }

    #[test]
    fn what_was_registered_is_registered_once(first in any_manifest(), second in any_manifest()) {
        let want = |commands: &[Command]| wanted(&[], &union(&[declaring("acme", 1, commands)]), &DISCORD);
        let theirs = commands(&["theirs"]);
        let one = plan(want(&first), &shown(&theirs), &[], Elsewhere::Stay, &DISCORD);
        let registered = Registered::of(&one.wanted(), form_of(&one.wanted()));
        let mut there = shown(&one.wanted());
        there.extend(shown(&theirs));
        let again = plan(want(&first), &there, &registered.names, Elsewhere::Stay, &DISCORD);
        prop_assert!(!again.is_needed(), "{again:?}");
        let next = plan(want(&second), &there, &registered.names, Elsewhere::Stay, &DISCORD);
        let left: BTreeSet<String> = next.wanted().into_iter().map(|it| it.name).collect();
        prop_assert!(next.removed.iter().all(|name| name != "theirs" && !left.contains(name)));
        prop_assert_eq!(next.elsewhere, ["theirs"]);
    }
}
