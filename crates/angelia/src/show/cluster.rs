//! The nodes that share a store.

use super::{harmless, moment, perhaps, plural, table};
use angelia_connector::admin::types::{ClusterStatus, NodeStatus};
use std::fmt::Write as _;

/// Nodes, what each of them does, and what is wrong.
pub(crate) fn cluster(answer: &ClusterStatus) -> String {
    if !answer.shared {
        let (version, sockets) = answer
            .nodes
            .first()
            .map_or_else(Default::default, |node| (harmless(&node.version), node.sockets));
        return format!(
            "This server is alone: its store is a file of its own, and it does everything itself ({version}, {}).\n\
             Several nodes need one PostgreSQL (store.url) and one Redis (bus.url); angelia migrate moves the data.\n",
            plural(sockets, "socket")
        );
    }
    let there = answer.nodes.iter().filter(|node| node.there).count() as u64;
    let mut text = format!("{}, answered by {}\n", plural(there, "node"), harmless(&answer.node));
    let head = ["NODE", "STATE", "VERSION", "SINCE", "LAST SIGN", "SOCKETS", "LEASES", "BUS", "BEHIND"];
    text.push_str(&table(&head, answer.nodes.iter().map(node)));
    let leases = answer.leases.iter().map(|lease| {
        let holder = if lease.node.is_some() { perhaps(&lease.node) } else { "nobody".to_owned() };
        vec![harmless(&lease.lease), holder, moment(lease.until)]
    });
    let _ = write!(text, "\n{}", table(&["ONLY ONE DOES", "WHO", "UNTIL"], leases));
    if answer.problems.is_empty() {
        text.push_str("\nNothing is wrong.\n");
    }
    for problem in &answer.problems {
        let _ = write!(text, "\nPROBLEM: {}\n", harmless(problem));
    }
    text
}

fn node(row: &NodeStatus) -> Vec<String> {
    let state = match (row.there, row.ready) {
        (false, _) => "gone",
        (true, true) => "ready",
        (true, false) => "NOT READY",
    };
    let bus = if row.bus_connected { "yes" } else { "NO" };
    vec![
        harmless(&row.node),
        state.to_owned(),
        harmless(&row.version),
        moment(row.started_at),
        moment(row.last_sign_at),
        row.sockets.to_string(),
        row.leases.to_string(),
        bus.to_owned(),
        row.behind.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_that_is_alone_says_so() {
        let text = cluster(&read(json!({ "shared": false, "nodes": [{ "version": "1.2", "sockets": 1 }] })));
        assert!(text.starts_with("This server is alone") && text.contains("1.2, 1 socket)"), "{text}");
    }

    #[test]
    fn nodes_leases_and_problems_are_shown() {
        let mut answer = json!({
            "shared": true, "node": "a-1", "problems": [],
            "nodes": [
                { "node": "a-1", "there": true, "ready": true, "version": "1.2", "sockets": 7, "bus_connected": true },
                { "node": "b-2", "there": false, "behind": 3 },
            ],
            "leases": [{ "lease": "wake", "node": "a-1", "until": 0 }, { "lease": "bot sms/1", "node": null }],
        });
        let text = cluster(&read(answer.clone()));
        assert!(
            text.starts_with("1 node, answered by a-1\n") && text.contains("Nothing is wrong."),
            "{text}"
        );
        assert!(text.contains("bot sms/1      nobody") && text.contains("wake           a-1"), "{text}");
        let gone = text.lines().find(|line| line.starts_with("b-2")).unwrap();
        assert!(gone.contains("gone") && gone.contains("NO") && gone.ends_with('3'), "{gone}");
        answer["problems"] = json!(["b-2 gives no sign of life"]);
        let text = cluster(&read(answer));
        assert!(text.contains("PROBLEM: b-2 gives") && !text.contains("Nothing is wrong"), "{text}");
    }
}
