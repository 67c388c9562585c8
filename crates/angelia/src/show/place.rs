//! Routes, and people in the web chat.

use super::{moment, rows, table, word, words};
use serde_json::Value;
use std::fmt::Write as _;

pub(crate) fn added_route(answer: &Value) -> String {
    format!("{} belongs to tenant {} now.\n", word(answer, "place"), word(answer, "tenant"))
}

pub(crate) fn removed_route(answer: &Value) -> String {
    format!("{} belongs to nobody now.\n", word(answer, "removed"))
}

pub(crate) fn routes(answer: &Value) -> String {
    let cells = rows(answer, "routes").iter().map(|row| {
        let free = if row["free"] == true { "free" } else { "" };
        let fields = ["place", "bot", "tenant", "gateway"].map(|name| word(row, name));
        [fields.to_vec(), vec![words(row, "allow").join(","), free.into()]].concat()
    });
    table(&["PLACE", "BOT", "TENANT", "GATEWAY", "ALLOW", ""], cells)
}

/// Places where somebody wrote and that belong to nobody, with the command that changes it.
pub(crate) fn unrouted(answer: &Value) -> String {
    let rows = rows(answer, "unrouted");
    if rows.is_empty() {
        return "Every place where somebody wrote belongs to a tenant.\n".into();
    }
    let cells = rows.iter().map(|row| {
        let fields = ["place", "bot", "count"].map(|name| word(row, name));
        [fields.to_vec(), vec![moment(&row["last_at"])]].concat()
    });
    let mut text = table(&["PLACE", "BOT", "MESSAGES", "LAST"], cells);
    text.push_str("\nGive one to a tenant with:\n");
    for row in rows {
        let _ = writeln!(text, "  {}", word(row, "add"));
    }
    text
}

pub(crate) fn route_code(answer: &Value) -> String {
    format!(
        "Whoever types this gives the place where they type it away, once, until {until}:\n\n  {say}\n",
        until = moment(&answer["expires_at"]),
        say = word(answer, "say"),
    )
}

pub(crate) fn invitation(answer: &Value) -> String {
    let (url, key, user) = (word(answer, "url"), word(answer, "key"), word(answer, "user"));
    let room = word(answer, "room");
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
        link = word(answer, "link"),
    );
    if let Some(route) = answer.get("route") {
        text += &opened(route);
    }
    text
}

pub(crate) fn people(answer: &Value) -> String {
    let rows = rows(answer, "people");
    if rows.is_empty() {
        return "Nobody is invited. Invite somebody with: angelia webchat invite --user NAME\n".into();
    }
    let cells = rows.iter().map(|row| {
        let until = if row["until"].is_null() { "no end".to_owned() } else { moment(&row["until"]) };
        vec![word(row, "room"), word(row, "user"), word(row, "keys"), moment(&row["since"]), until]
    });
    table(&["ROOM", "USER", "LINKS", "SINCE", "UNTIL"], cells)
}

pub(crate) fn revoked_person(answer: &Value) -> String {
    format!(
        "The links of {} for room {} are void. To let them in again: angelia webchat invite\n",
        word(answer, "user"),
        word(answer, "room")
    )
}

/// What the route of an invitation opens, and how to narrow it.
fn opened(route: &Value) -> String {
    let place = word(route, "place");
    let who = match words(route, "allow").as_slice() {
        [any] if any == "any" => "everybody who is invited there".to_owned(),
        people => people.join(", "),
    };
    let what = if route["free"] == true { "everything they write" } else { "what they write to it" };
    format!(
        "\nThe place {place} belongs to tenant {tenant}: its agent listens to {who} and gets {what}.\n\
         To narrow that, use angelia route remove {place} and then angelia route add --allow.\n",
        tenant = word(route, "tenant"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_of_nobody_comes_with_the_command_that_helps() {
        let add = "angelia route add --tenant NAME --allow any webchat:lab";
        let text = unrouted(&json!({ "unrouted": [
            { "place": "webchat:lab", "bot": "webchat", "count": 3, "last_at": 0, "add": add },
        ]}));
        assert!(text.contains(add) && text.contains("1970-01-01"), "{text}");
        assert!(unrouted(&json!({ "unrouted": [] })).starts_with("Every place"));
    }

    #[test]
    fn a_link_that_holds_until_it_is_revoked_does_not_look_revoked() {
        let person =
            |until: Value| json!({ "room": "lab", "user": "ann", "keys": 1, "since": 0, "until": until });
        let text = people(&json!({ "people": [person(Value::Null), person(json!(0))] }));
        let ends: Vec<&str> = text.lines().filter_map(|line| line.split("000Z  ").nth(1)).collect();
        assert_eq!(ends, ["no end", "1970-01-01 00:00:00.000Z"], "{text}");
    }

    #[test]
    fn a_private_invitation_names_no_room() {
        let text =
            invitation(&json!({ "user": "ann", "room": "dm:ann", "key": "k", "link": "http://x/chat#k" }));
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
        let text = invitation(&answer);
        let told = "webchat:lab belongs to tenant acme: its agent listens to everybody who is invited there \
                    and gets everything they write";
        assert!(text.contains(told), "{text}");
        assert!(text.contains("angelia route remove webchat:lab"), "{text}");
        answer["route"]["allow"] = json!(["ann"]);
        assert!(invitation(&answer).contains("its agent listens to ann and gets"));
    }
}
