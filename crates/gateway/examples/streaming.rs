//! An agent that writes its answer word by word.
//!
//! Where the platform can edit, people see one message grow; where it cannot,
//! they get whole paragraphs. The code is the same.
//!
//! ```text
//! GATEWAY_RELAY_URL=http://127.0.0.1:8787 GATEWAY_RELAY_ID=gw-1 \
//! GATEWAY_RELAY_SECRET=… cargo run --example streaming
//! ```

use std::env;
use std::error::Error;
use std::time::Duration;

use angelia_gateway::{CallError, Conversation, Event, Gateway};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let gateway = Gateway::builder(env::var("GATEWAY_RELAY_URL")?)
        .id(env::var("GATEWAY_RELAY_ID")?)
        .secret(env::var("GATEWAY_RELAY_SECRET")?)
        // Providers count edits; the web chat would take ten times as many.
        .edit_interval(Duration::from_millis(700))
        .build()?;
    gateway
        .run(|event: Event, conversation: Conversation| async move {
            // What did not arrive has nobody to be reported to here.
            let _ = answer(&event.text, &conversation).await;
        })
        .await?;
    Ok(())
}

async fn answer(question: &str, conversation: &Conversation) -> Result<(), CallError> {
    let mut reply = conversation.stream();
    for word in model(question).split_inclusive(' ') {
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Shown when it is time for the next edit.
        reply.push(word).await?;
    }
    reply.finish().await?;
    Ok(())
}

/// Where your model goes.
fn model(question: &str) -> String {
    format!("You asked: {question}\n\nI have thought about it, and this is my answer, word by word.")
}
