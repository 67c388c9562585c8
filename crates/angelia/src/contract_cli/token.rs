//! `angelia contract token`

use super::fields::Fields;
use super::write_json;
use angelia_contract::token::{self, DEFAULT_TTL_SECONDS};
use serde::Serialize;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = r#"Examples, one line each:
  {"gateway_id":"gw-1","secret":"short","now":1750000000,"ttl":300}
  is answered with {"token":"Z3ctMToxNz…"}; `now` is the clock and `ttl` 300 seconds if not given.

  {"token":"Z3ctMToxNz…","secret":"short"}
  {"token":"Z3ctMToxNz…","secrets":["new","short"],"now":1750000000}
  are answered with {"gateway_id":"gw-1","exp":1750000300,"valid":true}
  or with "valid":false and a "reason". A token that cannot be read has neither id nor exp.

Secrets are text: sixty-four hex digits are sixty-four bytes of key."#;

const NOT_SIGNED: &str = "none of the secrets signed it";

#[derive(Serialize)]
struct Minted {
    token: String,
}

#[derive(Serialize)]
struct Checked<'a> {
    gateway_id: Option<&'a str>,
    exp: Option<u64>,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Makes a token, or checks the one that is given.
pub(super) fn answer(mut fields: Fields, now: impl Fn() -> u64, out: &mut Vec<u8>) -> Result<(), String> {
    let now = fields.opt_number("now")?.unwrap_or_else(now);
    if fields.has("token") { check(fields, now, out) } else { mint(fields, now, out) }
}

fn mint(mut fields: Fields, now: u64, out: &mut Vec<u8>) -> Result<(), String> {
    let gateway_id = fields.text("gateway_id")?;
    let secret = fields.text("secret")?;
    let ttl = fields.opt_number("ttl")?.unwrap_or(DEFAULT_TTL_SECONDS);
    fields.finish()?;
    if gateway_id.is_empty() || secret.is_empty() {
        return Err("`gateway_id` and `secret` must not be empty".into());
    }
    write_json(out, &Minted { token: token::mint(&gateway_id, &secret, now, ttl) })
}

fn check(mut fields: Fields, now: u64, out: &mut Vec<u8>) -> Result<(), String> {
    let text = fields.text("token")?;
    let secrets = match (fields.has("secret"), fields.has("secrets")) {
        (true, false) => vec![fields.text("secret")?],
        (false, true) => fields.texts("secrets")?,
        _ => return Err("to check a token, give either `secret` or `secrets`".into()),
    };
    fields.finish()?;
    let token = match token::parse(&text) {
        Ok(token) => token,
        Err(error) => {
            let reason = Some(error.to_string());
            return write_json(out, &Checked { gateway_id: None, exp: None, valid: false, reason });
        }
    };
    let reason = match token.first_match(secrets.iter().map(String::as_str)) {
        None => Some(NOT_SIGNED.to_owned()),
        Some(_) => token.check_time(now).err().map(|error| error.to_string()),
    };
    let (gateway_id, exp) = (Some(token.gateway_id()), Some(token.exp()));
    write_json(out, &Checked { gateway_id, exp, valid: reason.is_none(), reason })
}
