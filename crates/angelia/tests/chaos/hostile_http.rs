//! Two hundred thousand requests of people who mean no good.

use crate::dice::Dice;
use crate::raw_http::RawHttp;
use crate::room::Room;
use crate::server::{Credentials, Server};
use crate::stage::{alone, report};
use angelia_contract::token;
use angelia_core::clock;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

const TEST: &str = "hostile_http";
/// Half of them have hostile bodies, the others hostile heads and tokens.
const REQUESTS: usize = 210_000;
const CONNECTIONS: usize = 8;
const PIPELINED: usize = 25;
/// What all of it together may leave behind in the server.
const MAX_GROWTH_KIB: u64 = 48 * 1024;
const SOON: Duration = Duration::from_secs(30);

/// Statuses by how often they came; 0 is a connection that was ended.
type Statuses = BTreeMap<u16, usize>;

/// Hostile heads, tokens and bodies: each gets a refusal, none gets more, and
/// the server stays well.
#[test]
fn two_hundred_thousand_hostile_requests() {
    alone(async {
        let mut dice = Dice::roll_for(TEST);
        let began = Instant::now();
        let server = Server::start(TEST).await;
        let gateway = server.gateway("default", "gw-real").await;
        let room = Room::enter(&server, "den", "gw-real").await;
        let forge = Forge { key: room.key().to_owned(), gateway };
        let before = server.rss_kib();
        let mut attackers = JoinSet::new();
        for _ in 0..CONNECTIONS {
            attackers.spawn(attack(server.address(), forge.clone(), dice.fork()));
        }
        let mut statuses = Statuses::new();
        for counted in attackers.join_all().await {
            for (status, count) in counted {
                *statuses.entry(status).or_default() += count;
            }
        }
        assert_eq!(server.probe("/livez").await, Some(200));
        assert_eq!(server.probe("/readyz").await, Some(200));
        room.post("after", "still there?").await;
        let growth = server.rss_kib().saturating_sub(before);
        let total: usize = statuses.values().sum();
        report(
            TEST,
            &format!(
                "{total} requests, statuses {statuses:?}, memory +{growth} KiB; {:.1?}",
                began.elapsed()
            ),
        );
        assert!(total >= REQUESTS);
        // The front door shows the way to the page.
        assert!(statuses.keys().all(|status| matches!(status, 0 | 200 | 307 | 400..=499)), "{statuses:?}");
        assert!(room.answers().await.is_empty());
        assert!(growth < MAX_GROWTH_KIB, "memory grew by {growth} KiB");
        server.assert_never_panicked();
    });
}

/// Sends its share of the requests, many at a time on one connection.
async fn attack(address: (&'static str, u16), forge: Forge, mut dice: Dice) -> Statuses {
    let mut statuses = Statuses::new();
    let mut sent = 0;
    let mut connection = RawHttp::connect(address).await;
    while sent < REQUESTS / CONNECTIONS {
        // One request in forty is no HTTP at all; the connection ends with it.
        let (bytes, count) = if dice.one_in(40) {
            (forge.broken(&mut dice), 1)
        } else {
            ((0..PIPELINED).flat_map(|_| forge.request(&mut dice)).collect(), PIPELINED)
        };
        sent += count;
        let mut alive = connection.write(&bytes).await;
        for _ in 0..count {
            let status = if alive {
                timeout(SOON, connection.status()).await.expect("the server answers or hangs up")
            } else {
                None
            };
            alive = status.is_some();
            *statuses.entry(status.unwrap_or(0)).or_default() += 1;
        }
        // What is no HTTP gets one answer at most, and then the line is dead.
        if !alive || count == 1 {
            connection = RawHttp::connect(address).await;
        }
    }
    statuses
}

/// Makes requests that look right in most respects.
#[derive(Clone)]
struct Forge {
    key: String,
    gateway: Credentials,
}

impl Forge {
    /// A request after which the connection can go on.
    fn request(&self, dice: &mut Dice) -> Vec<u8> {
        match dice.within(0, 8) {
            0 => self.upgrade(dice),
            1 => plain("GET", &self.path(dice), &self.odd_headers(dice), b""),
            2 => plain("POST", "/chat/api/rooms/den/messages", &bearer(&garbage(dice)), br#"{"text":"x"}"#),
            3 => plain("DELETE", &self.path(dice), &bearer(&self.key), b""),
            _ => plain("POST", "/chat/api/rooms/den/messages", &bearer(&self.key), &self.body(dice)),
        }
    }

    /// Bodies that the right key does not make right.
    fn body(&self, dice: &mut Dice) -> Vec<u8> {
        let length = usize::try_from(dice.within(0, 300)).unwrap();
        match dice.within(0, 12) {
            0 => dice.bytes(length),
            1 => format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)).into_bytes(),
            2 => format!("{}1{}", "{\"text\":".repeat(2_000), "}".repeat(2_000)).into_bytes(),
            3 => format!("{{\"text\":{}}}", "9".repeat(1 + length * 10)).into_bytes(),
            4 => br#"{"text":"x","author":"root","client_id":"1"}"#.to_vec(),
            5 => br#"{"text":["x"],"client_id":7}"#.to_vec(),
            6 => format!("{{\"text\":\"{}\"}}", "y".repeat(9_000)).into_bytes(),
            7 => format!("{{\"text\":\"x\",\"client_id\":\"{}\"}}", "i".repeat(65 + length)).into_bytes(),
            8 => br#"{"text":"\ud800 lone","client_id":"\udfff"}"#.to_vec(),
            9 => b"{\"text\":\"nul \0 inside\"".to_vec(),
            10 => br#"{"text":" \u2003 ","client_id":"blank"}"#.to_vec(),
            _ => {
                let mut right = br#"{"text":"almost right","client_id":"1","reply_to":""}"#.to_vec();
                let at = usize::try_from(dice.within(0, right.len() as u64)).unwrap();
                // A flip inside a text could make it right: only braces and quotes are hit.
                right.truncate(at);
                right
            }
        }
    }

    /// Dials that must not be let in.
    fn upgrade(&self, dice: &mut Dice) -> Vec<u8> {
        let now = clock::wall().seconds();
        let real = token::mint(&self.gateway.id, &self.gateway.secret, now, 300);
        let token = match dice.within(0, 8) {
            0 => garbage(dice),
            1 => token::mint(&self.gateway.id, "wrong secret", now, 300),
            2 => token::mint(&self.gateway.id, &self.gateway.secret, now - 100_000, 300),
            3 => token::mint(&self.gateway.id, &self.gateway.secret, now, 0),
            4 => token::mint(&self.gateway.id, &self.gateway.secret, now, 10_000_000),
            5 => real[..usize::try_from(dice.within(0, real.len() as u64 - 4)).unwrap()].to_owned(),
            6 => token::mint(&"g".repeat(2_000), &self.gateway.secret, now, 300),
            _ => token::mint("gw-nobody", &self.gateway.secret, now, 300),
        };
        let mut headers = bearer(&token);
        headers.extend_from_slice(
            b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        );
        plain("GET", "/relay", &headers, b"")
    }

    fn path(&self, dice: &mut Dice) -> String {
        let odd = [
            "/",
            "//",
            "/relay/../admin/gateways",
            "/admin/gateways",
            "/metrics",
            "/chat/api/rooms//messages",
            "/chat/api/rooms/%2e%2e%2fden/messages",
            "/chat/api/rooms/%00/messages",
            "/chat/api/rooms/den%ff/messages",
            "/chat/api/rooms/den/messages?after=99999999999999999999",
            "/chat/api/rooms/den/messages?after=-1&after=x",
            "/chat/api/rooms/other/messages",
            "/relay",
            "/relay?x=%",
            "/chat/api/rooms/den/interrupt",
        ];
        if dice.one_in(4) {
            format!("/{}", "a/".repeat(usize::try_from(dice.within(1, 2_000)).unwrap()))
        } else {
            (*dice.pick(&odd)).to_owned()
        }
    }

    fn odd_headers(&self, dice: &mut Dice) -> Vec<u8> {
        match dice.within(0, 5) {
            0 => [b"authorization: Bearer \xff\xfe".as_slice(), self.key.as_bytes(), b"\r\n"].concat(),
            1 => bearer(&"k".repeat(5_000)),
            2 => (0..60).map(|n| format!("x-{n}: {n}\r\n")).collect::<String>().into_bytes(),
            3 => b"upgrade: h2c\r\nexpect: 200-ok\r\nrange: bytes=9-1\r\n".to_vec(),
            _ => b"authorization: Bearer\r\nauthorization: Basic Og==\r\n".to_vec(),
        }
    }

    /// Bytes after which no HTTP connection can go on.
    fn broken(&self, dice: &mut Dice) -> Vec<u8> {
        let noise = usize::try_from(dice.within(20, 400)).unwrap();
        let head = "POST /chat/api/rooms/den/messages HTTP/1.1\r\nhost: localhost\r\n";
        let key = format!("authorization: Bearer {}\r\n", self.key);
        let mut bytes = match dice.within(0, 7) {
            0 => dice.bytes(noise),
            1 => format!("{head}content-length: 5\r\ncontent-length: 7\r\n\r\nhello").into_bytes(),
            2 => format!("{head}x: {}\r\n\r\n", "h".repeat(40_000)).into_bytes(),
            3 => format!("{head}{key}content-length: 200000\r\n\r\n{}", "b".repeat(200_000)).into_bytes(),
            4 => format!("{head}{key}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\nx").into_bytes(),
            5 => format!("{head}{}\r\n", "x-many: 1\r\n".repeat(300)).into_bytes(),
            _ => format!("GET /livez HTTP/9.9\r\n{}", "\r\n".repeat(4)).into_bytes(),
        };
        // Something that ends a head, so that the server need not wait for more.
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes
    }
}

fn plain(method: &str, path: &str, headers: &[u8], body: &[u8]) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    [head.as_bytes(), headers, b"\r\n", body].concat()
}

fn bearer(key: &str) -> Vec<u8> {
    format!("authorization: Bearer {key}\r\n").into_bytes()
}

/// Text that is allowed in a header and means nothing.
fn garbage(dice: &mut Dice) -> String {
    let length = usize::try_from(dice.within(0, 400)).unwrap();
    dice.bytes(length).iter().map(|byte| char::from(b' ' + byte % 95)).collect()
}
