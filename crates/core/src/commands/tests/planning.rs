//! What has to change at a provider, and what stays there.

use super::*;

#[test]
fn what_came_from_elsewhere_stays_until_the_operator_says_otherwise() {
    let want = || wanted(&commands(&["ask", "new"]), &[], &DISCORD);
    let mut there = shown(&commands(&["new", "ours", "theirs"]));
    there[0].command.as_mut().unwrap().description = "otherwise".into();
    there.push(Shown { command: None, raw: json!({ "name": "Report", "type": 3 }) });
    let ours = ["ours".to_owned()];
    let kept = plan(want(), &there, &ours, Elsewhere::Stay, &DISCORD);
    let changes: Vec<Change> = kept.commands.iter().map(|it| it.change).collect();
    assert_eq!(changes, [Change::Added, Change::Changed]);
    assert_eq!((&kept.removed[..], &kept.elsewhere[..]), (&ours[..], &["theirs".to_owned()][..]));
    assert_eq!(kept.kept, [json!({ "name": "theirs" }), json!({ "name": "Report", "type": 3 })]);
    assert!(kept.is_needed() && kept.added() == 1);
    let pushed = plan(want(), &there, &ours, Elsewhere::Go, &DISCORD);
    assert_eq!(pushed.removed, ["ours", "theirs"]);
    assert_eq!(pushed.kept, [json!({ "name": "Report", "type": 3 })], "what is not typed is left alone");
    let settled = plan(want(), &shown(&commands(&["ask", "new"])), &[], Elsewhere::Go, &DISCORD);
    assert!(!settled.is_needed(), "{settled:?}");
}

#[test]
fn what_came_from_elsewhere_is_not_crowded_out() {
    let many: Vec<Command> = (0..100).map(|n| command(&format!("a{n}"))).collect();
    let want = wanted(&commands(&["ask"]), &union(&[declaring("acme", 1, &many)]), &DISCORD);
    let there = shown(&commands(&["theirs", "others"]));
    let plan = plan(want, &there, &[], Elsewhere::Stay, &DISCORD);
    assert_eq!((plan.commands.len(), plan.kept.len()), (98, 2));
    assert_eq!(plan.commands[0].listed.command.name, "ask");
    assert!(plan.left_out.iter().any(|it| it.why.contains("from elsewhere")));
}

#[test]
fn what_another_program_made_is_no_gateways_to_change() {
    let theirs = commands(&["poll", "new"]);
    let union = union(&[declaring("acme", 1, &theirs)]);
    let mut there = shown(&commands(&["poll", "ask"]));
    there[0].command.as_mut().unwrap().description = "of another program".into();
    there[1].command.as_mut().unwrap().description = "of another program, too".into();
    let want = || wanted(&commands(&["ask"]), &union, &DISCORD);
    let first = plan(want(), &there, &[], Elsewhere::Stay, &DISCORD);
    let names: Vec<String> = first.wanted().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["ask", "new"], "the operator's own gives way to nobody");
    assert_eq!((first.commands[0].change, &first.elsewhere[..]), (Change::Changed, &["poll".to_owned()][..]));
    assert_eq!(first.kept, [json!({ "name": "poll" })]);
    assert!(first.left_out.iter().any(|it| it.name == "poll" && it.why.contains("another program")));
    // And it is not removed when the gateway wants it no more.
    let next = plan(wanted(&[], &[], &DISCORD), &there, &names, Elsewhere::Stay, &DISCORD);
    assert_eq!((&next.removed[..], &next.elsewhere[..]), (&["ask".to_owned()][..], &["poll".to_owned()][..]));
    let ours = plan(want(), &there, &["poll".to_owned()], Elsewhere::Stay, &DISCORD);
    assert!(ours.elsewhere.is_empty() && ours.wanted().iter().any(|it| it.name == "poll"));
}

#[test]
fn there_is_never_more_than_a_provider_takes() {
    let rules = Rules { most: 4, ..DISCORD };
    let own = commands(&["one", "two", "three", "four"]);
    let there = shown(&commands(&["theirs", "four", "others"]));
    let made = plan(wanted(&own, &[], &rules), &there, &[], Elsewhere::Stay, &rules);
    assert!(made.commands.len() + made.kept.len() <= 4, "{made:?}");
    assert_eq!(made.elsewhere, ["theirs", "others"], "nothing of it goes unsaid");
    let names: Vec<String> = made.wanted().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["one", "four"], "who takes a place over needs no other");
    assert_eq!(made.left_out.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["two", "three"]);
    // What was registered here and has no room any more is said to go.
    let ours: Vec<String> = ["one", "two", "three"].map(str::to_owned).into();
    let there = shown(&commands(&["one", "two", "three", "theirs"]));
    let rules = Rules { most: 3, ..DISCORD };
    let made = plan(wanted(&own[..3], &[], &rules), &there, &ours, Elsewhere::Stay, &rules);
    assert_eq!((made.commands.len(), &made.removed[..]), (2, &["three".to_owned()][..]));
}

#[test]
fn what_is_new_can_wait_the_last_first() {
    let want =
        wanted(&commands(&["ask"]), &union(&[declaring("acme", 1, &commands(&["a", "b", "c"]))]), &DISCORD);
    let there = shown(&commands(&["b", "old"]));
    let ours = ["b".to_owned(), "old".to_owned()];
    let whole = plan(want, &there, &ours, Elsewhere::Stay, &DISCORD);
    let mut some = whole.clone();
    assert_eq!((some.add_at_most(2), some.added()), (1, 2));
    let names: Vec<String> = some.wanted().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["ask", "a", "b"], "what is there stays");
    assert_eq!(some.left_out.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["c"]);
    assert_eq!(some.add_at_most(0), 2);
    assert!(some.is_needed(), "what has to go goes");
    let mut enough = whole.clone();
    assert_eq!((enough.add_at_most(3), &enough), (0, &whole));
}

#[test]
fn a_refused_list_is_tried_without_what_is_new_of_gateways() {
    let theirs = [with_option("model", "name"), command("bad"), command("same")];
    let want = wanted(&commands(&["ask"]), &union(&[declaring("acme", 1, &theirs)]), &DISCORD);
    let there = shown(&commands(&["model", "same", "old"]));
    let ours = ["model", "same", "old"].map(str::to_owned);
    let whole = plan(want, &there, &ours, Elsewhere::Stay, &DISCORD);
    let careful = whole.without_news(&there);
    assert_eq!(careful.wanted(), commands(&["ask", "model", "same"]), "as it is shown, with the operator's");
    assert_eq!((careful.added(), &careful.removed[..]), (1, &["old".to_owned()][..]));
    let left_out: Vec<&str> = careful.left_out.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(left_out, ["model", "bad"]);
    assert_eq!(careful.without_news(&there), careful, "then there is nothing more to try");
}
