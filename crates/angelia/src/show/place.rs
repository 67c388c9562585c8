//! Routes, and people in the web chat.

use super::explain::not_asked;
use super::{harmless, moment, perhaps, table};
use angelia_connector::admin::types::{
    Invitation, People, RemovedRoute, RevokedPerson, Route, RouteCode, Routes, Unrouted,
};
use angelia_core::admission::{Approve, Context, Threads};
use angelia_core::turns::WhileBusy;
use std::fmt::Write as _;

pub(crate) fn added_route(answer: &Route) -> String {
    format!("{} belongs to tenant {} now.\n", harmless(&answer.place), harmless(&answer.tenant))
}

pub(crate) fn removed_route(answer: &RemovedRoute) -> String {
    format!("{} belongs to nobody now.\n", harmless(&answer.removed))
}

pub(crate) fn routes(answer: &Routes) -> String {
    let cells = answer.routes.iter().map(|route| {
        let context = Some(route.context).filter(|context| *context != Context::default());
        let further = [
            route.free.then(|| "free".to_owned()),
            (route.approve == Approve::Any).then(|| "approve any".to_owned()),
            context.map(|context| format!("context {context}")),
            (route.threads == Threads::Auto).then(|| "threads auto".to_owned()),
        ];
        let further: Vec<String> = further.into_iter().flatten().collect();
        let whose = [perhaps(&route.bot), harmless(&route.tenant), perhaps(&route.gateway)];
        let busy = route.while_busy.map(WhileBusy::as_str).unwrap_or_default();
        let terms = vec![allowed(route, ","), busy.into(), further.join(", ")];
        [vec![harmless(&route.place)], whose.to_vec(), terms].concat()
    });
    table(&["PLACE", "BOT", "TENANT", "GATEWAY", "ALLOW", "WHILE BUSY", ""], cells)
}

fn allowed(route: &Route, between: &str) -> String {
    route.allow.iter().map(|person| harmless(person)).collect::<Vec<_>>().join(between)
}

/// Places where somebody wrote and that belong to nobody, with the command that changes it.
pub(crate) fn unrouted(answer: &Unrouted) -> String {
    if answer.unrouted.is_empty() {
        return "Every place where somebody wrote belongs to a tenant.\n".into();
    }
    let cells = answer.unrouted.iter().map(|row| {
        vec![harmless(&row.place), harmless(&row.bot), row.count.to_string(), moment(row.last_at)]
    });
    let mut text = table(&["PLACE", "BOT", "MESSAGES", "LAST"], cells);
    text.push_str("\nGive one to a tenant with:\n");
    for row in &answer.unrouted {
        let _ = writeln!(text, "  {}", harmless(&row.add));
    }
    text.push_str(&not_asked(&answer.not_asked));
    text
}

pub(crate) fn route_code(answer: &RouteCode) -> String {
    format!(
        "Whoever types this gives the place where they type it away, once, until {until}:\n\n  {say}\n",
        until = moment(answer.expires_at),
        say = harmless(&answer.say),
    )
}

pub(crate) fn invitation(answer: &Invitation) -> String {
    let (url, key, user) = (harmless(&answer.url), harmless(&answer.key), harmless(&answer.user));
    let room = harmless(&answer.room);
    // A private chat is a room of its own, named after the person.
    let private = room.is_empty() || room.starts_with("dm:");
    let (place, option) = if private {
        ("to the agent in private".to_owned(), String::new())
    } else {
        (format!("in room {room}"), format!(" --room {room}"))
    };
    let mut text = format!(
        "{user} may write {place} with this link (not shown again):\n\n{link}\n\n\
         Whoever has it is {user}. To make it void: angelia webchat revoke{option} --user {user}\n\n\
         For scripts, the key is what follows the #:\n  \
         curl -H 'Authorization: Bearer {key}' -d '{{\"text\": \"hello\"}}' {url}/messages\n  \
         curl -N -H 'Authorization: Bearer {key}' {url}/events\n",
        link = harmless(&answer.link),
    );
    if let Some(route) = &answer.route {
        text += &opened(route);
    }
    text
}

pub(crate) fn people(answer: &People) -> String {
    if answer.people.is_empty() {
        return "Nobody is invited. Invite somebody with: angelia webchat invite --user NAME\n".into();
    }
    let cells = answer.people.iter().map(|person| {
        let until = person.until.map_or_else(|| "no end".to_owned(), moment);
        let (room, user) = (harmless(&person.room), harmless(&person.user));
        vec![room, user, person.keys.to_string(), moment(person.since), until]
    });
    table(&["ROOM", "USER", "LINKS", "SINCE", "UNTIL"], cells)
}

pub(crate) fn revoked_person(answer: &RevokedPerson) -> String {
    format!(
        "The links of {} for room {} are void. To let them in again: angelia webchat invite\n",
        harmless(&answer.user),
        harmless(&answer.room)
    )
}

/// What the route of an invitation opens, and how to narrow it.
fn opened(route: &Route) -> String {
    let place = harmless(&route.place);
    let who = match route.allow.as_slice() {
        [any] if any == "any" => "everybody who is invited there".to_owned(),
        _ => allowed(route, ", "),
    };
    let what = if route.free { "everything they write" } else { "what they write to it" };
    format!(
        "\nThe place {place} belongs to tenant {tenant}: its agent listens to {who} and gets {what}.\n\
         To narrow that, use angelia route remove {place} and then angelia route add --allow.\n",
        tenant = harmless(&route.tenant),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_place_of_nobody_comes_with_the_command_that_helps() {
        let add = "angelia route add --tenant NAME --allow any webchat:lab";
        let text = unrouted(&read(json!({ "unrouted": [
            { "place": "webchat:lab", "bot": "webchat", "count": 3, "last_at": 0, "add": add },
        ]})));
        assert!(text.contains(add) && text.contains("1970-01-01"), "{text}");
        assert!(unrouted(&read(json!({ "unrouted": [] }))).starts_with("Every place"));
    }

    #[test]
    fn a_link_that_holds_until_it_is_revoked_does_not_look_revoked() {
        let person =
            |until: Value| json!({ "room": "lab", "user": "ann", "keys": 1, "since": 0, "until": until });
        let text = people(&read(json!({ "people": [person(Value::Null), person(json!(0))] })));
        let ends: Vec<&str> = text.lines().filter_map(|line| line.split("000Z  ").nth(1)).collect();
        assert_eq!(ends, ["no end", "1970-01-01 00:00:00.000Z"], "{text}");
    }

    #[test]
    fn a_private_invitation_names_no_room() {
        let text = invitation(&read(
            json!({ "user": "ann", "room": "dm:ann", "key": "k", "link": "http://x/chat#k" }),
        ));
        assert!(text.starts_with("ann may write to the agent in private with this link"), "{text}");
        assert!(text.contains("\nhttp://x/chat#k\n"), "{text}");
        assert!(text.contains("angelia webchat revoke --user ann\n"), "{text}");
        assert!(!text.contains("route"), "none was made: {text}");
    }

    #[test]
    fn an_invitation_tells_whom_its_route_lets_in() {
        let mut answer = json!({
            "user": "ann", "room": "lab", "key": "k", "url": "http://x/chat",
            "route": { "place": "webchat:lab", "tenant": "acme", "allow": ["any"], "free": true },
        });
        let text = invitation(&read(answer.clone()));
        let told = "webchat:lab belongs to tenant acme: its agent listens to everybody who is invited there \
                    and gets everything they write";
        assert!(text.contains(told), "{text}");
        assert!(text.contains("angelia route remove webchat:lab"), "{text}");
        answer["route"]["allow"] = json!(["ann"]);
        assert!(invitation(&read(answer)).contains("its agent listens to ann and gets"));
    }
}
