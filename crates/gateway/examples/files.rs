//! An agent that reads the files it is sent, and answers with one.
//!
//! Of each file it counts the lines, piece by piece as it comes, so that memory stays small
//! whatever is sent; the answer is a table to open elsewhere.
//!
//! ```text
//! GATEWAY_RELAY_URL=http://127.0.0.1:8787 GATEWAY_RELAY_ID=gw-1 \
//! GATEWAY_RELAY_SECRET=… cargo run --example files
//! ```

use std::env;
use std::error::Error;
use std::fmt::Write as _;

use angelia_gateway::{Conversation, Event, EventFile, FileError, Gateway, OutgoingFile, SendFileError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let gateway = Gateway::builder(env::var("GATEWAY_RELAY_URL")?)
        .id(env::var("GATEWAY_RELAY_ID")?)
        .secret(env::var("GATEWAY_RELAY_SECRET")?)
        .build()?;
    gateway
        .run(|event: Event, conversation: Conversation| async move {
            if let Err(error) = answer(&event, &conversation).await {
                let _ = conversation.send(&format!("That did not work: {error}")).await;
            }
        })
        .await?;
    Ok(())
}

async fn answer(event: &Event, conversation: &Conversation) -> Result<(), SendFileError> {
    let mut table = String::from("name,bytes,lines\n");
    for file in event.files() {
        let (bytes, lines) = count(&file, conversation).await?;
        let _ = writeln!(table, "{},{bytes},{lines}", file.name.unwrap_or("?").replace(',', " "));
    }
    match event.files().count() {
        0 => conversation.send("Send me a file, and I count its lines.").await?,
        files => {
            let caption = if files == 1 { "One file".to_owned() } else { format!("{files} files") };
            let file = OutgoingFile::bytes("lines.csv", table).caption(caption);
            conversation.send_file(file).await?
        }
    };
    Ok(())
}

async fn count(file: &EventFile<'_>, conversation: &Conversation) -> Result<(usize, usize), FileError> {
    let mut stream = conversation.open_file(file).await?;
    let (mut bytes, mut lines) = (0, 0);
    while let Some(piece) = stream.piece().await? {
        bytes += piece.len();
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    Ok((bytes, lines))
}
