//! Who is there in a run with faults besides the nodes: tenants with an agent each, who are reached
//! in the web chat, at Telegram and at Discord, and some with a published hermes-agent.

use super::auditor::{Call, Chat, Diary, Verdict, judge, past_the_fence};
use super::stage::{BUSY, SECOND, SOON, binary, bot, dial, discord_bot, lease, setup, telegram, until};
use angelia_testkit::balancer::Balancer;
use angelia_testkit::cluster::Cluster;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::hermes::{Hermes, Relay, Setup, Version};
use angelia_testkit::model::Model;
use angelia_testkit::process::Process;
use angelia_testkit::telegram::FakeTelegram;
use angelia_testkit::webchat::{Person, http_client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

pub(crate) const NODES: usize = 3;
/// How long a published gateway may take to be there, on a busy machine.
const HERMES: Duration = Duration::from_secs(90);
/// How long nothing may arrive when all is well again before the rest is taken for lost.
const SETTLED: Duration = Duration::from_secs(60);

/// What was said in a chat and accepted, so far.
pub(crate) type Said = Arc<Mutex<Vec<String>>>;

/// A gateway that writes everything down, with three chats.
pub(crate) struct Tenant {
    pub(crate) gateway: Credentials,
    pub(crate) room: Room,
    /// At Telegram: the chat is the person's.
    pub(crate) person: i64,
    /// At Discord: a channel, and who writes there.
    pub(crate) channel: String,
    pub(crate) member: String,
    pub(crate) said: [Said; 3],
    log: PathBuf,
    diary: Mutex<Diary>,
    _agent: Process,
}

impl Tenant {
    /// How many messages were said to its gateway, and how many came.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let said = self.said.iter().map(|said| said.lock().len()).sum();
        let mut diary = self.diary.lock();
        diary.read_on(&self.log);
        (said, diary.arrived())
    }
}

/// A room of the web chat, and who is in it.
pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) reader: Person,
}

/// A published gateway with a room.
pub(crate) struct Published {
    pub(crate) room: Room,
    pub(crate) said: Said,
    _hermes: Hermes,
}

/// How many there are.
pub(crate) struct Sizes {
    pub(crate) gateways: usize,
    /// So many of them are published ones.
    pub(crate) published: usize,
    /// The megabytes of PostgreSQL's disk.
    pub(crate) disk: usize,
}

/// Everybody.
pub(crate) struct Scene {
    pub(crate) telegram: FakeTelegram,
    pub(crate) discord: FakeDiscord,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) published: Vec<Published>,
    pub(crate) model: Model,
    pub(crate) balancer: Balancer,
}

impl Scene {
    /// Three nodes, and so many gateways of which some are published ones; with lines of configuration.
    pub(crate) async fn begin(story: &str, lines: &str, sizes: &Sizes) -> (Cluster, Self) {
        let (telegram, folder) = telegram(&format!("{story}-platforms")).await;
        // The providers' own limits, for all nodes together.
        telegram.limits(&json!({ "enabled": true })).await;
        let discord = FakeDiscord::start(&folder.join("discord"), &json!({})).await;
        let lines = format!("{lines}\n{}{}", bot(&telegram, &folder), discord_bot(&discord, &folder));
        let ports = [telegram.url(), discord.url()].map(port_of);
        let setup = setup(story).lines(&lines).proxied().small_disk(sizes.disk);
        let cluster =
            ports.into_iter().fold(setup, angelia_testkit::cluster::Setup::apart).start(NODES).await;
        cluster.until_held(&lease(&telegram), &[0, 1, 2], SOON).await;
        let nodes: Vec<u16> = (0..NODES).map(|node| port_of(&cluster[node].url())).collect();
        let balancer = Balancer::start(&nodes).await;
        let model = Model::start().await;
        let mut scene =
            Self { telegram, discord, tenants: Vec::new(), published: Vec::new(), model, balancer };
        let guild = scene.discord.guild("Harbour").await.id;
        for number in 0..sizes.gateways - sizes.published {
            let tenant = scene.tenant(&cluster, &folder, &guild, number).await;
            scene.tenants.push(tenant);
        }
        for number in 0..sizes.published {
            let gateway = scene.published(&cluster, &folder, number).await;
            scene.published.push(gateway);
        }
        (cluster, scene)
    }

    async fn tenant(&self, cluster: &Cluster, folder: &Path, guild: &str, number: usize) -> Tenant {
        let person = self.telegram.person(&format!("Person {number}")).await;
        let member = self.discord.user(&format!("member-{number}")).await;
        let channel = self.discord.channel(guild, &format!("channel-{number}")).await;
        let name = format!("tenant-{number}");
        let places = [format!("telegram:{person}"), format!("discord:{guild}/{channel}")];
        let (gateway, room) = furnish(cluster, &name, &places, "auto").await;
        let urls: Vec<String> = (0..NODES).map(|node| cluster[node].url()).collect();
        for url in &urls {
            until("a gateway", SECOND + BUSY, async || dial(url, &gateway).await == 101).await;
        }
        let log = folder.join(format!("{name}.jsonl"));
        // Each begins at another node.
        let mut own = urls;
        own.rotate_left(number % NODES);
        let _agent = agent(&gateway, &own, &log);
        let (said, diary) = (Default::default(), Mutex::default());
        Tenant { gateway, room, person, channel, member, said, log, diary, _agent }
    }

    async fn published(&self, cluster: &Cluster, folder: &Path, number: usize) -> Published {
        let name = format!("published-{number}");
        let (gateway, room) = furnish(cluster, &name, &[], "auto").await;
        let Credentials { gateway_id, secret } = gateway;
        let relay = Relay::Pinned { url: self.balancer.url(), gateway_id, secret };
        let setup = Setup::new(Version::V0_19_0, folder.join(&name), &self.model.url(), relay);
        let mut hermes = Hermes::start(setup);
        hermes.wait_connected(HERMES).await;
        Published { room, said: Said::default(), _hermes: hermes }
    }

    /// How many messages were said to gateways that write everything down, and how many came.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let each = self.tenants.iter().map(Tenant::progress);
        each.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// How many answers were reported as sent, so far.
    pub(crate) fn answered(&self) -> usize {
        self.progress();
        self.tenants.iter().map(|tenant| tenant.diary.lock().sent.len()).sum()
    }

    pub(crate) fn diaries(&self) -> BTreeMap<String, Diary> {
        self.progress();
        let diary = |tenant: &Tenant| (tenant.gateway.gateway_id.clone(), tenant.diary.lock().clone());
        self.tenants.iter().map(diary).collect()
    }

    /// Every chat, with what was said in it and what stands there.
    pub(crate) async fn chats(&self) -> BTreeMap<String, Chat> {
        let own = |texts: Vec<String>| texts.into_iter().filter(|text| text.starts_with("re:")).collect();
        let mut chats = BTreeMap::new();
        for Tenant { gateway, room, person, channel, said, .. } in &self.tenants {
            let at_discord = self.discord.answers(channel).await.into_iter().map(|it| it.content).collect();
            let shown = [
                (format!("web-{}", room.name), own(room.reader.answers())),
                (person.to_string(), own(self.telegram.bot_texts(*person).await)),
                (channel.clone(), own(at_discord)),
            ];
            for ((id, answers), said) in shown.into_iter().zip(said) {
                let chat =
                    Chat { gateway: gateway.gateway_id.clone(), accepted: said.lock().clone(), answers };
                chats.insert(id, chat);
            }
        }
        chats
    }

    /// What was written at the providers, by bot: whoever has the bot does that. Looks for updates are
    /// left out: what came of one that was too late is refused by the store.
    pub(crate) async fn calls(&self) -> [(&'static str, Vec<Call>); 2] {
        let telegram = self.telegram.log().await;
        let discord = self.discord.requests(0).await;
        let posts = discord.into_iter().filter(|it| it.method == "POST" && it.path.ends_with("/messages"));
        [
            ("Telegram", telegram.iter().filter(|it| it["method"] != "getUpdates").map(call).collect()),
            ("Discord", posts.map(|it| Call { at: it.at, node: it.from }).collect()),
        ]
    }

    /// Waits until everything has arrived and no more answers come.
    pub(crate) async fn settle(&self) {
        let began = Instant::now();
        let (mut last, mut moved) = (self.progress().1, began);
        let is_known = || {
            let texts = self.model.texts().join("\n");
            let known = |it: &Published| it.said.lock().iter().all(|text| texts.contains(text));
            self.published.iter().all(known)
        };
        while moved.elapsed() < SETTLED {
            let (said, arrived) = self.progress();
            if said == arrived && is_known() {
                break;
            }
            if arrived != last {
                (last, moved) = (arrived, Instant::now());
            }
            sleep(Duration::from_millis(200)).await;
        }
        let (said, arrived) = self.progress();
        println!("cluster: {arrived} of {said} are there {} ms after it", began.elapsed().as_millis());
        let (began, mut last) = (Instant::now(), self.answered());
        while began.elapsed() < SETTLED {
            // Fixed pause: answers that go on come at least every second to each chat.
            sleep(Duration::from_secs(3)).await;
            let now = self.answered();
            if now == last {
                return;
            }
            last = now;
        }
    }

    /// What the auditor says, with what providers and models saw.
    pub(crate) async fn verdict(&self) -> Verdict {
        let mut verdict = judge(&self.chats().await, &self.diaries());
        for (bot, calls) in self.calls().await {
            verdict.faults.extend(past_the_fence(bot, &calls));
        }
        verdict.faults.extend(self.published.iter().flat_map(|it| heard(&self.model, it)));
        let calls = self.telegram.log().await;
        let refused = |status: u64| calls.iter().filter(|call| call["status"] == status).count();
        let limited = self.discord.count("/rest/limited").await;
        println!(
            "cluster: {} lines to published gateways; Telegram refused {} as too many, {} as a second poller; \
             Discord refused {limited} as too many, with {} identifies and {} resumes",
            self.published.iter().map(|it| it.said.lock().len()).sum::<usize>(),
            refused(429),
            refused(409),
            self.discord.count("/gateway/identifies").await,
            self.discord.count("/gateway/resumes").await,
        );
        for (bot, limited) in [("Telegram", refused(429)), ("Discord", usize::try_from(limited).unwrap())] {
            if limited > 0 {
                verdict.faults.push(format!("a limit of {bot}'s was exceeded by all nodes together"));
            }
        }
        self.telegram.assert_no_violations().await;
        verdict
    }
}

fn call(logged: &Value) -> Call {
    Call { at: logged["at"].as_f64().unwrap(), node: logged["from"].as_str().unwrap().to_owned() }
}

fn port_of(url: &str) -> u16 {
    url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap()
}

/// A tenant with a gateway, a room and other places, made by any node, and what becomes of messages
/// while the agent is busy.
pub(crate) async fn furnish(
    cluster: &Cluster,
    name: &str,
    places: &[String],
    while_busy: &str,
) -> (Credentials, Room) {
    let (client, node): (_, &Connector) = (http_client(), &cluster[0]);
    let make = async |path: &str, body: Value| node.admin(&client, path, &body).await;
    make("tenants", json!({ "tenant": name })).await;
    let room = format!("webchat:{name}");
    for place in places.iter().chain([&room]) {
        let (allow, free) = (["any"], true);
        let route =
            json!({ "tenant": name, "place": place, "allow": allow, "free": free, "while_busy": while_busy });
        make("routes", route).await;
    }
    let invited = make("webchat/invites", json!({ "room": name, "user": "ann" })).await;
    let made = make("gateways", json!({ "tenant": name, "gateway_id": format!("gw-{name}") })).await;
    let text = |value: &Value, field: &str| value[field].as_str().unwrap().to_owned();
    let key = text(&invited, "key");
    let reader = Person::enter(&node.url(), name, "ann", &key);
    let gateway = Credentials { gateway_id: text(&made, "gateway_id"), secret: text(&made, "secret") };
    (gateway, Room { name: name.to_owned(), key, reader })
}

fn agent(gateway: &Credentials, urls: &[String], log: &Path) -> Process {
    let program = binary().with_file_name("log-agent");
    assert!(program.exists(), "{} is missing: run cargo build --workspace --bins", program.display());
    let mut command = Command::new(program);
    for url in urls {
        command.args(["--url", url]);
    }
    command.args(["--id", &gateway.gateway_id, "--secret", &gateway.secret, "--reply-when-asked", "--log"]);
    command.arg(log);
    Process::spawn("log-agent", command, log.with_extension("err"))
}

/// What is wrong with what a published gateway's model heard: everything has to come, in order, and
/// nobody else's.
fn heard(model: &Model, published: &Published) -> Vec<String> {
    let (said, heard) = (published.said.lock(), model.texts().join("\n"));
    let texts: Vec<&str> = said.iter().map(String::as_str).collect();
    let first: Vec<Option<usize>> = texts.iter().map(|text| heard.find(text)).collect();
    let mut faults: Vec<String> = Vec::new();
    let lost = texts.iter().zip(&first).filter(|(_, at)| at.is_none());
    faults.extend(lost.map(|(text, _)| format!("{text} was lost on the way to a published gateway")));
    if !first.is_sorted() {
        faults.push("lines are out of order at a published gateway".into());
    }
    let own = |text: &str| !text.starts_with("echo:") || texts.iter().any(|said| text.contains(said));
    let foreign = published.room.reader.answers().into_iter().filter(|text| !own(text));
    faults.extend(foreign.map(|text| format!("{text:?} stands in {}", published.room.name)));
    faults
}
