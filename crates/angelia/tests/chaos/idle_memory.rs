//! What an idle gateway costs.

use crate::peer::{PLAIN, Peer};
use crate::server::{Credentials, Server};
use crate::stage::{alone, report};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const TEST: &str = "idle_memory";
const FEW: usize = 1_000;
const MANY: usize = 10_000;
/// Descriptors one process needs: the sockets and a few hundred more.
const DESCRIPTORS: u64 = 10_500;
/// 12 KB, in KiB.
const MAX_KIB_PER_SESSION: f64 = 12_000.0 / 1_024.0;
/// Dials and requests under way at the same time.
const AT_ONCE: usize = 64;
/// Gateways made at the same time: the admin API has fewer places than the public address.
const MAKERS: usize = 16;

/// The slope of the server's memory between 1,000 and 10,000 sockets that
/// finished their handshake.
#[test]
fn ten_thousand_idle_sessions() {
    alone(async {
        raise_descriptor_limit();
        let began = Instant::now();
        let server = Arc::new(Server::start(TEST).await);
        let mut makers = JoinSet::new();
        for lane in 0..MAKERS {
            let server = server.clone();
            makers.spawn(async move {
                let mut made = Vec::new();
                for number in (lane..MANY).step_by(MAKERS) {
                    made.push(server.gateway("default", &format!("gw-{number}")).await);
                }
                made
            });
        }
        let gateways: Vec<Credentials> = makers.join_all().await.into_iter().flatten().collect();
        assert_eq!(gateways.len(), MANY);
        let made_in = began.elapsed();

        let mut idle = JoinSet::new();
        connect(&server, &gateways[..FEW], &mut idle).await;
        let few = settled_rss(&server).await;
        connect(&server, &gateways[FEW..], &mut idle).await;
        let many = settled_rss(&server).await;
        assert_eq!(idle.len(), MANY, "every socket is still open");
        assert!(idle.try_join_next().is_none(), "no socket ended");
        #[expect(clippy::cast_precision_loss)]
        let slope = many.saturating_sub(few) as f64 / (MANY - FEW) as f64;
        report(
            TEST,
            &format!(
                "{slope:.2} KiB per idle session ({few} KiB with {FEW}, {many} KiB with {MANY} sockets; {} build); \
                 gateways made in {made_in:.1?}, all in {:.1?}",
                if cfg!(debug_assertions) { "debug" } else { "release" },
                began.elapsed()
            ),
        );
        assert_eq!(server.probe("/readyz").await, Some(200));
        server.assert_never_panicked();
        assert!(slope <= MAX_KIB_PER_SESSION, "{slope:.2} KiB per idle session");
        idle.abort_all();
    });
}

/// Connects all of them; each stays open in a task that answers pings.
async fn connect(server: &Arc<Server>, gateways: &[Credentials], idle: &mut JoinSet<()>) {
    let mut dials = JoinSet::new();
    for lane in 0..AT_ONCE {
        let mine: Vec<Credentials> = gateways.iter().skip(lane).step_by(AT_ONCE).cloned().collect();
        let server = server.clone();
        dials.spawn(async move {
            let mut peers = Vec::new();
            for credentials in mine {
                peers.push(greet_small(&server, &credentials).await);
            }
            peers
        });
    }
    while let Some(peers) = dials.join_next().await {
        for mut peer in peers.expect("every dial succeeds") {
            idle.spawn(async move { while peer.next_or_end().await.is_some() {} });
        }
    }
}

async fn greet_small(server: &Server, credentials: &Credentials) -> Peer {
    let mut peer = Peer::dial(server, credentials, PLAIN, None).await.expect("the dial succeeds");
    peer.send(&GatewayFrame::Hello(Hello::default())).await;
    let answer = peer.next().await;
    assert!(matches!(answer, ConnectorFrame::Descriptor { .. }), "{answer:?}");
    peer
}

/// The server's memory once it stopped moving.
async fn settled_rss(server: &Server) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut last = server.rss_kib();
    loop {
        // Fixed pause: what did not move in it has settled.
        sleep(Duration::from_millis(500)).await;
        let now = server.rss_kib();
        if now.abs_diff(last) < 64 || Instant::now() > deadline {
            return now;
        }
        last = now;
    }
}

/// Both this process and the server it starts need a descriptor per socket.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < DESCRIPTORS) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        assert!(raised.is_ok(), "the limit of open files cannot be raised: {raised:?}");
    }
    let now = getrlimit(Resource::Nofile).current;
    assert!(now.is_none_or(|now| now >= DESCRIPTORS), "{DESCRIPTORS} open files are needed, {now:?} allowed");
}
