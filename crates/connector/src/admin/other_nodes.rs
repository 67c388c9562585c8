//! What only the memory of each node knows, asked of all of them: what reached nobody lately, how
//! bots are, and whether a change has come to them.

use super::Admin;
use super::bot_health::{self, BotHealth};
use crate::cluster::Cluster;
use crate::identities::Identities;
use crate::ingress::{Bots, Dropped, Drops};
use angelia_core::clock::UnixMillis;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long other nodes may take to answer: an operator waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Places in one answer: a message on the bus holds so many with ease.
const PLACES: usize = 256;

/// What is asked of all nodes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    /// Why a message reached nobody.
    DropsOf(String),
    /// Which messages reached nobody lately.
    Drops,
    /// Which places spoke without a route.
    Unrouted,
    /// How bots are.
    Health,
    /// To say so once they know of a line of the change feed.
    Know(i64),
}

/// What a node answers.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Answer {
    node: String,
    drops: Vec<Dropped>,
    unrouted: Vec<HeardPlace>,
    health: Vec<BotHealth>,
}

/// A place that spoke without a route.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HeardPlace {
    pub(super) place: String,
    pub(super) bot: String,
    pub(super) count: u64,
    pub(super) last_at: UnixMillis,
}

/// What this node knows by heart.
struct ByHeart {
    node: String,
    drops: Arc<Drops>,
    bots: Arc<Bots>,
    identities: Arc<Identities>,
}

/// Has this node answer what others ask of all.
pub(super) fn answer_others(admin: &Admin) {
    let (drops, bots, identities) = (admin.drops.clone(), admin.bots.clone(), admin.identities.clone());
    let known = Arc::new(ByHeart { node: admin.cluster.node().to_owned(), drops, bots, identities });
    admin.cluster.calls().answer_all_by(Box::new(move |question| {
        let known = known.clone();
        Box::pin(async move { known.answer(question).await })
    }));
}

impl ByHeart {
    async fn answer(&self, question: Value) -> Option<Value> {
        let mut answer = Answer { node: self.node.clone(), ..Answer::default() };
        match serde_json::from_value(question).ok()? {
            Question::DropsOf(message) => answer.drops = self.drops.of(&message),
            Question::Drops => answer.drops = self.drops.recent(),
            Question::Unrouted => answer.unrouted = heard(&self.drops),
            Question::Health => answer.health = bot_health::to_tell(&self.bots),
            Question::Know(line) => self.identities.follow_to(line).await.ok()?,
        }
        serde_json::to_value(answer).ok()
    }
}

fn heard(drops: &Arc<Drops>) -> Vec<HeardPlace> {
    let all = drops.unrouted().into_iter().take(PLACES);
    let place = |((place, bot), heard): ((String, String), crate::ingress::Heard)| HeardPlace {
        place,
        bot,
        count: heard.count,
        last_at: heard.last_at,
    };
    all.map(place).collect()
}

/// Why a message reached nobody, as any node knows, oldest first; and the nodes that did not
/// answer.
pub(super) async fn drops_of(admin: &Admin, message: &str) -> (Vec<Dropped>, Vec<String>) {
    let mut drops = admin.drops.of(message);
    let (answers, silent) = ask(&admin.cluster, Question::DropsOf(message.to_owned())).await;
    drops.extend(answers.into_iter().flat_map(|answer| answer.drops));
    drops.sort_by_key(|dropped| dropped.at);
    (drops, silent)
}

/// Messages that reached nobody lately, as any node knows, the newest first; and the nodes that did
/// not answer.
pub(super) async fn recent_drops(admin: &Admin) -> (Vec<Dropped>, Vec<String>) {
    let mut drops = admin.drops.recent();
    let (answers, silent) = ask(&admin.cluster, Question::Drops).await;
    drops.extend(answers.into_iter().flat_map(|answer| answer.drops));
    drops.sort_by_key(|dropped| std::cmp::Reverse(dropped.at));
    (drops, silent)
}

/// The places without a route that any node heard of, the one heard of last first; and the
/// nodes that did not answer.
pub(super) async fn unrouted(admin: &Admin) -> (Vec<HeardPlace>, Vec<String>) {
    let (answers, silent) = ask(&admin.cluster, Question::Unrouted).await;
    let theirs = answers.into_iter().flat_map(|answer| answer.unrouted);
    (merged(heard(&admin.drops).into_iter().chain(theirs)), silent)
}

/// How bots are, as other nodes know; and the nodes that did not answer.
pub(super) async fn health(admin: &Admin) -> (Vec<BotHealth>, Vec<String>) {
    let (answers, silent) = ask(&admin.cluster, Question::Health).await;
    (answers.into_iter().flat_map(|answer| answer.health).collect(), silent)
}

fn merged(all: impl Iterator<Item = HeardPlace>) -> Vec<HeardPlace> {
    let mut places: Vec<HeardPlace> = Vec::new();
    for one in all {
        match places.iter_mut().find(|it| (&it.place, &it.bot) == (&one.place, &one.bot)) {
            Some(known) => {
                known.count += one.count;
                known.last_at = known.last_at.max(one.last_at);
            }
            None => places.push(one),
        }
    }
    places.sort_by_key(|place| std::cmp::Reverse(place.last_at));
    places
}

/// Waits until the other nodes know of a line of the change feed, so that a change counts everywhere
/// once it is answered. Who does not say so in time reads of it with its next sign of life.
pub(crate) async fn until_known(cluster: &Cluster, line: i64) {
    if !cluster.is_shared() {
        return;
    }
    // As the store knows: one that came a moment ago has given no sign yet that was seen here.
    let others = match tokio::time::timeout(PATIENCE, cluster.others_now()).await {
        Ok(Ok(others)) => others,
        _ => others_seen(cluster),
    };
    let (_, silent) = ask_these(cluster, others, Question::Know(line)).await;
    if !silent.is_empty() && cluster.bus().is_connected() {
        tracing::info!(line, ?silent, "not all nodes said in time that they know of a change");
    }
}

async fn ask(cluster: &Cluster, question: Question) -> (Vec<Answer>, Vec<String>) {
    if !cluster.is_shared() {
        return (Vec::new(), Vec::new());
    }
    ask_these(cluster, others_seen(cluster), question).await
}

fn others_seen(cluster: &Cluster) -> Vec<String> {
    let nodes = cluster.seen().there.into_iter().map(|row| row.node);
    nodes.filter(|node| node != cluster.node()).collect()
}

async fn ask_these(cluster: &Cluster, others: Vec<String>, question: Question) -> (Vec<Answer>, Vec<String>) {
    let answers = cluster.calls().ask_all(&json!(question), others.len(), PATIENCE).await;
    let answers: Vec<Answer> = answers.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect();
    let has_answered = |node: &String| answers.iter().any(|answer| answer.node == *node);
    let silent = others.into_iter().filter(|node| !has_answered(node)).collect();
    (answers, silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_nodes_heard_of_one_place_is_one_line() {
        let heard = |place: &str, count, last_at| HeardPlace {
            place: place.into(),
            bot: "b".into(),
            count,
            last_at: UnixMillis(last_at),
        };
        let all = merged([heard("x", 2, 5), heard("y", 1, 7), heard("x", 3, 9)].into_iter());
        let all: Vec<_> = all.iter().map(|it| (&*it.place, it.count, it.last_at.0)).collect();
        assert_eq!(all, [("x", 5, 9), ("y", 1, 7)]);
    }
}
