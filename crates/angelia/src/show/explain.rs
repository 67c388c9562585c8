//! The story of one message.

use super::{harmless, moment, perhaps, plural};
use angelia_connector::admin::types::{Explained, ExplainedAction, ExplainedDrop, ExplainedMessage};
use angelia_core::clock::UnixMillis;
use angelia_core::identity::instances::WAITS_FOR_FIRST;
use std::fmt::Write as _;

/// The steps of a message, each with the time since it was received.
pub(crate) fn story(answer: &Explained) -> String {
    let mut text = String::new();
    answer.messages.iter().for_each(|message| received(&mut text, message));
    for dropped in &answer.drops {
        let ExplainedDrop { dropped, means, cause, next } = dropped;
        let _ = writeln!(
            text,
            "{} from {} in {} reached nobody: {}\n  dropped          {}",
            harmless(&dropped.message_id),
            harmless(&dropped.author),
            harmless(&dropped.place),
            harmless(&dropped.reason),
            moment(dropped.at)
        );
        for (about, said) in [("means", means), ("usually", cause), ("next", next)] {
            if !said.is_empty() {
                let _ = writeln!(text, "  {about:<16} {}", harmless(said));
            }
        }
    }
    for reply in &answer.actions {
        let _ = writeln!(text, "written by the agent in chat {}", harmless(&reply.action.chat_id));
        written(&mut text, reply, reply.action.accepted_at);
    }
    text.push_str(&not_asked(&answer.not_asked));
    text
}

/// That other nodes may know more.
pub(super) fn not_asked(nodes: &[String]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| harmless(node)).collect();
    match nodes.as_slice() {
        [] => String::new(),
        nodes => format!(
            "{} did not answer in time: each node remembers by itself what it dropped.\n",
            nodes.join(", ")
        ),
    }
}

fn received(text: &mut String, explained: &ExplainedMessage) {
    let message = &explained.message;
    let start = message.received_at;
    let receiver = match harmless(&message.instance_name) {
        name if name == WAITS_FOR_FIRST => "the first gateway".to_owned(),
        name => name,
    };
    let _ = writeln!(
        text,
        "{} {} from {} chat {}, for {} of tenant {} (entry {})",
        harmless(&message.kind),
        harmless(&message.message_id),
        harmless(&message.platform),
        harmless(&message.chat_id),
        receiver,
        harmless(&message.tenant),
        message.seq.buffer_id()
    );
    leg(text, "received", message.received_at, start, "");
    leg(text, "appended", message.appended_at, start, "");
    leg(text, "held", message.held_at, start, "until the agent had finished what it was at");
    let sockets = format!("on {}", plural(message.pushes.max(1).into(), "socket"));
    leg(text, "pushed", message.pushed_at, start, &sockets);
    match perhaps(&message.outcome) {
        outcome if outcome.is_empty() && message.pushed_at.is_none() => {
            text.push_str("  waits for its gateway\n");
        }
        outcome if outcome.is_empty() => text.push_str("  waits for its acknowledgement\n"),
        outcome => leg(text, "settled", message.settled_at, start, &outcome),
    }
    leg(text, "interrupted", message.interrupted_at, start, "the agent was asked to stop");
    explained.replies.iter().for_each(|reply| written(text, reply, start));
}

fn written(text: &mut String, explained: &ExplainedAction, start: UnixMillis) {
    let action = &explained.action;
    let notes = [&action.message_id, &action.receipt, &action.error].map(perhaps);
    let note = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" ");
    let (op, state) = (harmless(&action.op), harmless(&action.state));
    leg(text, &format!("{op} accepted"), action.accepted_at, start, "");
    leg(text, &format!("{op} {state}"), action.finished_at, start, &note);
    leg(text, "changed", explained.last_edit_at, start, &plural(explained.edits, "time"));
}

fn leg(text: &mut String, name: &str, at: impl Into<Option<UnixMillis>>, start: UnixMillis, note: &str) {
    if let Some(at) = at.into() {
        let _ = writeln!(text, "  {name:<16} {}  +{} ms  {note}", moment(at), at.0 - start.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_drop_tells_its_reason_and_place() {
        let story = story(&read(json!({ "messages": [], "actions": [], "drops": [{
            "message_id": "wp1", "author": "ann", "place": "webchat:lab", "reason": "not_addressed", "at": 0,
            "means": "It was said among people.", "next": "angelia route add --free webchat:lab",
        }]})));
        assert!(story.contains("  means            It was said among people.\n"), "{story}");
        assert!(story.contains("  next             angelia route add --free webchat:lab\n"), "{story}");
        assert!(!story.contains("usually"), "{story}");
        assert!(story.contains("wp1 from ann in webchat:lab reached nobody: not_addressed"), "{story}");
    }

    #[test]
    fn what_waits_for_a_first_gateway_says_so() {
        let story = story(&read(json!({ "messages": [{
            "seq": 1, "kind": "message", "platform": "webchat", "chat_id": "web-a", "message_id": "wp1",
            "instance_name": "(waits for its first gateway)", "tenant": "new", "received_at": 1, "appended_at": 2,
        }]})));
        assert!(story.contains("chat web-a, for the first gateway of tenant new (entry b1)\n"), "{story}");
        assert!(story.contains("  waits for its gateway\n"), "{story}");
    }

    #[test]
    fn a_story_names_every_leg() {
        let story = story(&read(json!({ "messages": [{
            "seq": 7, "kind": "message", "platform": "webchat", "chat_id": "web-a", "message_id": "wp1",
            "instance_name": "gw", "tenant": "default", "received_at": 1000, "appended_at": 1002,
            "held_at": 1002, "pushed_at": 1003, "pushes": 1, "settled_at": 1010, "interrupted_at": 1015, "outcome": "acknowledged",
            "replies": [{ "op": "send", "state": "sent", "accepted_at": 1020, "finished_at": 1025, "message_id": "wa1",
                          "receipt": "delivered", "edits": 2, "last_edit_at": 4100 }],
        }]})));
        for leg in [
            "received",
            "appended",
            "held  ",
            "pushed",
            "settled",
            "interrupted",
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
