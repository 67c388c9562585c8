//! `angelia messages`, and the last one for `angelia explain --last`.

use super::request::Answer;
use crate::config::parse_duration;
use crate::remote::{Remote, Reply};
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{ListedMessage, Messages, WantedMessages};
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use clap::Args;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// How often it is looked for new ones.
const EVERY: Duration = Duration::from_secs(1);
/// How far back it is looked each time: what reached nobody on another node is told late.
const BACK: Duration = Duration::from_secs(30);
/// As many are asked for each time, as many as a server shows: none of a busy minute is to be missed.
const AT_A_TIME: u64 = 1_000;
/// Messages that are known to have been shown; beyond it those of the last moments may be shown again.
const REMEMBERED: usize = 100_000;

/// Which messages.
#[derive(Args, Clone, Debug)]
pub(super) struct Wanted {
    /// Only those of this chat or place: webchat:lab, telegram:-1001, or a chat's id.
    #[arg(allow_hyphen_values = true)]
    chat: Option<String>,
    /// Only those for this gateway.
    #[arg(long, value_name = "ID")]
    gateway: Option<String>,
    /// Only those of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only those from this platform.
    #[arg(long)]
    platform: Option<String>,
    /// Only those that reached nobody and that this person wrote; of others it is not kept who did.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    person: Option<String>,
    /// Only those that got so far.
    #[arg(long, value_name = "waiting|pushed|done|dropped", value_parser = ["waiting", "pushed", "done", "dropped"])]
    state: Option<String>,
    /// Only those of this time, such as 10m or 2h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    since: Option<Duration>,
    /// The newest so many; 50 if not said, 1000 at the most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Goes on and shows what comes, until Ctrl-C.
    #[arg(long, short)]
    pub(super) follow: bool,
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a time such as 90s, 10m or 2h".to_owned())
}

impl Wanted {
    fn asked(&self) -> WantedMessages {
        let Self { chat, gateway, tenant, platform, person, state, since, limit, .. } = self.clone();
        let since = since.map(|since| clock::wall().before(since));
        WantedMessages { chat, gateway, tenant, platform, person, state, since, limit }
    }
}

pub(super) async fn ask(remote: &Remote, wanted: &Wanted) -> Result<Answer> {
    Answer::of(remote, api::MESSAGES.ask(&wanted.asked()), show::messages).await
}

/// What `explain` calls the last message, of a chat if one is named.
pub(super) async fn last(remote: &Remote, chat: Option<String>) -> Result<String> {
    let asked = WantedMessages { chat: chat.clone(), limit: Some(1), ..WantedMessages::default() };
    let answer: Reply<Messages> = remote.call(api::MESSAGES.ask(&asked)?).await?;
    let message = answer.read?.messages.pop().ok_or_else(|| match chat {
        Some(chat) => Error::not_found(format!(
            "nobody wrote in {chat} lately, as far as is known; angelia messages shows who wrote where"
        )),
        None => Error::not_found("nobody wrote anything lately, as far as is known"),
    })?;
    Ok(format!("{}/{}", message.chat_id, message.message_id))
}

/// Shows messages as they come, until Ctrl-C or until nobody reads it any more. One that gets further is
/// shown again.
pub(super) async fn follow(find: impl Fn() -> Result<Remote>, wanted: Wanted, as_json: bool) -> Result<()> {
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    let (mut asked, mut shown) = (wanted.asked(), HashSet::new());
    loop {
        let looked_at = clock::wall();
        let looked = tokio::select! {
            looked = look(&find, &asked) => looked?,
            _ = &mut stop => return Ok(()),
        };
        let new: Vec<ListedMessage> =
            looked.into_iter().filter(|message| shown.insert(name(message))).collect();
        let text = if as_json { lines(&new)? } else { show::message_lines(&new) };
        if !show::heard(&text)? {
            return Ok(());
        }
        (asked.since, asked.limit) = (Some(looked_at.before(BACK)), Some(AT_A_TIME));
        if shown.len() > REMEMBERED {
            shown.clear();
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = &mut stop => return Ok(()),
        }
    }
}

async fn look(find: &impl Fn() -> Result<Remote>, asked: &WantedMessages) -> Result<Vec<ListedMessage>> {
    let answer: Reply<Messages> = find()?.call(api::MESSAGES.ask(asked)?).await?;
    Ok(answer.read?.messages)
}

fn name(message: &ListedMessage) -> (String, String, String) {
    (message.chat_id.clone(), message.message_id.clone(), message.state.clone())
}

fn lines(messages: &[ListedMessage]) -> Result<String> {
    let line = |message| {
        serde_json::to_value(message).map(|value: Value| format!("{value}\n")).map_err(Error::defect)
    };
    messages.iter().map(line).collect()
}
