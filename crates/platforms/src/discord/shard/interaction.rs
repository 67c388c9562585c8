//! Interactions that come over the gateway's socket, and are answered by a call.

use super::Shard;
use super::cursor::Position;
use crate::discord::api::{Call, Method};
use crate::discord::api_error::{ApiError, code};
use crate::discord::interaction::{is_token, language};
use crate::discord::parse::id_of;
use crate::discord::take::Heard;
use crate::discord::take_interaction::{Considered, KEPT_WITHIN};
use crate::discord::{Discord, address};
use crate::ingress::Halted;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::secret::Secret;
use angelia_core::store::Taken;
use angelia_core::vault::LIVES_FOR;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

/// How long after it came an interaction can be answered. Discord gives three
/// seconds; a call that is on its way for longer is of no use any more.
const CALLED_WITHIN: Duration = Duration::from_secs(3);
/// How soon a call that failed is made again.
const CALL_AGAIN: Duration = Duration::from_millis(250);

impl Shard {
    /// Takes in an interaction. Its reply is sent in time, whatever the store
    /// does; nothing more is read before it is committed, or given up.
    pub(super) async fn interaction(&mut self, raw: &str, position: Option<Position>) -> Result<(), Halted> {
        let came = Instant::now();
        let (due, until) = (came + KEPT_WITHIN, came + CALLED_WITHIN);
        let body: Option<Value> = serde_json::from_str(raw).ok();
        let (caller, language) = (body.as_ref().and_then(caller), language(body.as_ref()));
        let from = body.as_ref().map_or_else(clock::wall, |body| lives_from(body, clock::wall()));
        let considering = self.reader.consider(raw, body.as_ref(), from, due);
        let considered = self.halt.unless_halted(considering).await?;
        let patience = considered.patience();
        let Considered { heard, reply } = considered;
        let (tell, told) = oneshot::channel::<Taken>();
        if let Some((id, token)) = caller {
            let discord = self.reader.discord.clone();
            tokio::spawn(async move {
                let reply = match timeout_at(due, told).await {
                    Ok(Ok(taken)) => reply.after(taken),
                    // It is late, or the shard ends and leaves it for later.
                    Ok(Err(_)) | Err(_) => reply.late(patience.as_ref()),
                };
                discord.call_back(id, token, reply.body(language), until).await;
            });
        }
        match heard {
            Some(heard) => {
                let taken = self.commit(heard, position).await?;
                let _ = tell.send(taken);
                Ok(())
            }
            None => {
                let _ = tell.send(Taken::default());
                self.take(Heard::default(), position).await
            }
        }
    }
}

/// When a credential's life began, by Discord's clock where that can be right:
/// what a resumed session brings again may be minutes old.
fn lives_from(body: &Value, now: UnixMillis) -> UnixMillis {
    let id = body["id"].as_str().and_then(address::snowflake);
    id.map(address::made_at).filter(|at| (now.before(LIVES_FOR)..now).contains(at)).unwrap_or(now)
}

/// Who waits for a call, whatever else it is: the interaction's id and its token.
fn caller(body: &Value) -> Option<(String, Secret)> {
    let (id, token) = (id_of(&body["id"])?, body["token"].as_str()?);
    let is_one = address::snowflake(&id).is_some() && is_token(token);
    is_one.then(|| (id, Secret::new(token)))
}

impl Discord {
    /// Answers an interaction by a call, if that can still be of use.
    async fn call_back(self: Arc<Self>, id: String, token: Secret, reply: Value, until: Instant) {
        let call =
            Call::new(Method::Post, format!("interactions/{id}/")).lent(token, "/callback").json(reply);
        let why = loop {
            let failure = match timeout_at(until, self.api.call(call.clone())).await {
                Ok(Ok(_)) => return,
                // An earlier call got through, though nobody said so.
                Ok(Err(failure)) if failure.is(code::ACKNOWLEDGED) => return,
                Ok(Err(failure)) => failure,
                Err(_) => break "Discord did not answer in time".into(),
            };
            let pause = match failure {
                ApiError::Limited { after, .. } => after,
                _ => CALL_AGAIN,
            };
            if matches!(failure, ApiError::Refused { .. }) || Instant::now() + pause >= until {
                break failure.why();
            }
            sleep(pause).await;
        };
        self.account.health.count("failed_callbacks");
        tracing::warn!(bot = self.own_id(), interaction = id, why, "an interaction was not answered in time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_brought_again_has_not_long_to_live() {
        let at = |id: u64, now: i64| lives_from(&json!({"id": id.to_string()}), UnixMillis(now)).0;
        let made: i64 = 1_462_015_105_796;
        assert_eq!(at(175_928_847_299_117_063, made + 60_000), made);
        assert_eq!(at(175_928_847_299_117_063, made - 5_000), made - 5_000, "its clock is ahead of ours");
        assert_eq!(at(7, made), made, "no such time");
        assert_eq!(lives_from(&json!({}), UnixMillis(5)).0, 5);
    }

    #[test]
    fn somebody_waits_whatever_it_is() {
        let caller = |body: Value| super::caller(&body).map(|(id, _)| id);
        let token = "0123456789abcdef";
        assert_eq!(caller(json!({"id": "9", "type": 77, "token": token})).as_deref(), Some("9"));
        assert_eq!(caller(json!({"id": 9, "token": token})).as_deref(), Some("9"));
        for nobody in
            [json!({"id": "9"}), json!({"id": "x", "token": token}), json!({"id": "9", "token": "../"})]
        {
            assert!(caller(nobody.clone()).is_none(), "{nobody}");
        }
    }
}
