//! An agent that says everything back.
//!
//! ```text
//! GATEWAY_RELAY_URL=http://127.0.0.1:8787 GATEWAY_RELAY_ID=gw-1 \
//! GATEWAY_RELAY_SECRET=… cargo run --example echo
//! ```

use std::env;
use std::error::Error;

use angelia_gateway::{Conversation, Event, Gateway};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let gateway = Gateway::builder(env::var("GATEWAY_RELAY_URL")?)
        .id(env::var("GATEWAY_RELAY_ID")?)
        .secret(env::var("GATEWAY_RELAY_SECRET")?)
        .build()?;
    let handle = gateway.handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            // Whether it was confirmed or not, this process ends.
            let _ = handle.shutdown().await;
        }
    });
    gateway.run(echo).await?;
    Ok(())
}

async fn echo(event: Event, conversation: Conversation) {
    // An answer that did not arrive has nobody to be reported to here.
    let _ = conversation.send(&event.text).await;
}
