//! A stand-in for Telegram's Bot API, as light as it can be: it knows one bot, people who write
//! to it, and the few methods that a bot calls that only listens. HTTP by hand, like the rest.

use crate::load::{Pace, WORDS};
use crate::receipts::Receipts;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// The bot.
const BOT: i64 = 4_242_424_242;
/// The person who writes to the first gateway; the others follow.
const FIRST_PERSON: i64 = 1_000;
/// Updates in one answer: Telegram's most.
const PAGE: usize = 100;

/// A running stand-in.
#[derive(Debug)]
pub(crate) struct Telegram {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    receipts: Arc<Receipts>,
    state: Mutex<State>,
    /// People began to write.
    begun: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last update.
    last: i64,
    /// Updates that were handed out, and of which nobody said yet that they came.
    open: VecDeque<(i64, String)>,
    talk: Option<Talk>,
}

/// What people write at the moment.
#[derive(Debug)]
struct Talk {
    pace: Pace,
    begun: Instant,
    until: Instant,
    /// How many messages each of them wrote, ever.
    written: Vec<u64>,
    /// How many there were in this talk.
    count: u64,
}

/// What a bot asks for.
#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    offset: i64,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    timeout: u64,
}

impl Telegram {
    pub(crate) async fn start(receipts: Arc<Receipts>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared { receipts, state: Mutex::default(), begun: Notify::new() });
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                tokio::spawn(async move { drop(shared.serve(stream).await) });
            }
        });
        Ok(Self { url, shared })
    }

    /// The lines of a configuration that make a bot of it, whose token is kept in this folder.
    pub(crate) fn configured(&self, folder: &Path) -> io::Result<String> {
        let token = folder.join("telegram-token");
        std::fs::write(&token, format!("{BOT}:{}", "x".repeat(35)))?;
        let (id, url) = (BOT, &self.url);
        Ok(format!(
            "[[bots]]\nplatform = \"telegram\"\nid = \"{id}\"\ntoken = {{ file = {token:?} }}\napi_url = {url:?}\n"
        ))
    }

    /// The place at which somebody writes to the gateway of this number.
    pub(crate) fn place(gateway: usize) -> String {
        format!("telegram:{}", person(gateway))
    }

    /// Has people write for so long, each to their gateway, who wrote so many messages before.
    pub(crate) fn begin(&self, pace: Pace, time: Duration, written: Vec<u64>) -> Instant {
        let begun = Instant::now();
        self.shared.with(|state| {
            state.talk = Some(Talk { pace, begun, until: begun + time, written, count: 0 });
        });
        self.shared.begun.notify_waiters();
        begun
    }

    /// Waits until everything was handed out that people wrote; answers how much that was, and
    /// how much each of them wrote.
    pub(crate) async fn end(&self) -> (u64, Vec<u64>) {
        loop {
            let (until, left) = self.shared.with(|state| match &state.talk {
                Some(talk) => (talk.until, talk.next_due(Instant::now()).is_some()),
                None => (Instant::now(), false),
            });
            if !left && Instant::now() >= until {
                let talk = self.shared.with(|state| state.talk.take());
                return talk.map_or((0, Vec::new()), |talk| (talk.count, talk.written));
            }
            sleep_until((Instant::now() + Duration::from_millis(5)).max(until)).await;
        }
    }
}

fn person(gateway: usize) -> i64 {
    FIRST_PERSON + i64::try_from(gateway).unwrap_or_default()
}

impl Talk {
    /// When the next message is due; `None` if there is none any more.
    fn next_due(&self, now: Instant) -> Option<Instant> {
        let due = match self.pace {
            Pace::FlatOut => now,
            #[expect(clippy::cast_precision_loss, reason = "some thousands")]
            Pace::PerSecond(rate) => self.begun + Duration::from_secs_f64(self.count as f64 / rate),
        };
        (due < self.until).then_some(due)
    }

    /// Who writes next, and which of their messages it is.
    fn write(&mut self) -> (usize, u64) {
        let gateway = usize::try_from(self.count).unwrap_or_default() % self.written.len();
        self.count += 1;
        self.written[gateway] += 1;
        (gateway, self.written[gateway] - 1)
    }
}

impl State {
    /// The next page for whoever has everything before `offset`; if there is nothing, when there
    /// will be something.
    fn page(&mut self, question: &Question, receipts: &Receipts) -> Result<String, Option<Instant>> {
        let (now, most) = (Instant::now(), question.limit.unwrap_or(PAGE).min(PAGE));
        while self.open.front().is_some_and(|(id, _)| *id < question.offset) {
            self.open.pop_front();
        }
        let mut next = None;
        while let Some(talk) = self.talk.as_mut().filter(|_| self.open.len() < most) {
            next = talk.next_due(now);
            let Some(due) = next.filter(|due| *due <= now) else { break };
            let (gateway, number) = talk.write();
            self.last += 1;
            self.open.push_back((self.last, update(self.last, gateway, number, receipts.stamp(due))));
        }
        if self.open.is_empty() {
            return Err(next);
        }
        let page: Vec<&str> = self.open.iter().take(most).map(|(_, update)| update.as_str()).collect();
        Ok(page.join(","))
    }
}

fn update(id: i64, gateway: usize, number: u64, stamp: u128) -> String {
    let who = json!({ "id": person(gateway), "type": "private", "first_name": "Ann" });
    let from = json!({ "id": person(gateway), "is_bot": false, "first_name": "Ann" });
    let text = format!("{number} {stamp} {WORDS}");
    let message = json!({ "message_id": id, "date": 1, "chat": who, "from": from, "text": text });
    json!({ "update_id": id, "message": message }).to_string()
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().expect("nobody panics with the lock"))
    }

    /// Serves one connection until it ends.
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some((method, body)) = asked(&mut stream).await? {
            let result = self.answer(&method, &body).await;
            let answer = format!("{{\"ok\":true,\"result\":{result}}}");
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            stream.get_mut().write_all(&[head.as_bytes(), answer.as_bytes()].concat()).await?;
        }
        Ok(())
    }

    async fn answer(&self, method: &str, body: &[u8]) -> String {
        match method {
            "getMe" => {
                json!({ "id": BOT, "is_bot": true, "first_name": "Bot", "username": "bench_bot" }).to_string()
            }
            "getUpdates" => match serde_json::from_slice::<Question>(body) {
                Ok(question) => format!("[{}]", self.updates(&question).await),
                Err(_) => "[]".to_owned(),
            },
            _ => "true".to_owned(),
        }
    }

    /// Updates, as soon as there are some; none if nobody writes in time.
    async fn updates(&self, question: &Question) -> String {
        let within = Duration::from_secs(question.timeout);
        let page = async {
            loop {
                let begun = self.begun.notified();
                match self.with(|state| state.page(question, &self.receipts)) {
                    Ok(page) => return page,
                    Err(Some(due)) => sleep_until(due).await,
                    Err(None) => begun.await,
                }
            }
        };
        timeout(within, page).await.unwrap_or_default()
    }
}

/// The method and the body of the next request; `None` if there is none.
async fn asked(stream: &mut BufReader<TcpStream>) -> io::Result<Option<(String, Vec<u8>)>> {
    let (mut line, mut method, mut length) = (String::new(), None, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let said = line.trim_end();
        match (&method, said.split_once(':')) {
            (None, _) => {
                let path = said.split(' ').nth(1).unwrap_or_default();
                method = Some(path.rsplit('/').next().unwrap_or_default().to_owned());
            }
            (Some(_), Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            (Some(_), _) if said.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some((method.unwrap_or_default(), body)))
}
