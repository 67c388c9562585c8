//! Closes after which Discord must not be called again, and what to do about them.

use super::api_error::TOKEN_REFUSED;

/// What to tell the operator about a close that is final.
pub(super) fn fatal(code: Option<u16>) -> String {
    match code {
        Some(4004) => TOKEN_REFUSED.into(),
        Some(4010) => "Discord says this shard does not exist (4010). Restart; if it stays, report it".into(),
        Some(4011) => {
            "Discord says the bot is in too many servers for its number of shards (4011). \
             Restart: the number is asked for anew"
                .into()
        }
        Some(4012) => {
            "Discord does not speak this version of its gateway any more (4012). Update this server".into()
        }
        Some(4013) => "Discord says an intent does not exist (4013). Update this server".into(),
        Some(4014) => {
            "Discord does not let the bot read messages (4014). Open the developer portal, choose the \
             application, and enable Message Content Intent under Bot, Privileged Gateway Intents; then restart"
                .into()
        }
        Some(code) => format!("Discord closed for good ({code}). Look that code up in Discord's documentation"),
        None => "Discord closed for good and gave no code. Restart".into(),
    }
}

/// Whether a close ends the session, so that it cannot be resumed.
pub(super) fn ends_session(code: Option<u16>) -> bool {
    matches!(code, Some(4007 | 4009))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_final_close_says_what_to_do() {
        for (code, next) in [
            (4004, "Reset Token"),
            (4010, "Restart"),
            (4011, "Restart"),
            (4012, "Update"),
            (4013, "Update"),
            (4014, "Message Content Intent"),
        ] {
            assert!(fatal(Some(code)).contains(next), "{code}");
        }
        assert!(fatal(None).contains("no code") && fatal(Some(4999)).contains("4999"));
        assert!(ends_session(Some(4009)) && !ends_session(Some(4000)) && !ends_session(None));
    }
}
