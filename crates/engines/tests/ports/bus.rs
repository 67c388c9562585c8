//! What every bus must do. It may lose, double and reorder what it is given; it tells
//! whoever listens, and makes nothing up.

use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::{Bus, Hint};
use angelia_engines::local_bus::LocalBus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a bus may take to bring a hint, and how often it is told again until it did.
const WITHIN: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// Somebody who listens, and what they heard.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<i64>>>);

impl Heard {
    fn on(bus: &dyn Bus) -> Self {
        let heard = Self::default();
        let noted = heard.clone();
        bus.subscribe(Arc::new(move |hint| {
            if let Hint::Removed { seqs, .. } = hint {
                noted.0.lock().unwrap().extend(seqs.iter().map(|seq| seq.0));
            }
        }));
        heard
    }

    fn numbers(&self) -> Vec<i64> {
        self.0.lock().unwrap().clone()
    }
}

fn gone(seq: i64) -> Hint {
    Hint::Removed { instance: InstanceId(1), seqs: vec![Seq(seq)] }
}

/// Everybody hears of what is published after they came, sooner or later, if it is
/// published often enough.
async fn whoever_listens_is_told(bus: &dyn Bus) {
    let all = [Heard::on(bus), Heard::on(bus)];
    let told = async {
        while !all.iter().all(|one| one.numbers().contains(&7)) {
            bus.publish(gone(7));
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::time::timeout(WITHIN, told).await.expect("nobody was told");
}

async fn nothing_is_made_up(bus: &dyn Bus) {
    bus.publish(gone(1));
    let heard = Heard::on(bus);
    (2..50).for_each(|seq| bus.publish(gone(seq)));
    tokio::time::sleep(AGAIN).await;
    assert!(heard.numbers().iter().all(|seq| (1..50).contains(seq)), "{:?}", heard.numbers());
}

/// A listener that publishes must not wait for itself.
async fn who_is_told_may_say_something(bus: Arc<dyn Bus>) {
    let heard = Heard::on(&*bus);
    let weak = Arc::downgrade(&bus);
    bus.subscribe(Arc::new(move |hint| {
        if let (Hint::Removed { seqs, .. }, Some(bus)) = (hint, weak.upgrade())
            && seqs == [Seq(1)]
        {
            bus.publish(gone(2));
        }
    }));
    let told = async {
        while !heard.numbers().contains(&2) {
            bus.publish(gone(1));
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::time::timeout(WITHIN, told).await.expect("it waits for itself");
}

mod local {
    use super::*;

    #[tokio::test]
    async fn whoever_listens_is_told() {
        super::whoever_listens_is_told(&LocalBus::default()).await;
    }

    #[tokio::test]
    async fn nothing_is_made_up() {
        super::nothing_is_made_up(&LocalBus::default()).await;
    }

    #[tokio::test]
    async fn who_is_told_may_say_something() {
        super::who_is_told_may_say_something(Arc::new(LocalBus::default())).await;
    }

    /// More than a bus has to do; it costs nothing here.
    #[test]
    fn each_hint_comes_once_and_in_order() {
        let bus = LocalBus::default();
        let heard = Heard::on(&bus);
        (1..5).for_each(|seq| bus.publish(gone(seq)));
        assert_eq!(heard.numbers(), [1, 2, 3, 4]);
    }
}
