//! `angelia contract session-key`

use super::fields::Fields;
use super::lines;
use angelia_contract::session_key::session_key_from_value;
use angelia_contract::{KeyOptions, Rules};
use serde_json::Value;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = r#"Example:
  echo '{"platform":"discord","chat_type":"group","chat_id":"111","user_id":"42"}' \
    | angelia contract session-key
  {"session_key":"agent:main:discord:group:111:42"}

With the operator's settings, all optional:
  {"source":{"platform":"telegram","chat_type":"dm","chat_id":"1001"},
   "options":{"group_sessions_per_user":true,"thread_sessions_per_user":false,"profile":"work"}}
  (on one line) is answered with
  {"session_key":"agent:work:telegram:dm:1001"}"#;

/// Answers a source, or a source with options.
pub(super) fn answer(mut fields: Fields, rules: Rules, out: &mut Vec<u8>) -> Result<(), String> {
    let (source, options) = if fields.has("source") {
        let source = fields.value("source").unwrap_or(Value::Null);
        let options = options(fields.object("options")?)?;
        fields.finish()?;
        (source, options)
    } else {
        (fields.into_value(), KeyOptions::default())
    };
    let key = session_key_from_value(&source, &options, rules).map_err(|error| error.to_string())?;
    out.extend_from_slice(b"{\"session_key\":");
    lines::text(out, &key);
    out.push(b'}');
    Ok(())
}

fn options(mut fields: Fields) -> Result<KeyOptions, String> {
    let defaults = KeyOptions::default();
    let options = KeyOptions {
        group_sessions_per_user: fields
            .opt_flag("group_sessions_per_user")?
            .unwrap_or(defaults.group_sessions_per_user),
        thread_sessions_per_user: fields
            .opt_flag("thread_sessions_per_user")?
            .unwrap_or(defaults.thread_sessions_per_user),
        profile: fields.opt_text("profile")?,
    };
    fields.finish()?;
    Ok(options)
}
