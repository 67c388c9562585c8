//! The story of one message.

use super::{count, moment, plural, rows, word};
use angelia_core::identity::instances::WAITS_FOR_FIRST;
use serde_json::Value;
use std::fmt::Write as _;

/// The legs of a message, each with the time since it was received.
pub(crate) fn story(answer: &Value) -> String {
    let mut text = String::new();
    for message in rows(answer, "messages") {
        let start = message["received_at"].as_i64().unwrap_or_default();
        let receiver = match word(message, "instance_name") {
            name if name == WAITS_FOR_FIRST => "the first gateway".to_owned(),
            name => name,
        };
        let _ = writeln!(
            text,
            "{} {} from {} chat {}, for {} of tenant {} (entry b{})",
            word(message, "kind"),
            word(message, "message_id"),
            word(message, "platform"),
            word(message, "chat_id"),
            receiver,
            word(message, "tenant"),
            message["seq"]
        );
        leg(&mut text, "received", &message["received_at"], start, "");
        leg(&mut text, "appended", &message["appended_at"], start, "");
        let sockets = message["pushes"].as_u64().unwrap_or_default().max(1);
        let sockets = format!("on {}", plural(sockets, "socket"));
        leg(&mut text, "pushed", &message["pushed_at"], start, &sockets);
        match word(message, "outcome") {
            outcome if outcome.is_empty() && message["pushed_at"].is_null() => {
                text.push_str("  waits for its gateway\n");
            }
            outcome if outcome.is_empty() => text.push_str("  waits for its acknowledgement\n"),
            outcome => leg(&mut text, "settled", &message["settled_at"], start, &outcome),
        }
        rows(message, "replies").iter().for_each(|reply| action(&mut text, reply, start));
    }
    for dropped in rows(answer, "drops") {
        let _ = writeln!(
            text,
            "{} from {} in {} reached nobody: {}\n  dropped          {}",
            word(dropped, "message_id"),
            word(dropped, "author"),
            word(dropped, "place"),
            word(dropped, "reason"),
            moment(&dropped["at"])
        );
    }
    for reply in rows(answer, "actions") {
        let start = reply["accepted_at"].as_i64().unwrap_or_default();
        let _ = writeln!(text, "written by the agent in chat {}", word(reply, "chat_id"));
        action(&mut text, reply, start);
    }
    text
}

fn action(text: &mut String, reply: &Value, start: i64) {
    let notes = ["message_id", "receipt", "error"].map(|name| word(reply, name));
    let note = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" ");
    leg(text, &format!("{} accepted", word(reply, "op")), &reply["accepted_at"], start, "");
    leg(
        text,
        &format!("{} {}", word(reply, "op"), word(reply, "state")),
        &reply["finished_at"],
        start,
        &note,
    );
    leg(text, "changed", &reply["last_edit_at"], start, &count(reply, "edits", "time"));
}

fn leg(text: &mut String, name: &str, at: &Value, start: i64, note: &str) {
    if let Some(ms) = at.as_i64() {
        let _ = writeln!(text, "  {name:<16} {}  +{} ms  {note}", moment(at), ms - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_drop_tells_its_reason_and_place() {
        let story = story(&json!({ "messages": [], "actions": [], "drops": [{
            "message_id": "wp1", "author": "ann", "place": "webchat:lab", "reason": "not_addressed", "at": 0,
        }]}));
        assert!(story.contains("wp1 from ann in webchat:lab reached nobody: not_addressed"), "{story}");
    }

    #[test]
    fn what_waits_for_a_first_gateway_says_so() {
        let story = story(&json!({ "messages": [{
            "seq": 1, "kind": "message", "platform": "webchat", "chat_id": "web-a", "message_id": "wp1",
            "instance_name": "(waits for its first gateway)", "tenant": "new", "received_at": 1, "appended_at": 2,
        }]}));
        assert!(story.contains("chat web-a, for the first gateway of tenant new (entry b1)\n"), "{story}");
        assert!(story.contains("  waits for its gateway\n"), "{story}");
    }

    #[test]
    fn a_story_names_every_leg() {
        let story = story(&json!({ "messages": [{
            "seq": 7, "kind": "message", "platform": "webchat", "chat_id": "web-a", "message_id": "wp1",
            "instance_name": "gw", "tenant": "default", "received_at": 1000, "appended_at": 1002,
            "pushed_at": 1003, "pushes": 1, "settled_at": 1010, "outcome": "acknowledged",
            "replies": [{ "op": "send", "state": "sent", "accepted_at": 1020, "finished_at": 1025, "message_id": "wa1",
                          "receipt": "delivered", "edits": 2, "last_edit_at": 4100 }],
        }]}));
        for leg in [
            "received",
            "appended",
            "pushed",
            "settled",
            "send accepted",
            "send sent",
            "+25 ms",
            "on 1 socket\n",
            "wa1 delivered\n",
            "+3100 ms  2 times\n",
        ] {
            assert!(story.contains(leg), "{leg} in {story}");
        }
    }
}
