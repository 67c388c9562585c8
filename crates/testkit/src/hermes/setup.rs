//! What a gateway is told before it starts: files in its home, its environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use super::Version;
use crate::clock;
use crate::model::MODEL_NAME;
use crate::process::output;

/// A proxy nobody runs: the discard port of the loopback address.
const CLOSED_PROXY: &str = "http://127.0.0.1:9";

/// When a planted login ends: later than any clock a test may set.
const LOGIN_ENDS: &str = "2099-01-01T00:00:00Z";

/// `hermes gateway enroll` takes 1–3 s, nearly all of it imports.
const ENROLL: Duration = Duration::from_secs(60);

/// What a gateway knows of its connector.
#[derive(Clone, Debug)]
pub enum Relay {
    /// Address, id and secret: they are in its environment.
    Pinned {
        /// The connector's address.
        url: String,
        /// The gateway's id.
        gateway_id: String,
        /// Its secret.
        secret: String,
    },
    /// The address alone: it provisions itself at every start, under the id it
    /// makes of the machine's name.
    Provisioned {
        /// The connector's address.
        url: String,
    },
    /// What `hermes gateway enroll` wrote into its home.
    Enrolled,
}

/// How a gateway proves whose it is.
#[derive(Clone, Debug)]
pub enum Login {
    /// With credentials for a token endpoint, which only 0.19.0 knows.
    Client {
        /// The token endpoint.
        token_url: String,
        /// The client's id.
        id: String,
        /// The client's secret.
        secret: String,
    },
    /// With a token of the maker's portal, as a login leaves it in `auth.json`.
    Portal {
        /// The token.
        access_token: String,
    },
}

/// Everything a gateway is started with; kept for a restart.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which release.
    pub version: Version,
    /// Its home: configuration, sessions, logs.
    pub home: PathBuf,
    /// The model it talks to.
    pub model_url: String,
    /// What it knows of its connector.
    pub relay: Relay,
    /// How it proves whose it is, where it must.
    pub login: Option<Login>,
    /// Platforms and bot ids to say hello for. None: `relay` and an empty id,
    /// as a gateway does that was given only a URL, an id and a secret. 0.17.0
    /// can name only one.
    pub identities: Vec<(&'static str, &'static str)>,
    /// Further lines of `config.yaml`.
    pub config: String,
    /// Further environment variables.
    pub env: Vec<(&'static str, &'static str)>,
    /// How many seconds its clock is off; `None`: it has the machine's.
    pub clock: Option<i64>,
}

impl Setup {
    /// The usual gateway.
    pub fn new(version: Version, home: impl Into<PathBuf>, model_url: &str, relay: Relay) -> Self {
        Self {
            version,
            home: home.into(),
            model_url: model_url.to_owned(),
            relay,
            login: None,
            identities: Vec::new(),
            config: String::new(),
            env: Vec::new(),
            clock: None,
        }
    }

    /// Runs `hermes gateway enroll`; answers whether it succeeded, and its words.
    ///
    /// # Panics
    ///
    /// When the version is not installed, or the command does not end.
    pub async fn enroll(&self, url: &str, token: &str, gateway_id: &str) -> (bool, String) {
        let mut command = self.command(&["gateway", "enroll"]);
        command.args(["--connector-url", url, "--token", token, "--gateway-id", gateway_id]);
        let ended = output("hermes gateway enroll", command, ENROLL).await;
        let words = [ended.stdout, ended.stderr].concat();
        (ended.status.success(), String::from_utf8_lossy(&words).into_owned())
    }

    /// A line of the `.env` file in its home, where enrolling leaves secrets.
    pub fn env_file(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.home.join(".env")).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    }

    /// The gateway's own log.
    pub(super) fn log(&self) -> PathBuf {
        self.home.join("logs/gateway.log")
    }

    /// A command of the package, with everything written that it reads.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let program = self.version.command();
        fs::create_dir_all(&self.home).expect("create the gateway's home");
        fs::write(self.home.join("config.yaml"), self.config_file()).expect("write config.yaml");
        self.plant_login();
        if let Some(seconds) = self.clock {
            clock::set(&self.home, seconds);
        }
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.home).env_clear().envs(self.environment());
        command
    }

    fn config_file(&self) -> String {
        format!(
            "model:\n  provider: custom\n  base_url: {}\n  api_key: {:?}\n  default: {MODEL_NAME}\n  \
             context_length: 131072\n\
             security:\n  tirith_enabled: false\n  allow_lazy_installs: false\n\
             auxiliary:\n  title_generation:\n    enabled: false\n\
             onboarding:\n  profile_build: \"off\"\n\
             platform_toolsets:\n  relay: [todo]\n\
             kanban:\n  dispatch_in_gateway: false\n{}",
            self.model_url,
            // Each gateway has its own, by which the model tells them apart.
            self.home.display().to_string(),
            self.config
        )
    }

    /// A login is a file; without one there must be none.
    fn plant_login(&self) {
        let file = self.home.join("auth.json");
        let Some(Login::Portal { access_token }) = &self.login else {
            let _ = fs::remove_file(file);
            return;
        };
        let nous = json!({ "access_token": access_token, "expires_at": LOGIN_ENDS });
        let store = json!({ "version": 1, "providers": { "nous": nous } });
        fs::write(file, store.to_string()).expect("write auth.json");
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut env = surroundings(&self.home);
        env.extend(self.relay_environment());
        env.extend(self.identity_environment());
        if let Some(Login::Client { token_url, id, secret }) = &self.login {
            env.push(("GATEWAY_RELAY_IDP_TOKEN_URL", token_url.clone()));
            env.push(("GATEWAY_RELAY_IDP_CLIENT_ID", id.clone()));
            env.push(("GATEWAY_RELAY_IDP_CLIENT_SECRET", secret.clone()));
        }
        if self.version == Version::V0_17_0 {
            env.push(("GATEWAY_ALLOW_ALL_USERS", "true".to_owned()));
        }
        env.extend(self.env.iter().map(|(name, value)| (*name, (*value).to_owned())));
        if self.clock.is_some() {
            env.extend(clock::environment(&self.home));
        }
        env
    }

    fn relay_environment(&self) -> Vec<(&'static str, String)> {
        match &self.relay {
            Relay::Pinned { url, gateway_id, secret } => vec![
                ("GATEWAY_RELAY_URL", url.clone()),
                ("GATEWAY_RELAY_ID", gateway_id.clone()),
                ("GATEWAY_RELAY_SECRET", secret.clone()),
            ],
            Relay::Provisioned { url } => vec![("GATEWAY_RELAY_URL", url.clone())],
            Relay::Enrolled => Vec::new(),
        }
    }

    fn identity_environment(&self) -> Vec<(&'static str, String)> {
        match (self.version, self.identities.as_slice()) {
            (_, []) => Vec::new(),
            (Version::V0_17_0, [(platform, bot)]) => vec![
                ("GATEWAY_RELAY_PLATFORM", (*platform).to_owned()),
                ("GATEWAY_RELAY_BOT_ID", (*bot).to_owned()),
            ],
            (Version::V0_17_0, _) => panic!("0.17.0 fronts one platform only"),
            (_, identities) => {
                let platforms: Vec<_> = identities.iter().map(|(platform, _)| *platform).collect();
                let bots =
                    identities.iter().map(|(platform, bot)| ((*platform).to_owned(), json!({"botId": bot})));
                let bots = Value::Object(Map::from_iter(bots));
                vec![
                    ("GATEWAY_RELAY_PLATFORMS", platforms.join(",")),
                    ("GATEWAY_RELAY_BOT_IDS", bots.to_string()),
                ]
            }
        }
    }
}

/// What every gateway gets, whatever it is to do.
pub(super) fn surroundings(home: &Path) -> Vec<(&'static str, String)> {
    let home = home.display().to_string();
    let mut env = vec![
        // The usual path: the gateway looks for git, ssh and the like.
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("HOME", home.clone()),
        ("HERMES_HOME", home),
        ("LANG", "C.UTF-8".to_owned()),
        ("PYTHONUNBUFFERED", "1".to_owned()),
        ("HERMES_DISABLE_LAZY_INSTALLS", "1".to_owned()),
    ];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        env.push((name, CLOSED_PROXY.to_owned()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        env.push((name, "127.0.0.1,localhost".to_owned()));
    }
    env
}
