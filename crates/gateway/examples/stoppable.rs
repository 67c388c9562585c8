//! An agent whose long work can be stopped, and which says where it stopped.
//!
//! By default an interrupt drops the turn's future, and nothing more is said. With
//! `cooperative_interrupts` the turn is told instead, and ends as it sees fit.
//!
//! ```text
//! GATEWAY_RELAY_URL=http://127.0.0.1:8787 GATEWAY_RELAY_ID=gw-1 \
//! GATEWAY_RELAY_SECRET=… cargo run --example stoppable
//! ```

use std::env;
use std::error::Error;
use std::time::Duration;

use angelia_gateway::{CallError, Conversation, Event, Gateway};
use tokio::time::timeout;

const STEPS: usize = 30;
const STEP: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let gateway = Gateway::builder(env::var("GATEWAY_RELAY_URL")?)
        .id(env::var("GATEWAY_RELAY_ID")?)
        .secret(env::var("GATEWAY_RELAY_SECRET")?)
        .cooperative_interrupts()
        .build()?;
    gateway
        .run(|_: Event, conversation: Conversation| async move {
            // What did not arrive has nobody to be reported to here.
            let _ = work(&conversation).await;
        })
        .await?;
    Ok(())
}

async fn work(conversation: &Conversation) -> Result<(), CallError> {
    conversation.typing().await?;
    let sent = conversation.send("At work…").await?;
    // Platforms that cannot edit give no id: there only the end is told.
    let shown = sent.message_id.filter(|_| conversation.descriptor().supports_edit);
    for step in 1..=STEPS {
        // The work of one step, and whether somebody presses stop meanwhile.
        let stopped = timeout(STEP, conversation.cancelled()).await.is_ok();
        let text = match (stopped, step) {
            (true, _) => format!("Stopped at step {step} of {STEPS}."),
            (false, STEPS) => "Done.".to_owned(),
            (false, _) => format!("At work… step {step} of {STEPS} is done."),
        };
        match &shown {
            Some(message) => conversation.edit(message, &text).await.map(drop)?,
            None if stopped || step == STEPS => conversation.send(&text).await.map(drop)?,
            None => {}
        }
        if stopped {
            break;
        }
    }
    Ok(())
}
