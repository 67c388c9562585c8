//! `angelia cluster status`: which nodes there are, what each of them does, and what is wrong.

use super::Admin;
use super::types::Nothing;
use crate::cluster::Facts;
use crate::readiness::{NO_BUS, Readiness};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::cluster::{Nodes as _, TERM};
use angelia_core::error::Result;
use angelia_core::records::rows::{LeaseRow, NodeRow};
use std::sync::Arc;
use std::time::Duration;

/// How long a lease may be free before that is told: by then whoever wants it had several chances.
const FREE_FOR: Duration = Duration::from_secs(5);
/// How many changes a node may be behind before that is told: as many are made in a moment.
const BEHIND: u64 = 100;

answered! {
    /// Which nodes share the store, what each of them does, and what is wrong.
    pub struct ClusterStatus {
        /// Whether others may use the same store. A server that is alone does everything.
        pub shared: bool,
        /// The node that answers.
        pub node: String,
        /// Every node, also those that are gone without having said so, for ten minutes.
        pub nodes: Vec<NodeStatus>,
        /// What only one node does at a time, and which.
        pub leases: Vec<LeaseStatus>,
        /// What is wrong, in words.
        pub problems: Vec<String>,
    }

    /// How a node is doing.
    pub struct NodeStatus {
        /// What it is called.
        pub node: String,
        /// Whether it gave a sign of life lately.
        pub there: bool,
        /// Its release.
        pub version: String,
        /// When it came.
        pub started_at: UnixMillis,
        /// When it gave its last sign of life.
        pub last_sign_at: UnixMillis,
        /// Whether it takes messages in.
        pub ready: bool,
        /// Relay sockets open on it.
        pub sockets: u64,
        /// How many leases it holds.
        pub leases: u64,
        /// Whether it hears the others at once.
        pub bus_connected: bool,
        /// Changes of who is known that others know of and it does not yet.
        pub behind: u64,
        /// The name of the master key it seals with.
        pub key_id: String,
    }

    /// Something that only one node does at a time.
    pub struct LeaseStatus {
        /// What.
        pub lease: String,
        /// Which node; `null` if nobody does.
        pub node: Option<String>,
        /// Until when without another sign of that node; of one that nobody holds, when it was free.
        pub until: Option<UnixMillis>,
    }
}

/// What `angelia cluster status` shows.
pub(super) async fn status(admin: Arc<Admin>, _: Nothing) -> Result<ClusterStatus> {
    let cluster = &admin.cluster;
    if !cluster.is_shared() {
        return Ok(alone(&admin));
    }
    let (now, rows) = admin.ports.records.nodes().await?;
    let leases = admin.ports.records.leases().await?;
    let seen = Moment { now, rows, leases, wanted: cluster.wants() };
    Ok(seen.status(cluster.node()))
}

/// A server that shares its store with nobody.
fn alone(admin: &Admin) -> ClusterStatus {
    let Admin { cluster, sessions, life, ports, keys, .. } = admin;
    let node = NodeStatus {
        node: cluster.node().to_owned(),
        there: true,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: cluster.started_at(),
        last_sign_at: clock::wall(),
        ready: Readiness::of(life, &*ports.upkeep, cluster, keys).is_ready(),
        sockets: sessions.open() as u64,
        leases: cluster.leases_held() as u64,
        bus_connected: true,
        behind: 0,
        key_id: keys.keys().current().id().to_string(),
    };
    ClusterStatus { node: node.node.clone(), nodes: vec![node], ..ClusterStatus::default() }
}

/// What the store says at one moment, by its own clock.
struct Moment {
    now: UnixMillis,
    rows: Vec<NodeRow>,
    leases: Vec<LeaseRow>,
    /// What this node would do, by name.
    wanted: Vec<String>,
}

impl Moment {
    fn status(mut self, me: &str) -> ClusterStatus {
        self.rows.sort_by(|one, other| one.node.cmp(&other.node));
        let told: Vec<Facts> = self.rows.iter().map(Facts::of).collect();
        let newest = told.iter().map(|facts| facts.feed).max().unwrap_or_default();
        let nodes = self.rows.iter().zip(&told);
        let nodes: Vec<NodeStatus> = nodes.map(|(row, facts)| self.node(row, facts, newest)).collect();
        let leases = self.wanted_leases();
        let mut problems = problems(&nodes, &told);
        problems.extend(self.free(&leases));
        ClusterStatus { shared: true, node: me.to_owned(), nodes, leases, problems }
    }

    fn node(&self, row: &NodeRow, facts: &Facts, newest: i64) -> NodeStatus {
        let term = i64::try_from(TERM.as_millis()).unwrap_or_default();
        let holds = |lease: &&LeaseRow| lease.node == row.node && self.is_held(lease);
        NodeStatus {
            node: row.node.clone(),
            there: row.is_there(self.now),
            version: facts.version.clone(),
            started_at: row.started_at,
            last_sign_at: UnixMillis(row.until.0 - term),
            ready: facts.ready && row.is_there(self.now),
            sockets: facts.sockets,
            leases: self.leases.iter().filter(holds).count() as u64,
            bus_connected: facts.bus,
            behind: u64::try_from(newest - facts.feed).unwrap_or_default(),
            key_id: facts.key.id.clone(),
        }
    }

    fn is_held(&self, row: &LeaseRow) -> bool {
        !row.released && row.until.is_none_or(|until| until > self.now)
    }

    /// What is held, and what somebody should hold. Rows of bots that were configured once are neither.
    fn wanted_leases(&self) -> Vec<LeaseStatus> {
        let mut leases: Vec<LeaseStatus> = self
            .leases
            .iter()
            .filter(|row| self.is_held(row) || self.wanted.contains(&row.name))
            .map(|row| LeaseStatus {
                lease: row.name.clone(),
                node: self.is_held(row).then(|| row.node.clone()),
                until: row.until,
            })
            .collect();
        let unknown = self.wanted.iter().filter(|name| !self.leases.iter().any(|row| row.name == **name));
        leases.extend(unknown.map(|name| LeaseStatus { lease: name.clone(), ..LeaseStatus::default() }));
        leases.sort_by(|one, other| one.lease.cmp(&other.lease));
        leases
    }

    /// What nobody does.
    fn free<'a>(&self, leases: &'a [LeaseStatus]) -> impl Iterator<Item = String> + use<'a> {
        let now = self.now;
        let is_overdue = move |lease: &&LeaseStatus| {
            lease.node.is_none() && lease.until.is_none_or(|until| until.after(FREE_FOR) < now)
        };
        leases.iter().filter(is_overdue).map(|lease| {
            format!(
                "nobody does {:?}: no node that wants it has taken it; look at the logs of the nodes",
                lease.lease
            )
        })
    }
}

/// What is wrong with nodes.
fn problems(nodes: &[NodeStatus], told: &[Facts]) -> Vec<String> {
    let mut problems = Vec::new();
    let newest = nodes.iter().filter(|node| node.there).map(|node| &node.key_id).collect::<Vec<_>>();
    let one_key = newest.windows(2).all(|pair| pair[0] == pair[1]);
    let there = nodes.iter().filter(|node| node.there);
    if there.clone().any(|node| !node.bus_connected) {
        let deaf: Vec<&str> = there.filter(|node| !node.bus_connected).map(|node| &*node.node).collect();
        problems.push(format!(
            "{} {} {NO_BUS}",
            deaf.join(", "),
            if deaf.len() == 1 { "has" } else { "have" }
        ));
    }
    for (node, facts) in nodes.iter().zip(told) {
        let name = &node.node;
        if !node.there {
            problems.push(format!(
                "{name} gives no sign of life and did not say that it leaves: was it killed, or does it not reach the \
                 database? What it did others do now"
            ));
            continue;
        }
        if !node.ready {
            problems.push(format!("{name} takes nothing in: see /readyz there"));
        }
        if node.behind > BEHIND {
            problems.push(format!("{name} is {} changes behind: it does not read them", node.behind));
        }
        problems.extend(facts.key.trouble.iter().map(|trouble| format!("{name}: {trouble}")));
        problems.extend(facts.key.to_do.iter().map(|to_do| format!("{name}: {to_do}")));
    }
    if !one_key {
        problems
            .push("the master key is being changed: not every node seals with the new one yet".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(node: &str, until: i64, facts: serde_json::Value) -> NodeRow {
        let (owner, started_at, until) = (1, UnixMillis(1_000), UnixMillis(until));
        NodeRow { node: node.into(), owner, started_at, until, takes: true, facts: facts.to_string() }
    }

    fn lease(name: &str, node: &str, until: i64, released: bool) -> LeaseRow {
        let (token, owner) = (1, 0);
        LeaseRow {
            name: name.into(),
            node: node.into(),
            token,
            until: Some(UnixMillis(until)),
            released,
            owner,
        }
    }

    fn well(feed: i64) -> serde_json::Value {
        json!({ "version": "1", "sockets": 3, "bus": true, "feed": feed, "ready": true, "key": { "id": "aa" } })
    }

    fn moment(rows: Vec<NodeRow>, leases: Vec<LeaseRow>) -> ClusterStatus {
        let wanted = ["wake", "bot telegram/7"].map(str::to_owned).to_vec();
        Moment { now: UnixMillis(100_000), rows, leases, wanted }.status("b")
    }

    #[test]
    fn a_cluster_that_is_well_has_no_problems() {
        let leases = vec![
            lease("wake", "a", 103_000, false),
            lease("bot telegram/7", "b", 103_500, false),
            lease("bot sms/old", "a", 50, true),
        ];
        let until = |sign| UnixMillis(sign).after(TERM).0;
        let rows = vec![row("b", until(100_000), well(40)), row("a", until(99_000), well(50))];
        let status = moment(rows, leases);
        assert_eq!(status.problems, [""; 0]);
        let nodes: Vec<_> =
            status.nodes.iter().map(|it| (&*it.node, it.last_sign_at.0, it.leases, it.behind)).collect();
        assert_eq!(nodes, [("a", 99_000, 1, 0), ("b", 100_000, 1, 10)]);
        let leases: Vec<_> = status.leases.iter().map(|it| (&*it.lease, it.node.as_deref())).collect();
        assert_eq!(
            leases,
            [("bot telegram/7", Some("b")), ("wake", Some("a"))],
            "what nobody wants is no news"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut deaf = well(50);
        deaf["bus"] = false.into();
        deaf["key"] = json!({ "id": "bb", "trouble": "cannot be written down" });
        let mut unready = well(1_000);
        unready["ready"] = false.into();
        let rows = vec![row("a", 104_000, deaf), row("b", 104_000, unready), row("c", 90_000, well(1))];
        let leases = vec![lease("wake", "c", 90_000, false), lease("bot telegram/7", "a", 99_000, true)];
        let told = moment(rows, leases).problems.join("\n");
        for part in [
            "a has no bus",
            "within a second",
            "a is 950 changes behind",
            "a: cannot be written down",
            "b takes nothing in",
            "c gives no sign of life",
            "nobody does \"wake\"",
            "the master key is being changed",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert!(!told.contains("telegram"), "it was given back just now");
    }
}
