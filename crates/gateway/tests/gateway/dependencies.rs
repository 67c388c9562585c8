//! What this crate must not carry.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Platform cryptography, storage and servers: the connector's business.
const FORBIDDEN: [&str; 9] =
    ["aes", "axum", "cbc", "chacha20poly1305", "ed25519", "ed25519-dalek", "p256", "rsa", "rusqlite"];

/// Package names, and who depends on whom when a program is built.
struct Graph {
    names: BTreeMap<String, String>,
    edges: BTreeMap<String, Vec<String>>,
}

fn graph() -> Graph {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let names = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let normal = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    let edges = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let deps = list(&node["deps"]);
            let deps = deps.iter().filter(|dep| normal(dep)).map(|dep| text(&dep["pkg"]));
            (text(&node["id"]), deps.collect())
        })
        .collect();
    Graph { names, edges }
}

impl Graph {
    /// Names reachable from a package, leaving out what only `cut` needs.
    fn reachable(&self, from: &str, cut: Option<&str>) -> BTreeSet<&str> {
        let start = self.names.iter().find(|(_, name)| *name == from).unwrap().0;
        let mut reached = BTreeSet::from([start.as_str()]);
        let mut open = vec![start.as_str()];
        while let Some(id) = open.pop() {
            if Some(self.names[id].as_str()) == cut {
                continue;
            }
            for next in &self.edges[id] {
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached.into_iter().map(|id| self.names[id].as_str()).collect()
    }
}

#[test]
fn it_carries_no_platform_cryptography_and_no_server() {
    let graph = graph();
    let reached = graph.reachable("angelia-gateway", None);
    assert!(reached.contains("tokio-tungstenite"), "the graph was walked");
    for name in FORBIDDEN {
        assert!(!reached.contains(name), "{name} is reachable");
    }
    // The WebSocket upgrade itself is defined with SHA-1; nobody else may.
    assert!(!graph.reachable("angelia-gateway", Some("tungstenite")).contains("sha1"));
    assert!(!reached.contains("aws-lc-rs"), "one TLS provider is enough");
    let own: Vec<_> = reached.iter().filter(|name| name.starts_with("angelia")).collect();
    assert_eq!(own, [&"angelia-contract", &"angelia-gateway"]);
}
