//! Texts that take several messages, where the provider cannot tell a repetition: once the
//! first part is out, nobody else can finish the rest.

use super::ApiError;
use crate::platform::{Outcome, Progress};
use angelia_core::clock;
use angelia_core::fail;
use std::time::Duration;

/// How long the rest of a text that has begun to appear is tried for: as long as an
/// action lives.
const REST_WITHIN: Duration = Duration::from_secs(600);

/// Something that messages are written to.
pub(crate) trait Writer: Sync {
    /// Writes one message, unless `progress` says before the call that its sender may not any
    /// more; answers its id. `first` is the id of the message that it goes on from.
    fn write(
        &self,
        text: &str,
        first: Option<&str>,
        progress: &dyn Progress,
    ) -> impl Future<Output = Result<String, Outcome>> + Send;
}

/// Writes the parts of a text, one after the other: waits with the rest where the provider
/// wants that.
pub(crate) async fn write_parts(writer: &impl Writer, parts: &[String], progress: &dyn Progress) -> Outcome {
    match write_all(writer, parts, progress).await {
        Ok(message_id) => Outcome::Sent { message_id, recorded: false },
        Err(outcome) => outcome,
    }
}

async fn write_all(
    writer: &impl Writer,
    parts: &[String],
    progress: &dyn Progress,
) -> Result<String, Outcome> {
    let Some((first, rest)) = parts.split_first() else {
        return Err(refused("there is no text to send"));
    };
    fail::point("action_sending");
    let message_id = writer.write(first, None, progress).await?;
    if rest.is_empty() {
        return Ok(message_id);
    }
    progress.first_part(&message_id);
    let until = clock::mono() + REST_WITHIN;
    for part in rest {
        loop {
            if !progress.next_call().await {
                return Err(ApiError::withdrawn().outcome());
            }
            fail::point("action_sending");
            match writer.write(part, Some(&message_id), progress).await {
                Err(Outcome::Later { after, reach, .. }) if clock::mono() + after < until => {
                    progress.pause(reach, after);
                    tokio::time::sleep(after).await;
                }
                written => break drop(written?),
            }
        }
    }
    Ok(message_id)
}

/// An outcome that would be the same again.
pub(crate) fn refused(why: impl Into<String>) -> Outcome {
    Outcome::Refused { why: why.into() }
}
