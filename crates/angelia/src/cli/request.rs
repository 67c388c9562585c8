//! Commands that ask a server, running or not, and what a command has to say.

use super::bot::BotCommand;
use super::client::ClientCommand;
use super::gateway::GatewayCommand;
use super::route::RouteCommand;
use super::tenant::TenantCommand;
use super::webchat::WebchatCommand;
use super::{Command, bot, client, cluster, gateway, inbox, key, messages, route, tenant, webchat};
use crate::config::Config;
use crate::files::absolute;
use crate::remote::{Remote, Reply};
use crate::{open, show};
use angelia_connector::admin::types::Nothing;
use angelia_connector::admin::{Call, api};
use angelia_core::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// An answer, for scripts and for people.
#[derive(Debug)]
pub(super) struct Answer {
    value: Value,
    text: String,
}

impl Answer {
    /// What a server answers to a question, and how a person reads it.
    pub(super) async fn of<A: DeserializeOwned>(
        remote: &Remote,
        call: Result<Call<A>>,
        show: impl FnOnce(&A) -> String,
    ) -> Result<Self> {
        Ok(Self::new(remote.call(call?).await?, show))
    }

    /// The server's answer, and how a person reads it; as it came, if it is not understood: it
    /// may have a secret in it that is shown once.
    pub(super) fn new<A>(reply: Reply<A>, show: impl FnOnce(&A) -> String) -> Self {
        let text = match &reply.read {
            Ok(read) => show(read),
            Err(error) => format!("{:#}\n{error}\n", reply.value),
        };
        Self { text, value: reply.value }
    }

    /// What the command found out itself, and how a person reads it.
    pub(super) fn own<A: Serialize>(made: &A, show: impl FnOnce(&A) -> String) -> Result<Self> {
        let value = serde_json::to_value(made).map_err(Error::defect)?;
        Ok(Self { value, text: show(made) })
    }

    pub(super) fn show(&self, as_json: bool) -> Result<()> {
        if as_json { show::text(&format!("{}\n", self.value)) } else { show::text(&self.text) }
    }
}

/// Asks, and shows the answer.
pub(super) async fn ask(config: Config, command: Command, as_json: bool) -> Result<()> {
    // Before anything is opened for it.
    if let Command::Tenant(command) = &command {
        command.check_terminal()?;
    }
    let makes = matches!(
        command,
        Command::Gateway(GatewayCommand::Create { .. })
            | Command::Tenant(TenantCommand::Create { .. })
            | Command::Route(RouteCommand::Add { .. })
            | Command::Webchat(WebchatCommand::Invite { .. })
    );
    let hands_out =
        makes || matches!(command, Command::EnrollToken(_) | Command::Client(ClientCommand::Create { .. }));
    let data_dir = &config.server.data_dir;
    let is_new = !open::has_data(data_dir);
    let remote = match &command {
        // Whoever asks how the server is does not mean one opened for the question.
        Command::Status { .. } | Command::Cluster(_) => Remote::find_running(&config).await?,
        _ => Remote::open(&config, makes).await?,
    };
    let unheard = hands_out && matches!(remote, Remote::Opened { .. });
    ask_of(&remote, Some(&config), command, as_json).await?;
    if unheard {
        tell_unheard(data_dir, is_new, as_json);
    }
    Ok(())
}

/// Asks this server, and shows the answer.
pub(super) async fn ask_of(
    remote: &Remote,
    config: Option<&Config>,
    command: Command,
    as_json: bool,
) -> Result<()> {
    if let Command::Tenant(command) = &command {
        command.check_terminal()?;
    }
    let asks_state = matches!(command, Command::Status { .. });
    let answer = answer(config, remote, command).await?;
    answer.show(as_json)?;
    // Whoever asks by a script, as a container's health check does, looks at the exit code alone.
    if asks_state && answer.value["ready"] == false {
        let why = answer.value["not_ready"].as_str().unwrap_or("see above");
        // One that answers is not unreachable, which has an exit code of its own.
        return Err(Error::internal(format!("the server is not ready: {why}")));
    }
    Ok(())
}

/// Says that no server knows of what was made: a link or a secret looks as good
/// as any, and the server that is meant may keep its data elsewhere.
fn tell_unheard(data_dir: &Path, is_new: bool, as_json: bool) {
    let made = if is_new { " (made just now)" } else { "" };
    let note = format!(
        "No server is running on {}{made}: this works once `angelia serve` runs with it.",
        absolute(data_dir).display()
    );
    let note = if as_json { json!({ "note": note }).to_string() } else { note };
    let _ = writeln!(std::io::stderr(), "{note}");
}

async fn answer(config: Option<&Config>, remote: &Remote, command: Command) -> Result<Answer> {
    match command {
        Command::Tenant(command) => tenant::ask(remote, command).await,
        Command::Client(command) => client::ask(remote, command).await,
        Command::EnrollToken(wanted) => client::enroll_token(remote, config, wanted).await,
        Command::Route(command) => route::ask(remote, command).await,
        Command::Bot(BotCommand::Quarantine { command }) => bot::quarantine(remote, command).await,
        Command::Gateway(command) => gateway::ask(remote, command).await,
        Command::Inbox(command) => inbox::ask(remote, command).await,
        Command::Webchat(command) => webchat::ask(remote, command).await,
        Command::Status { .. } => Answer::of(remote, api::STATUS.ask(&Nothing {}), show::status).await,
        Command::Cluster(command) => cluster::ask(remote, command).await,
        Command::Messages(wanted) => messages::ask(remote, &wanted).await,
        Command::Explain { message, last } => {
            let message = match message {
                Some(message) if !last => message,
                chat => messages::last(remote, chat).await?,
            };
            Answer::of(remote, api::EXPLAIN.ask(&message, &Nothing {}), show::story).await
        }
        Command::Audit(command) => key::audit(remote, command).await,
        Command::Clock(command) => key::clock(remote, command).await,
        Command::Key(command) => key::key(remote, command).await,
        Command::AdminToken(command) => key::admin_token(remote, command).await,
        Command::Demo { .. }
        | Command::Serve
        | Command::Config(_)
        | Command::Bot(_)
        | Command::Backup { .. }
        | Command::Migrate(_)
        | Command::Compact
        | Command::Contract(_)
        | Command::Completions { .. }
        | Command::Limits { .. }
        | Command::Problems { .. }
        | Command::Man { .. } => Err(Error::internal("this command asks no server")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use angelia_core::secret::Secret;
    use axum::Json;
    use axum::extract::Request;
    use clap::Parser;
    use serde_json::Value;

    /// A server that answers with what it was asked.
    async fn echo(request: Request) -> Json<Value> {
        let line = format!("{} {}", request.method(), request.uri());
        let body = axum::body::to_bytes(request.into_body(), 10_000).await.unwrap();
        Json(json!({ "asked": line, "body": serde_json::from_slice::<Value>(&body).unwrap_or_default() }))
    }

    async fn asked(line: &str) -> (String, Value) {
        let cli = Cli::try_parse_from(format!("angelia {line}").split(' '))
            .unwrap_or_else(|e| panic!("{line}: {e}"));
        let remote =
            Remote::Opened { router: axum::Router::new().fallback(echo), token: Secret::new("token") };
        let answer = answer(Some(&Config::default()), &remote, cli.command).await.unwrap();
        let value = answer.value;
        (value["asked"].as_str().unwrap().to_owned(), value["body"].clone())
    }

    /// Command lines, and what they ask.
    fn lines() -> Vec<(&'static str, &'static str, Value)> {
        let none = Value::Null;
        vec![
            ("tenant create acme", "POST /admin/tenants", json!({ "tenant": "acme" })),
            (
                "tenant create acme --issuer https://i/ --claim c",
                "POST /admin/tenants",
                json!({ "tenant": "acme", "issuer": "https://i/", "claim": "c" }),
            ),
            ("tenant list", "GET /admin/tenants", none.clone()),
            (
                "tenant link acme --issuer i --claim c",
                "POST /admin/tenants/acme/link",
                json!({ "issuer": "i", "claim": "c" }),
            ),
            (
                "tenant unlink acme --issuer i --claim c",
                "POST /admin/tenants/acme/unlink",
                json!({ "issuer": "i", "claim": "c" }),
            ),
            (
                "tenant remove acme --confirm acme",
                "POST /admin/tenants/acme/remove",
                json!({ "confirm": "acme" }),
            ),
            ("client create --tenant acme", "POST /admin/clients", json!({ "tenant": "acme" })),
            ("client list", "GET /admin/clients", none.clone()),
            ("client list --tenant a", "GET /admin/clients?tenant=a", none.clone()),
            ("client rotate c1", "POST /admin/clients/c1/rotate", json!({})),
            ("client revoke c1", "POST /admin/clients/c1/revoke", json!({})),
            ("enroll-token --tenant a", "POST /admin/enroll-tokens", json!({ "tenant": "a" })),
            (
                "enroll-token --tenant a --gateway g --expires 1h30m",
                "POST /admin/enroll-tokens",
                json!({ "tenant": "a", "gateway": "g", "expires_in": 5400 }),
            ),
            (
                "route add --tenant a --gateway g --bot b --allow 1,2 --free webchat:lab",
                "POST /admin/routes",
                json!({
                    "tenant": "a", "gateway": "g", "bot": "b", "allow": ["1", "2"], "free": true, "replace": false,
                    "place": "webchat:lab",
                }),
            ),
            (
                "route add --replace --tenant a --allow any webchat:lab",
                "POST /admin/routes",
                json!({ "tenant": "a", "allow": ["any"], "free": false, "replace": true, "place": "webchat:lab" }),
            ),
            ("route list --unrouted", "GET /admin/routes/unrouted", none.clone()),
            ("route code --tenant a", "POST /admin/routes/codes", json!({ "tenant": "a", "free": false })),
            (
                "route remove --bot b webchat:lab",
                "POST /admin/routes/remove",
                json!({ "place": "webchat:lab", "bot": "b" }),
            ),
            ("gateway rotate g --now", "POST /admin/gateways/g/rotate", json!({ "now": true })),
            ("gateway show g", "POST /admin/gateways/g/show", json!({})),
            (
                "gateway set --tenant a g --display-name Gus --instance i",
                "POST /admin/gateways/g/set",
                json!({ "tenant": "a", "display_name": "Gus", "instance": "i" }),
            ),
            ("gateway set g --wake-url ", "POST /admin/gateways/g/set", json!({ "wake_url": "" })),
            ("webchat list", "GET /admin/webchat/people", none.clone()),
            ("webchat list --room a", "GET /admin/webchat/people?room=a", none.clone()),
            ("webchat revoke --user ann", "POST /admin/webchat/revoke", json!({ "user": "ann" })),
            ("webchat invite --user ann", "POST /admin/webchat/invites", json!({ "user": "ann" })),
            (
                "webchat invite --room r --user ann --gateway g",
                "POST /admin/webchat/invites",
                json!({ "user": "ann", "room": "r", "gateway": "g" }),
            ),
            ("inbox show b1 --dead", "GET /admin/inbox/entries?entry=b1&dead=true", none.clone()),
            ("bot quarantine", "GET /admin/quarantine", none.clone()),
            ("bot quarantine list --bot telegram:7", "GET /admin/quarantine?bot=telegram%3A7", none.clone()),
            ("bot quarantine show 17", "GET /admin/quarantine/17", none.clone()),
            ("bot quarantine purge 17", "DELETE /admin/quarantine/17", none.clone()),
            ("bot quarantine purge", "DELETE /admin/quarantine", none.clone()),
            ("messages", "GET /admin/messages", none.clone()),
            (
                "messages --state dropped --gateway g --limit 5 -1001",
                "GET /admin/messages?chat=-1001&gateway=g&state=dropped&limit=5",
                none.clone(),
            ),
            ("explain a/b", "GET /admin/explain/a%2Fb", none.clone()),
            ("explain -1002/17", "GET /admin/explain/-1002%2F17", none.clone()),
            ("explain --json -1002/17", "GET /admin/explain/-1002%2F17", none.clone()),
            ("audit list --tenant a --limit 5", "GET /admin/audit?tenant=a&limit=5", none.clone()),
            ("key check", "GET /admin/key", none.clone()),
            ("key rotate", "POST /admin/key/rotate", json!({})),
            ("key rotate --to /k", "POST /admin/key/rotate", json!({ "file": "/k" })),
            ("admin-token rotate", "POST /admin/token/rotate", json!({})),
            ("status", "GET /admin/status", none.clone()),
            ("cluster status", "GET /admin/cluster", none.clone()),
            ("route list", "GET /admin/routes", none.clone()),
            (
                "gateway create --tenant a gw",
                "POST /admin/gateways",
                json!({ "tenant": "a", "gateway_id": "gw", "shared_groups": false }),
            ),
            ("gateway list", "GET /admin/gateways", none.clone()),
            ("gateway default g", "POST /admin/gateways/g/default", json!({})),
            ("gateway revoke --tenant a g", "POST /admin/gateways/g/revoke", json!({ "tenant": "a" })),
            ("inbox list --gateway g", "GET /admin/inbox?gateway=g&dead=false", none.clone()),
            ("inbox list --dead", "GET /admin/inbox/entries?dead=true", none.clone()),
            ("inbox redrive b1", "POST /admin/inbox/redrive", json!({ "entry": "b1", "dead": false })),
            ("inbox purge b1", "POST /admin/inbox/purge", json!({ "entry": "b1", "dead": false })),
            ("clock show", "GET /admin/clock", none),
            ("clock accept", "POST /admin/clock/accept", json!({})),
        ]
    }

    #[tokio::test]
    async fn every_command_asks_what_it_should() {
        for (line, request, body) in lines() {
            assert_eq!(asked(line).await, (request.to_owned(), body), "{line}");
        }
    }

    /// Asked otherwise than by a command line alone.
    const ELSEWHERE: [(&str, &str); 5] = [
        ("GET", "/admin/openapi.json"),
        // `bot list`, which reads the configuration as well.
        ("GET", "/admin/bots"),
        // `bot commands`, which asks the providers as well.
        ("GET", "/admin/commands"),
        ("POST", "/admin/commands/registered"),
        // `tenant remove`, before it asks for the name on the terminal.
        ("GET", "/admin/tenants/{tenant}"),
    ];

    #[test]
    fn every_endpoint_is_asked_by_a_command() {
        let is_meant = |request: &str, method: &str, path: &str| {
            let (asked, rest) = request.split_once(' ').unwrap_or_default();
            let given: Vec<&str> = rest.split('?').next().unwrap_or_default().split('/').collect();
            let parts: Vec<&str> = path.split('/').collect();
            let mut pairs = parts.iter().zip(&given);
            let matches = pairs.all(|(part, given)| part == given || part.starts_with('{'));
            asked == method && parts.len() == given.len() && matches
        };
        for (method, path) in api::endpoints() {
            let elsewhere = ELSEWHERE.contains(&(method.as_str(), path));
            let asked = lines().iter().any(|(_, request, _)| is_meant(request, &method, path));
            assert!(asked != elsewhere, "{method} {path} is asked by no command line of this test");
        }
    }

    #[test]
    fn half_a_command_is_refused() {
        for line in [
            "gateway set g",
            "tenant create acme --issuer i",
            "tenant link acme --issuer i",
            "client create",
            "enroll-token",
            "enroll-token --tenant a --expires soon",
            "enroll-token --tenant a --expires 0s",
            "route code",
            "audit list --limit 0",
            "backup",
        ] {
            let error = Cli::try_parse_from(format!("angelia {line}").split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn an_answer_of_another_release_is_shown_as_it_came() {
        let value = serde_json::json!({ "secret": "shown once" });
        let read = Err::<(), _>(Error::internal("is it of another release?"));
        let answer =
            Answer::new(Reply { value: value.clone(), read }, |()| unreachable!("it cannot be read"));
        assert_eq!(answer.value, value);
        assert!(answer.text.contains("shown once") && answer.text.contains("another release"));
    }
}
