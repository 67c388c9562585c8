//! What every bus must do. It may lose, double and reorder what it is given; it tells
//! whoever listens and follows, and makes nothing up.

use super::redis::{Nodes, joined};
use super::redis_server::RedisServer;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::{Bus, Control, Hint, Topic};
use angelia_engines::local_bus::LocalBus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a bus may take to bring a hint, and how often it is told again until it did.
const WITHIN: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(20);

/// What [`gone`] is about.
pub(super) const TOPIC: Topic = Topic::Instance(InstanceId(1));

/// Somebody who listens, and what they heard.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<Hint>>>);

impl Heard {
    pub(super) fn on(bus: &dyn Bus) -> Self {
        let heard = Self::default();
        let noted = heard.clone();
        bus.subscribe(Arc::new(move |hint| noted.0.lock().unwrap().push(hint)));
        heard
    }

    pub(super) fn all(&self) -> Vec<Hint> {
        self.0.lock().unwrap().clone()
    }

    /// What [`gone`] said.
    pub(super) fn numbers(&self) -> Vec<i64> {
        let numbers = |hint| match hint {
            Hint::Removed { seqs, .. } => seqs,
            _ => Vec::new(),
        };
        self.all().into_iter().flat_map(numbers).map(|seq| seq.0).collect()
    }

    pub(super) fn missed(&self) -> Vec<Option<Topic>> {
        let of = |hint| if let Hint::Missed(of) = hint { Some(of) } else { None };
        self.all().into_iter().filter_map(of).collect()
    }

    pub(super) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }
}

pub(super) fn gone(seq: i64) -> Hint {
    Hint::Removed { instance: InstanceId(1), seqs: vec![Seq(seq)] }
}

/// Says it again and again until it was heard.
pub(super) async fn say_until(bus: &dyn Bus, hint: Hint, mut heard: impl FnMut() -> bool) {
    let told = async {
        while !heard() {
            bus.publish(hint.clone());
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::time::timeout(WITHIN, told).await.unwrap_or_else(|_| panic!("nobody was told {hint:?}"));
}

/// Everybody hears of what is published after they came, sooner or later, if it is
/// published often enough.
async fn whoever_listens_is_told(nodes: Nodes) {
    let all = [Heard::on(&*nodes.there), Heard::on(&*nodes.there), Heard::on(&*nodes.here)];
    nodes.there.follow(TOPIC);
    say_until(&*nodes.here, gone(7), || all.iter().all(|one| one.numbers().contains(&7))).await;
}

async fn nothing_is_made_up(nodes: Nodes) {
    nodes.there.follow(TOPIC);
    nodes.here.publish(gone(1));
    let heard = Heard::on(&*nodes.there);
    (2..50).for_each(|seq| nodes.here.publish(gone(seq)));
    say_until(&*nodes.here, gone(49), || heard.numbers().contains(&49)).await;
    assert!(heard.numbers().iter().all(|seq| (1..50).contains(seq)), "{:?}", heard.numbers());
}

/// A listener that publishes must not wait for itself.
async fn who_is_told_may_say_something(nodes: Nodes) {
    let heard = Heard::on(&*nodes.here);
    let weak = Arc::downgrade(&nodes.there);
    nodes.there.subscribe(Arc::new(move |hint| {
        if let (Hint::Removed { seqs, .. }, Some(bus)) = (hint, weak.upgrade())
            && seqs == [Seq(1)]
        {
            bus.publish(Hint::Room { room: "r".into(), event: "heard".into() });
        }
    }));
    nodes.there.follow(TOPIC);
    nodes.here.follow(Topic::Room("r".into()));
    let answered = || heard.all().iter().any(|hint| matches!(hint, Hint::Room { .. }));
    say_until(&*nodes.here, gone(1), answered).await;
}

/// What a node says itself it hears at once, and not again when it comes round.
async fn ones_own_hints_come_at_once_and_once(nodes: Nodes) {
    let heard = Heard::on(&*nodes.here);
    let there = Heard::on(&*nodes.there);
    for topic in [TOPIC, Topic::Room("r".into())] {
        nodes.here.follow(topic.clone());
        nodes.there.follow(topic);
    }
    let hints = [
        gone(1),
        Hint::Room { room: "r".into(), event: "typing".into() },
        Hint::Control(Control::Changed { id: 5 }),
    ];
    // What came round of the first has come when the last is heard elsewhere.
    for hint in hints.into_iter().chain([Hint::Control(Control::Changed { id: 6 })]) {
        nodes.here.publish(hint);
    }
    let mine = |heard: &Heard| -> Vec<Hint> {
        heard.all().into_iter().filter(|hint| !matches!(hint, Hint::Missed(_))).collect()
    };
    assert_eq!(mine(&heard).len(), 4, "at once: {:?}", heard.all());
    let last = |hint: &Hint| matches!(hint, Hint::Control(Control::Changed { id: 7 }));
    let again = Hint::Control(Control::Changed { id: 7 });
    say_until(&*nodes.here, again, || there.all().iter().any(last)).await;
    let once = mine(&heard).into_iter().filter(|hint| !last(hint)).count();
    assert_eq!(once, 4, "and once: {:?}", heard.all());
}

/// What nodes say to each other is heard without following it.
async fn nodes_hear_each_other(nodes: Nodes) {
    let heard = Heard::on(&*nodes.there);
    let freed = Hint::Control(Control::Freed { lease: "bot x/y".into() });
    let is_freed =
        |hint: &Hint| matches!(hint, Hint::Control(Control::Freed { lease }) if lease == "bot x/y");
    say_until(&*nodes.here, freed, || heard.all().iter().any(is_freed)).await;
}

macro_rules! on_every_bus {
    ($($test:ident),* $(,)?) => {
        mod local {
            use super::*;

            $(#[tokio::test]
            async fn $test() {
                let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
                super::$test(Nodes { here: bus.clone(), there: bus }).await;
            })*
        }

        mod on_redis {
            use super::*;

            $(#[tokio::test]
            async fn $test() {
                let server = RedisServer::start();
                super::$test(joined(&server.url()).await.into()).await;
            })*
        }

        mod on_a_redis_cluster {
            use super::*;

            $(#[tokio::test]
            async fn $test() {
                let servers = RedisServer::start_cluster(1);
                super::$test(joined(&servers[0].url()).await.into()).await;
            })*
        }
    };
}

on_every_bus!(
    whoever_listens_is_told,
    nothing_is_made_up,
    who_is_told_may_say_something,
    ones_own_hints_come_at_once_and_once,
    nodes_hear_each_other,
);

/// More than a bus has to do; it costs nothing within a process.
#[test]
fn within_a_process_each_hint_comes_once_and_in_order() {
    let bus = LocalBus::default();
    let heard = Heard::on(&bus);
    (1..5).for_each(|seq| bus.publish(gone(seq)));
    assert_eq!(heard.numbers(), [1, 2, 3, 4]);
}
