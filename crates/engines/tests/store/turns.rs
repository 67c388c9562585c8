//! Who writes much waits behind its own writes, and nobody else does.

use super::identity::{by, gateway};
use super::open::{Engine, ME, Opened, entry};
use super::people::line;
use super::vault::{notify, send};
use angelia_core::inbox::{InstanceId, WhenFull};
use angelia_core::store::{IdentityStore, NewAction, NewEntry};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A commit takes about ten of them.
const FLOOD: usize = 60;
const LARGE: usize = 100_000;

/// Writes of one tenant, and of the other.
struct Tenants {
    opened: Opened,
    flooding: InstanceId,
    other: InstanceId,
}

impl Tenants {
    async fn new() -> Self {
        let opened = Opened::new().with_ann_in_lab().await;
        let flooding = opened.instance("a").await;
        opened.store.create_tenant("globex", None, &by()).await.unwrap();
        let other = opened.store.create_gateway(gateway("globex", "b"), &by()).await.unwrap().instance;
        Self { opened, flooding, other }
    }

    /// Has one tenant write much and then the other a little; how much of it is done before that.
    async fn done_before<F: Future<Output = ()> + Send + 'static>(
        &self,
        write: impl Fn(Arc<dyn Engine>, &str, NewEntry) -> F,
    ) -> usize {
        let done = Arc::new(AtomicUsize::new(0));
        for n in 0..FLOOD {
            let large = NewEntry {
                body: vec![b'x'; LARGE].into(),
                when_full: WhenFull::Refuse,
                ..entry(self.flooding, &format!("flood-{n}"))
            };
            let (write, done) = (write(self.opened.store.clone(), "acme", large), done.clone());
            tokio::spawn(async move {
                write.await;
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        // All of them are in line.
        tokio::task::yield_now().await;
        let small = NewEntry { tenant: "globex".into(), ..entry(self.other, "small") };
        write(self.opened.store.clone(), "globex", small).await;
        done.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_message_does_not_wait_for_another_tenant_s() {
    let tenants = Tenants::new().await;
    let before =
        tenants.done_before(|store, _, entry| async move { assert!(store.append(entry).await.is_ok()) });
    let before = before.await;
    assert!(before <= FLOOD / 2, "{before} of {FLOOD} came first");
}

#[tokio::test]
async fn a_post_does_not_wait_for_another_tenant_s() {
    let tenants = Tenants::new().await;
    let before = tenants.done_before(|store, _, entry| async move {
        let line = line(&entry.message_id, None);
        drop(store.post_line(line, Some(entry)).await.unwrap());
    });
    let before = before.await;
    assert!(before <= FLOOD / 2, "{before} of {FLOOD} came first");
}

#[tokio::test]
async fn an_action_does_not_wait_for_another_tenant_s() {
    let tenants = Tenants::new().await;
    let before = tenants.done_before(|store, tenant, entry| {
        let body = entry.body.to_vec();
        let action =
            NewAction { tenant: tenant.into(), answering: None, body, ..send(entry.instance, notify()) };
        async move { drop(store.accept(ME, vec![action]).await.unwrap()) }
    });
    let before = before.await;
    assert!(before <= FLOOD / 2, "{before} of {FLOOD} came first");
}
