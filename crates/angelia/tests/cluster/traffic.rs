//! People who write to agents in every way there is, as fast as the nodes take it.

use super::scene::{Published, Said, Scene, Tenant};
use angelia_testkit::webchat::http_client;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between two lines of one person in the web chat, for each four people who write.
const WEB_PACE: Duration = Duration::from_millis(60);
/// Between two volleys at Telegram and Discord.
const VOLLEY_PACE: Duration = Duration::from_millis(250);
/// Lines of one person in a volley, and how many people are at it.
const VOLLEY: usize = 10;
const VOLLEY_PEOPLE: usize = 8;
/// Between two questions of one person; a provider takes an answer a second in a chat.
const QUESTIONS: Duration = Duration::from_secs(4);
/// How often progress is told.
const TOLD: Duration = Duration::from_secs(10);
/// How long a published gateway has for an answer before the next line is said.
const TURN: Duration = Duration::from_secs(20);

/// People who write until it is over.
pub(crate) struct Traffic {
    over: AtomicBool,
    /// Messages under way to one agent beyond which nobody adds to them: the nodes set the pace.
    under_way: usize,
    /// Posts that were not taken and had to be made again.
    pub(crate) refused: AtomicUsize,
}

impl Traffic {
    pub(crate) fn new(under_way: usize) -> Self {
        Self { over: AtomicBool::default(), under_way, refused: AtomicUsize::default() }
    }

    /// Everybody writes until it is over.
    pub(crate) async fn flow(&self, scene: &Scene, urls: &[String]) {
        let pace = WEB_PACE * u32::try_from(scene.tenants.len().div_ceil(4)).unwrap();
        let rooms = scene.tenants.iter().enumerate().map(|(place, it)| self.web(urls, it, place, pace));
        let url = scene.balancer.url();
        let talks = scene.published.iter().enumerate().map(|(place, it)| self.talk(&url, it, place));
        tokio::join!(self.volleys(scene), join_all(rooms), join_all(talks), self.tell(scene));
    }

    /// Nobody writes any more.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// People at Telegram and Discord write in volleys; some of it are questions.
    async fn volleys(&self, scene: &Scene) {
        let (began, mut asked) = (Instant::now(), vec![Duration::ZERO; scene.tenants.len()]);
        for round in 0.. {
            let places = (0..VOLLEY_PEOPLE).map(|turn| (round * VOLLEY_PEOPLE + turn) % scene.tenants.len());
            for place in places {
                let tenant = &scene.tenants[place];
                let (said, arrived) = tenant.progress();
                if said.saturating_sub(arrived) > self.under_way {
                    continue;
                }
                let ask = began.elapsed() >= asked[place];
                if ask {
                    asked[place] = began.elapsed() + QUESTIONS;
                }
                let [telegram, discord] = ["t", "d"].map(|at| format!("{at}{place}-{round}"));
                tokio::join!(
                    at_telegram(scene, tenant, &telegram, ask),
                    at_discord(scene, tenant, &discord, ask)
                );
            }
            if self.is_over() {
                return;
            }
            sleep(VOLLEY_PACE).await;
        }
    }

    /// A person writes into a room, at one node after the other, until it is taken.
    async fn web(&self, urls: &[String], tenant: &Tenant, place: usize, pace: Duration) {
        let (http, mut turn) = (http_client(), place);
        for number in 0.. {
            let text = format!("w{place}-{number}{}", if number % 4 == 0 { "?" } else { "" });
            loop {
                if self.is_over() {
                    return;
                }
                turn += 1;
                let base = &urls[turn % urls.len()];
                if post(&http, base, &tenant.room.name, &tenant.room.key, &text).await {
                    tenant.said[0].lock().push(text);
                    break;
                }
                self.refused.fetch_add(1, Ordering::Relaxed);
                sleep(pace).await;
            }
            sleep(pace).await;
        }
    }

    /// A person talks with a published gateway: a line, its answer, the next line.
    async fn talk(&self, url: &str, Published { room, said, .. }: &Published, place: usize) {
        let http = http_client();
        for number in 0.. {
            let text = format!("h{place}x{number}x");
            while !post(&http, url, &room.name, &room.key, &text).await {
                if self.is_over() {
                    return;
                }
                sleep(WEB_PACE).await;
            }
            said.lock().push(text.clone());
            let asked = Instant::now();
            while asked.elapsed() < TURN && !room.reader.answers().iter().any(|it| it.contains(&text)) {
                if self.is_over() {
                    return;
                }
                sleep(WEB_PACE).await;
            }
        }
    }

    /// Says how far it is.
    async fn tell(&self, scene: &Scene) {
        let (began, mut told) = (Instant::now(), Instant::now());
        while !self.is_over() {
            sleep(VOLLEY_PACE).await;
            if told.elapsed() >= TOLD {
                told = Instant::now();
                let (said, arrived) = scene.progress();
                println!("cluster: after {} s {said} said, {arrived} arrived", began.elapsed().as_secs());
            }
        }
    }
}

/// A volley at Telegram: some lines, and a question.
async fn at_telegram(scene: &Scene, tenant: &Tenant, name: &str, ask: bool) {
    let lines = format!("{name}.{{n}}");
    scene.telegram.say_many(tenant.person, tenant.person, &lines, VOLLEY).await;
    note(&tenant.said[1], name, VOLLEY);
    if ask {
        let question = format!("{name}?");
        scene.telegram.say(tenant.person, tenant.person, &question).await;
        tenant.said[1].lock().push(question);
    }
}

/// The same at Discord.
async fn at_discord(scene: &Scene, tenant: &Tenant, name: &str, ask: bool) {
    let lines = format!("{name}.{{n}}");
    scene.discord.say_many(&tenant.channel, &tenant.member, &lines, VOLLEY).await;
    note(&tenant.said[2], name, VOLLEY);
    if ask {
        let question = format!("{name}?");
        scene.discord.say(&tenant.channel, &tenant.member, &question).await;
        tenant.said[2].lock().push(question);
    }
}

fn note(said: &Said, name: &str, count: usize) {
    said.lock().extend((0..count).map(|line| format!("{name}.{line}")));
}

/// Whether a line was taken, and for an agent.
pub(crate) async fn post(http: &reqwest::Client, base: &str, room: &str, key: &str, text: &str) -> bool {
    let url = format!("{base}/chat/api/rooms/{room}/messages");
    let body = json!({ "text": text, "client_id": text });
    let post = http.post(url).bearer_auth(key).json(&body).timeout(Duration::from_secs(5)).send();
    let Ok(answer) = post.await else { return false };
    let taken = answer.status().is_success();
    taken && answer.json::<Value>().await.is_ok_and(|taken| taken["undelivered"].is_null())
}
