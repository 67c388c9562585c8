//! Which frame an entry becomes for this peer: `inbound`, `passthrough_forward` or
//! `interrupt_inbound`.

use super::Session;
use crate::telemetry::Counter;
use angelia_contract::frame::{ConnectorFrame, inbound_line, passthrough_line};
use angelia_core::directory::BotKey;
use angelia_core::inbox::{Entry, EntryKind, FrameKind, Interaction, Rendering};

/// How an entry goes over the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As a message.
    Inbound,
    /// As an interrupt.
    Interrupt,
    /// As the message an interaction makes.
    Event,
    /// As the request an interaction came as.
    Request,
}

impl Form {
    /// Whether peers acknowledge it.
    pub(super) fn kind(self) -> FrameKind {
        match self {
            Self::Inbound | Self::Event => FrameKind::Acknowledged,
            // Our own half does acknowledge a request, and that settles it too.
            Self::Interrupt | Self::Request => FrameKind::Unacknowledged,
        }
    }
}

impl Session {
    /// The form in which this peer is given an entry.
    pub(super) fn form(&self, entry: &Entry) -> Form {
        match entry.kind {
            EntryKind::Stop if self.profile.interrupts => Form::Interrupt,
            EntryKind::Message | EntryKind::Stop => Form::Inbound,
            EntryKind::Interaction => match self.rendering(entry) {
                Rendering::Event => Form::Event,
                Rendering::Auto if self.profile.loses_forwards => Form::Event,
                Rendering::Auto | Rendering::Passthrough => Form::Request,
            },
        }
    }

    /// What the operator wants for the bot; one that is not configured any more has no wish.
    fn rendering(&self, entry: &Entry) -> Rendering {
        let bot = self.relay.bots.position(&BotKey::new(&entry.platform, &entry.bot));
        bot.map(|bot| self.relay.bots[bot].rendering()).unwrap_or_default()
    }

    /// The line that gives an entry to the peer; `None` if it cannot be read.
    pub(super) fn render(&self, entry: &Entry, form: Form) -> Option<String> {
        let id = entry.seq.buffer_id();
        let (platform, bot) = (&*entry.platform, &*entry.bot);
        let line = match form {
            Form::Interrupt => {
                self.relay.metrics.count(Counter::Interrupts);
                let (session_key, chat_id) = (entry.session_key.to_string(), entry.chat_id.to_string());
                return Some(ConnectorFrame::InterruptInbound { session_key, chat_id }.to_line());
            }
            Form::Inbound => inbound_line(&id, platform, bot, &entry.body),
            Form::Event => {
                let event = serde_json::to_vec(&Interaction::read(&entry.body)?.event).ok()?;
                inbound_line(&id, platform, bot, &event)
            }
            Form::Request => {
                let forward = Interaction::read(&entry.body)?.into_forward(platform, bot);
                passthrough_line(&id, platform, bot, &serde_json::to_vec(&forward).ok()?)
            }
        };
        Some(text(line))
    }
}

/// Serialized events are UTF-8; anything else would be a defect, not a reason to lose the socket.
fn text(line: Vec<u8>) -> String {
    String::from_utf8(line).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
