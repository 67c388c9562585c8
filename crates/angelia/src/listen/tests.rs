use super::*;
use angelia_core::connections::{Doing, RELAY_WRITE_PATIENCE, WRITE_PATIENCE, time_for};
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// What the kernel would hold of an answer that nobody reads.
const KERNEL: usize = 4_096;
const SOON: Duration = Duration::from_secs(10);
const ASK: &[u8] = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn visit(router: Router, place: &table::Slot, ahead: &Arc<Table>) -> Visit {
    Visit {
        router,
        connection: place.connection().clone(),
        ahead: ahead.ahead.clone(),
        hosts: Arc::new(Hosts::named(["relay.example.org"])),
        misdirected: Arc::new(Misdirected::new("add it to server.hosts\n", "add it", || ())),
        here: IpAddr::from([192, 0, 2, 1]),
        peer: None,
    }
}

/// A connection as the listener makes them, and the peer's end of it.
async fn connect(table: &Arc<Table>, router: Router, peer: Option<&str>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(KERNEL);
    let place = table.place(None).await.unwrap();
    let visit = Visit { peer: peer.map(|peer| peer.parse().unwrap()), ..visit(router, &place, table) };
    let connection = visit.connection.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = speak(Stream::new(near, place), visit) => {}
            () = connection.ended() => {}
        }
    });
    far
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Everything said until the connection ends.
async fn hear(far: &mut DuplexStream) -> String {
    let mut said = String::new();
    timeout(SOON, far.read_to_string(&mut said)).await.expect("it ends").unwrap();
    said
}

async fn whoami(request: Request) -> String {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or("unknown".into(), |ConnectInfo(peer)| peer.to_string())
}

#[tokio::test]
async fn handlers_are_told_the_address_where_it_is_known() {
    for (peer, told) in [(Some("192.0.2.7:4000"), "192.0.2.7:4000"), (None, "unknown")] {
        let mut far = connect(&Table::new(9, 9), Router::new().route("/", get(whoami)), peer).await;
        far.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let answer = hear(&mut far).await;
        assert!(answer.ends_with(&format!("\r\n\r\n{told}")), "{answer}");
    }
}

#[tokio::test]
async fn names_of_others_are_misdirected() {
    let router = || Router::new().fallback(|| async { "here\n" });
    let status = async |head: &str| {
        let mut far = connect(&Table::new(9, 9), router(), None).await;
        far.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
        let answer = hear(&mut far).await;
        let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(status == 421, answer.ends_with("add it to server.hosts\n"), "{answer}");
        status
    };
    assert_eq!(status("GET /chat HTTP/1.1\r\nHost: relay.example.org:99\r\n").await, 200);
    assert_eq!(status("GET /chat HTTP/1.1\r\nHost: 192.0.2.1\r\n").await, 200);
    assert_eq!(status("GET /chat HTTP/1.1\r\nHost: evil.example\r\n").await, 421);
    assert_eq!(status("GET /chat HTTP/1.1\r\n").await, 421);
    assert_eq!(status("GET /chat HTTP/1.0\r\n").await, 421);
    assert_eq!(status("GET /chat HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n").await, 421);
    assert_eq!(status("GET http://relay.example.org/chat HTTP/1.1\r\nHost: localhost\r\n").await, 200);
    assert_eq!(status("GET http://evil.example/chat HTTP/1.1\r\nHost: localhost\r\n").await, 421);
    assert_eq!(status("GET /livez HTTP/1.1\r\nHost: 10.1.2.3:8787\r\n").await, 200);
    assert_eq!(status("GET /readyz HTTP/1.0\r\n").await, 200);
    assert_eq!(status("GET /livez/ HTTP/1.1\r\nHost: evil.example\r\n").await, 421);
}

/// The library sees to it; that it goes on doing so is held here, for answers that
/// need no flush and for requests that are answered before their bodies are read.
#[tokio::test]
async fn what_is_sent_ahead_waits_until_the_answers_are_taken() {
    for ask in [ASK, b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody"] {
        send_ahead(ask).await;
    }
}

async fn send_ahead(ask: &'static [u8]) {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = begun.clone();
    let router = Router::new().fallback(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async { StatusCode::NO_CONTENT }
    });
    let table = Table::new(9, 9);
    let (mut answers, mut asks) = tokio::io::split(connect(&table, router, None).await);
    let asking = tokio::spawn(async move {
        for _ in 0..20_000 {
            asks.write_all(ask).await.unwrap();
        }
        asks
    });
    let count = || begun.load(Ordering::Relaxed);
    until("it gets stuck", || table.standings().iter().any(|it| it.stuck_since.is_some())).await;
    let stuck_at = count();
    sleep(Duration::from_millis(200)).await;
    assert!(!asking.is_finished(), "no more is taken than is answered");
    assert!(count() <= stuck_at + 1, "{} requests ahead of the answers", count() - stuck_at);
    assert!(count() < 2 * KERNEL / 40, "{} were begun", count());

    let mut taken = vec![0; 64 * 1024];
    until_read(&mut answers, &mut taken, || asking.is_finished() && count() == 20_000).await;
}

async fn until_read(
    answers: &mut (impl AsyncRead + Unpin),
    taken: &mut [u8],
    mut is_so: impl FnMut() -> bool,
) {
    let reading = async {
        while !is_so() {
            let _ = timeout(Duration::from_millis(50), answers.read(taken)).await;
        }
    };
    timeout(SOON * 3, reading).await.expect("everything is answered once it is read");
}

#[tokio::test]
async fn who_does_not_read_is_given_up() {
    let router = Router::new().fallback(|| async { "x".repeat(10 * KERNEL) });
    let table = Table::new(9, 9);
    let mut far = connect(&table, router, None).await;
    far.write_all(ASK).await.unwrap();
    until("it gets stuck", || table.standings().iter().any(|it| it.stuck_since.is_some())).await;
    table.give_up(clock::mono() + WRITE_PATIENCE / 2);
    assert_eq!(table.standings().len(), 1);
    table.give_up(clock::mono() + WRITE_PATIENCE);
    until("its place is free", || table.open() == 0).await;
    assert!(hear(&mut far).await.len() <= KERNEL);
}

#[tokio::test]
async fn who_reads_again_is_not_given_up() {
    let router = Router::new().fallback(|| async { "x".repeat(10 * KERNEL) });
    let table = Table::new(9, 9);
    let mut far = connect(&table, router, None).await;
    let stuck = || table.standings().iter().any(|it| it.stuck_since.is_some());
    far.write_all(ASK).await.unwrap();
    until("it gets stuck", stuck).await;
    // All of the answer, and its head.
    timeout(SOON, far.read_exact(&mut [0; 10 * KERNEL])).await.expect("it goes on").unwrap();
    until("it is not stuck any more", || !stuck()).await;
    table.give_up(clock::mono() + WRITE_PATIENCE);
    assert_eq!(table.standings().len(), 1);
}

/// What is read earns time for the rest, and only answers that have an end are waited for like this.
#[tokio::test]
async fn an_answer_that_has_an_end_has_to_get_there() {
    const SIZE: usize = 50 * KERNEL;
    let endless = || {
        let pieces =
            futures_util::stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; KERNEL])));
        Body::from_stream(pieces)
    };
    let whole = move || std::future::ready(([("content-length", SIZE.to_string())], endless()));
    let router = Router::new().route("/x", get(whole)).fallback(move || std::future::ready(endless()));
    let table = Table::new(9, 9);
    let due = || table.standings().first().and_then(|standing| standing.due);
    let mut far = connect(&table, router.clone(), None).await;
    let asked = clock::mono();
    far.write_all(ASK).await.unwrap();
    until("it has begun", || due().is_some()).await;
    let first = due().unwrap();
    assert!(first >= asked + time_for(0) && first < clock::mono() + time_for(SIZE as u64 / 2));
    timeout(SOON, far.read_exact(&mut [0; SIZE / 2])).await.expect("it goes on").unwrap();
    until("there is more time", || due() > Some(first)).await;
    timeout(SOON, far.read_exact(&mut [0; SIZE / 2])).await.expect("it goes on").unwrap();
    until("nothing is due any more", || due().is_none()).await;
    drop(far);
    until("it is gone", || table.open() == 0).await;
    let mut far = connect(&table, router, None).await;
    far.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    timeout(SOON, far.read_exact(&mut [0; SIZE])).await.expect("it goes on").unwrap();
    assert_eq!(due(), None);
}

/// Nobody has to tell it to look: the listener does so by itself. Its clock is ahead, so that
/// it has a second of patience left.
#[tokio::test]
async fn a_listener_hangs_up_on_who_does_not_read() {
    let listener = open("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (writing, mut is_writing) = mpsc::channel::<()>(1);
    let writing = Arc::new(parking_lot::Mutex::new(Some(writing)));
    let endless = move || {
        let writing = writing.lock().take();
        let piece = move || {
            let _ = &writing;
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 64 * 1024]))
        };
        std::future::ready(Body::from_stream(futures_util::stream::repeat_with(piece)))
    };
    let router = Router::new().fallback(endless);
    let (hosts, misdirected) = (Hosts::loopback(), Misdirected::new("elsewhere\n", "elsewhere", || ()));
    let (certificate, behind_proxy, places, per_address) = (None, false, 9, 9);
    let door = Door { router, certificate, hosts, misdirected, behind_proxy, places, per_address };
    let ahead = || clock::mono() + (WRITE_PATIENCE - Duration::from_secs(1));
    tokio::spawn(serve_by(listener, door, ahead));
    let mut far = TcpStream::connect(address).await.unwrap();
    far.write_all(ASK).await.unwrap();
    let ended = timeout(SOON, is_writing.recv()).await.expect("the answer has ended");
    assert_eq!(ended, None);
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(1..) = timeout(SOON, far.read(&mut buffer)).await.expect("it has ended") {}
}

#[test]
fn what_was_there_before_the_answer_is_ahead_of_it() {
    let connection = connection::Connection::new(clock::mono());
    let cx = &Context::from_waker(Waker::noop());
    let reads = || assert!(connection.on_read(Poll::Ready(Ok(9)), cx).is_ready());
    let writes = || assert!(connection.on_write(Poll::Ready(Ok(9)), cx).is_ready());
    reads();
    assert!(!connection.asks(), "the first one");
    writes();
    assert!(connection.asks(), "nothing was read since the answer");
    writes();
    reads();
    assert!(!connection.asks(), "it came after the answer");
}

/// Whichever connection they are on, and however many threads there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_sent_ahead_is_begun_one_after_the_other() {
    let (running, most, done) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (now, high, over) = (running.clone(), most.clone(), done.clone());
    let ahead = get(move || {
        high.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        // A request that keeps a thread busy, as those do that cost something.
        std::thread::sleep(Duration::from_millis(2));
        now.fetch_sub(1, Ordering::Relaxed);
        over.fetch_add(1, Ordering::Relaxed);
        async { StatusCode::NO_CONTENT }
    });
    let router = Router::new().route("/ahead", ahead).fallback(|| async { StatusCode::NO_CONTENT });
    let table = Table::new(99, 99);
    let both = [ASK, b"GET /ahead HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
    let mut open = Vec::new();
    for _ in 0..30 {
        let mut far = connect(&table, router.clone(), None).await;
        far.write_all(&both).await.unwrap();
        open.push(far);
    }
    until("all are answered", || done.load(Ordering::Relaxed) == open.len()).await;
    assert_eq!(most.load(Ordering::Relaxed), 1, "at the same time");
}

/// An upgrade as relay sockets make it: the socket is held by somebody else.
async fn upgrade(held: Arc<Mutex<Option<hyper::upgrade::Upgraded>>>, request: Request) -> Response {
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move { *held.lock().await = Some(upgrade.await.unwrap()) });
    let headers = [("connection", "upgrade"), ("upgrade", "websocket")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

type Mutex<T> = tokio::sync::Mutex<T>;

#[tokio::test]
async fn a_relay_socket_holds_its_place_and_gets_more_patience() {
    let held = Arc::new(Mutex::new(None));
    let router = Router::new().fallback({
        let held = held.clone();
        any(move |request| upgrade(held, request))
    });
    let table = Table::new(1, 9);
    let mut far = connect(&table, router, None).await;
    far.write_all(
        b"GET /relay HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    )
    .await
    .unwrap();
    let socket = async {
        loop {
            if let Some(socket) = held.lock().await.take() {
                return socket;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    let mut socket = TokioIo::new(timeout(SOON, socket).await.expect("an upgrade"));
    assert_eq!(table.standings()[0].doing, Doing::Relay);
    assert!(timeout(Duration::from_millis(100), table.place(None)).await.is_err(), "the place is taken");

    let writing = tokio::spawn(async move { socket.write_all(&[7; 9 * KERNEL]).await });
    until("it gets stuck", || table.standings().iter().any(|it| it.stuck_since.is_some())).await;
    table.give_up(clock::mono() + RELAY_WRITE_PATIENCE.mul_f32(0.9));
    assert_eq!(table.standings().len(), 1);
    table.give_up(clock::mono() + RELAY_WRITE_PATIENCE);
    let failed = timeout(SOON, writing).await.expect("the writer is told").unwrap().unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::TimedOut);
    until("its place is free", || table.open() == 0).await;
    drop(far);
}

#[tokio::test]
async fn what_a_connection_does_is_known() {
    let router = Router::new()
        .route("/take", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/slow", get(std::future::pending::<()>));
    let table = Table::new(9, 9);
    let doing = || table.standings().first().map(|standing| standing.doing);
    let mut far = connect(&table, router, None).await;
    assert_eq!(doing(), Some(Doing::Asking), "nothing was asked yet");
    far.write_all(b"POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf").await.unwrap();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(doing(), Some(Doing::Asking), "a body is incomplete");
    far.write_all(b"whole").await.unwrap();
    until("it has its answer", || doing() == Some(Doing::Quiet)).await;
    far.write_all(b"GET /slow HT").await.unwrap();
    until("a head is incomplete", || doing() == Some(Doing::Asking)).await;
    far.write_all(b"TP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    until("it is being answered", || doing() == Some(Doing::Answering)).await;
    drop(far);
    until("it is gone", || table.open() == 0).await;
}

#[tokio::test]
async fn who_does_not_shake_hands_loses_its_place_too() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = open("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (near, _) = listener.accept().await.unwrap();
    let table = Table::new(1, 9);
    let place = table.place(None).await.unwrap();
    let visit = visit(Router::new(), &place, &table);
    tokio::spawn(connection(Stream::new(near, place), Some(Arc::new(config).into()), visit));

    let second = timeout(SOON, table.place(None)).await.expect("a new connection gets the place");
    assert!(second.is_some());
    assert_eq!(timeout(SOON, silent.read(&mut [0; 9])).await.expect("it is closed").unwrap_or(0), 0);
}
