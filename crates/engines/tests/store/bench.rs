//! Group commit has to share its fsync; this would be slow otherwise.

use super::open::{Opened, entry};
use angelia_core::clock;
use angelia_core::store::Settlement;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_producers_share_commits() {
    const PRODUCERS: usize = 64;
    const EACH: usize = 40;
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let began = clock::mono();
    let mut tasks = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        let store = opened.store.clone();
        tasks.spawn(async move {
            for n in 0..EACH {
                let appended = store.append(entry(a, &format!("{producer}-{n}"))).await.unwrap();
                let angelia_core::store::Appended::New(seq) = appended else { panic!("new") };
                store.settle(a, vec![Settlement { seq, by: None, pushed_at: None }]).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let took = clock::mono().since(began);
    println!("{} durable appends and settlements in {took:?}", PRODUCERS * EACH);
    assert_eq!(opened.store.usage(a).entries, 0);
}
