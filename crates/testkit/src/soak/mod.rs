//! Ordinary life at a steady pace for as long as one likes, to see whether a server grows.
//!
//! Three gateways of two tenants, six rooms with two people each. People post, edit, read back
//! and follow their rooms on streams that break and go on with `Last-Event-ID`. Agents answer by
//! messages that they edit while they write. Gateways reconnect, go idle and are replaced. The
//! server is the real binary; it is judged from outside.
//!
//! The pace is the same from the first minute to the last, so whatever grows for ever shows.

mod agent;
mod books;
mod dice;
mod person;
mod report;

pub use report::{MAX_GROWTH, Report};

use crate::connector::{Connector, Credentials};
use crate::gauge::Gauge;
use agent::Agent;
use books::Books;
use person::Person;
use report::Minute;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Stands in front of a post's name in the last form of its answer.
const DONE: &str = "done:";
/// Tenants and their gateways; each gateway has two rooms.
const GATEWAYS: [(&str, &str); 3] = [("acme", "gw-a1"), ("acme", "gw-a2"), ("birch", "gw-b1")];
const ROOMS_EACH: usize = 2;
const PEOPLE_EACH: usize = 2;
const PEOPLE: usize = GATEWAYS.len() * ROOMS_EACH * PEOPLE_EACH;
/// Between two looks at the process.
const LOOK: Duration = Duration::from_secs(5);
const LOOKS_A_MINUTE: u32 = 12;
/// How long the last answers may take when nobody posts any more.
const LAST_ANSWERS: Duration = Duration::from_secs(60);
/// How long the server may take to stop.
const STOP: Duration = Duration::from_secs(15);

/// What to run, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub binary: PathBuf,
    /// A folder for its data; must be empty.
    pub folder: PathBuf,
    /// How long.
    pub minutes: u32,
    /// Posts of all people together, each second.
    pub posts_per_second: f64,
}

/// Told when nobody shall begin anything new.
#[derive(Clone, Debug, Default)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs a plan; every minute is given to `tell` as it is over.
///
/// # Panics
///
/// When the server does not start, or one of the people or gateways meets with something that
/// cannot be.
pub async fn run(plan: &Plan, tell: impl Fn(&str)) -> Report {
    let mut server = Connector::start(&plan.binary, &plan.folder).await;
    let gauge = Gauge::new(server.process().id(), &plan.folder.join("data"));
    let (books, stop) = (Arc::new(Books::default()), Stop::default());
    let mut others = JoinSet::new();
    let mut writers = JoinSet::new();
    for credentials in gateways(&server).await {
        let agent = Agent::new(server.url(), credentials, books.clone(), others.len() as u64);
        others.spawn(agent.serve());
    }
    for person in people(&server, plan, &books).await {
        others.spawn(person.clone().follow());
        writers.spawn(person.write(stop.clone()));
    }

    let mut report = Report::new(plan);
    tell(&report.head());
    let began = Instant::now();
    for number in 1..=plan.minutes {
        let minute_began = began + Duration::from_secs(60) * (number - 1);
        for look in 1..=LOOKS_A_MINUTE {
            sleep_until(minute_began + LOOK * look).await;
            report.looked(gauge.look());
            server.metrics().await;
            check(&mut others);
            check(&mut writers);
        }
        // What operators do beside all that.
        server.command(&["status"]).await;
        let minute = Minute::new(number, gauge.look(), &books);
        tell(&report.row(minute));
    }

    stop.set();
    writers.join_all().await;
    let until = Instant::now() + LAST_ANSWERS;
    while !books.unanswered().is_empty() && Instant::now() < until {
        sleep(Duration::from_millis(100)).await;
        check(&mut others);
    }
    report.lost = books.unanswered();
    report.count(&books);
    others.shutdown().await;
    report.panicked = server.process().log_text().contains("panicked at");
    server.process().terminate(STOP).await;
    report
}

/// Passes on the panic of whoever met with something that cannot be.
fn check(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.try_join_next() {
        assert!(ended.is_ok(), "somebody gave up: {ended:?}");
    }
}

async fn gateways(server: &Connector) -> Vec<Credentials> {
    let mut made = Vec::new();
    for (tenant, gateway) in GATEWAYS {
        made.push(server.gateway(tenant, gateway).await);
    }
    made
}

async fn people(server: &Connector, plan: &Plan, books: &Arc<Books>) -> Vec<Person> {
    #[expect(clippy::cast_precision_loss, reason = "a dozen")]
    let pause = Duration::from_secs_f64(PEOPLE as f64 / plan.posts_per_second);
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        let room_number = number / PEOPLE_EACH;
        let (tenant, gateway) = GATEWAYS[room_number / ROOMS_EACH];
        let (room, user) = (format!("room{room_number}"), format!("person{number}"));
        let invited = server
            .command(&[
                "webchat",
                "invite",
                "--room",
                &room,
                "--user",
                &user,
                "--gateway",
                gateway,
                "--tenant",
                tenant,
            ])
            .await;
        let first = room_number * PEOPLE_EACH;
        people.push(Person {
            number,
            room_readers: (first..first + PEOPLE_EACH).collect(),
            base: format!("{}/chat/api/rooms/{room}", server.url()),
            key: invited["key"].as_str().unwrap_or_else(|| panic!("no key in {invited}")).to_owned(),
            name: format!("{room}-{user}"),
            pause,
            books: books.clone(),
        });
    }
    people
}
