//! The load balancer in front of several nodes, as small as it can be.
//!
//! It asks every node's `/readyz` and gives each new connection to the next one that is ready;
//! what is open stays where it is. For clients that know one address, as published gateways do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::webchat::http_client;

/// Fixed pause: between two looks whether a node is ready.
const EVERY: Duration = Duration::from_millis(500);

/// How long it may take to answer, and to accept a connection.
const ANSWER: Duration = Duration::from_secs(1);

/// A node as the balancer sees it.
#[derive(Debug)]
struct Backend {
    port: u16,
    ready: AtomicBool,
}

/// A running balancer; it ends with everything it carries when it is dropped.
#[derive(Debug)]
pub struct Balancer {
    port: u16,
    tasks: [AbortHandle; 2],
}

impl Balancer {
    /// Starts one in front of these ports. It runs in the test's own runtime.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start(nodes: &[u16]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port for a balancer");
        let port = listener.local_addr().expect("the balancer's address").port();
        let backend = |port: &u16| Backend { port: *port, ready: AtomicBool::new(false) };
        let backends: Arc<[Backend]> = nodes.iter().map(backend).collect();
        let asking = tokio::spawn(ask(Arc::clone(&backends))).abort_handle();
        let accepting = tokio::spawn(accept(listener, backends)).abort_handle();
        Self { port, tasks: [asking, accepting] }
    }

    /// Where everybody goes.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Looks who is ready, for ever.
async fn ask(backends: Arc<[Backend]>) {
    let client = http_client();
    loop {
        let looks = backends.iter().map(|backend| {
            let ask = client.get(format!("http://127.0.0.1:{}/readyz", backend.port)).timeout(ANSWER).send();
            async move {
                let ready = ask.await.is_ok_and(|answer| answer.status().is_success());
                backend.ready.store(ready, Ordering::Relaxed);
            }
        });
        futures_util::future::join_all(looks).await;
        sleep(EVERY).await;
    }
}

async fn accept(listener: TcpListener, backends: Arc<[Backend]>) {
    let turn = Arc::new(AtomicUsize::new(0));
    // Those that are open end with this task.
    let mut open = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while open.try_join_next().is_some() {}
        let (backends, turn) = (Arc::clone(&backends), Arc::clone(&turn));
        open.spawn(async move { drop(carry(client, &backends, &turn).await) });
    }
}

/// Carries a connection to the first node that takes it, beginning with whose turn it is.
async fn carry(mut client: TcpStream, backends: &[Backend], turn: &AtomicUsize) -> io::Result<()> {
    let first = turn.fetch_add(1, Ordering::Relaxed);
    for number in 0..backends.len() {
        let backend = &backends[(first + number) % backends.len()];
        if !backend.ready.load(Ordering::Relaxed) {
            continue;
        }
        if let Ok(Ok(mut node)) = timeout(ANSWER, TcpStream::connect(("127.0.0.1", backend.port))).await {
            client.set_nodelay(true)?;
            node.set_nodelay(true)?;
            tokio::io::copy_bidirectional(&mut client, &mut node).await?;
            return Ok(());
        }
    }
    Ok(())
}
