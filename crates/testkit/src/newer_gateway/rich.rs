//! What a turn does with what a connector offers beyond words: texts that grow, threads, notes that
//! are taken back.

use std::time::Duration;

use angelia_contract::action::{Action, ActionResult};
use serde_json::Value;
use tokio::time::sleep;

use super::gateway::{metadata, send};
use super::turn::Turn;

/// What stands behind a text that is not complete.
const CURSOR: &str = " ▉";
/// Fixed pause: so often a text that grows is shown.
const FRAME_EVERY: Duration = Duration::from_millis(100);
/// What it says while it works, and takes back.
const NOTE: &str = "🔧 looking around…";
/// What it calls a thread at first, and later.
const THREAD_NAMES: [&str; 2] = ["New thread", "A better name"];

impl Turn {
    /// Shows an answer while it grows: as a draft, behind which the whole comes as a message, or as a
    /// message that is edited. `false` if the whole still has to be sent.
    pub(super) async fn stream(&self, text: &str) -> bool {
        let mut drafts = self.gateway.is_offered("draft");
        let mut message_id = None;
        for (at, _) in text.match_indices(' ').chain([(text.len(), "")]) {
            let grown = &text[..at];
            let whole = at == text.len();
            if drafts {
                drafts = self.draft(grown).await.success;
            }
            if !drafts {
                let shown = if whole { grown.to_owned() } else { format!("{grown}{CURSOR}") };
                match &message_id {
                    None => message_id = self.begin_message(&shown).await,
                    Some(id) => drop(self.edit(id, shown).await),
                }
            }
            sleep(FRAME_EVERY).await;
        }
        message_id.is_some()
    }

    async fn draft(&self, text: &str) -> ActionResult {
        let action = Action::Draft {
            chat_id: self.event.source.chat_id.clone(),
            draft_id: 1 + self.gateway.diary.given().len() as i64,
            content: text.to_owned(),
            is_final: false,
            metadata: metadata(&self.event),
        };
        self.gateway.ask(&self.event, action).await
    }

    async fn begin_message(&self, text: &str) -> Option<String> {
        let mut action = send(&self.event, text, self.reply_to(), true);
        if let Action::Send { metadata, .. } = &mut action {
            metadata.insert("expect_edits".to_owned(), Value::Bool(true));
        }
        self.gateway.ask(&self.event, action).await.message_id
    }

    async fn edit(&self, message_id: &str, content: String) -> ActionResult {
        let (chat_id, metadata) = (self.event.source.chat_id.clone(), metadata(&self.event));
        let action = Action::Edit { chat_id, message_id: message_id.to_owned(), content, metadata };
        self.gateway.ask(&self.event, action).await
    }

    /// Uses everything else once: says what it is at, opens a thread and renames it, and takes back
    /// what it noted.
    pub(super) async fn use_everything(&self) {
        let (chat_id, metadata) = (self.event.source.chat_id.clone(), metadata(&self.event));
        let words = Some("is looking around".to_owned());
        let typing = Action::Typing { chat_id: chat_id.clone(), content: words, metadata: metadata.clone() };
        self.gateway.ask(&self.event, typing).await;
        let noted = self.gateway.ask(&self.event, send(&self.event, NOTE, None, false)).await;
        if self.gateway.is_offered("thread_create") {
            let create = Action::ThreadCreate {
                chat_id: chat_id.clone(),
                thread_name: THREAD_NAMES[0].to_owned(),
                message_id: self.event.message_id.clone(),
                metadata: metadata.clone(),
            };
            if let Some(thread_id) = self.gateway.ask(&self.event, create).await.thread_id {
                let rename = Action::ThreadRename {
                    chat_id: chat_id.clone(),
                    message_id: thread_id,
                    thread_name: THREAD_NAMES[1].to_owned(),
                    only_if_current_name: None,
                    only_if_connector_created: Some(true),
                    metadata: metadata.clone(),
                };
                self.gateway.ask(&self.event, rename).await;
            }
        }
        if let Some(message_id) = noted.message_id.filter(|_| self.gateway.is_offered("delete")) {
            self.gateway.ask(&self.event, Action::Delete { chat_id, message_id, metadata }).await;
        }
    }
}
