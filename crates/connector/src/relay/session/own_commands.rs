//! Commands that an operator configured and the gateway did not declare: it is given words.

use super::Session;
use angelia_contract::event::{Event, message_type};
use angelia_core::commands::{self, Command};
use angelia_core::directory::BotKey;
use angelia_core::inbox::{Entry, EntryKind, Interaction};

/// How a stored event begins whose text may be a command. Nothing else is read for it.
const COMMAND: &[u8] = br#"{"text":"/"#;

impl Session {
    /// Whether an interaction is a command of the operator's own, to a gateway that tells its
    /// commands and has no such. Given as a request, it would be answered with "unknown command".
    pub(super) fn is_only_own(&self, entry: &Entry) -> bool {
        let known = self.relay.identities.now().commands(self.record.instance);
        if known.is_empty() {
            return false;
        }
        let name = Interaction::read(&entry.body).and_then(|it| it.command);
        name.is_some_and(|name| commands::is_only_own(&name, &known, self.own(entry)))
    }

    /// What a message is for this gateway, if that is not what was stored.
    pub(super) fn reworded(&self, entry: &Entry) -> Option<Event> {
        if entry.kind != EntryKind::Message || !entry.body.starts_with(COMMAND) {
            return None;
        }
        let event: Event = serde_json::from_slice(&entry.body).ok()?;
        self.words_for(entry, &event).map(|text| said(event, text))
    }

    /// The event of an interaction, as this gateway understands it.
    pub(super) fn in_words(&self, entry: &Entry, event: Event) -> Event {
        match self.words_for(entry, &event) {
            Some(text) => said(event, text),
            None => event,
        }
    }

    fn words_for(&self, entry: &Entry, event: &Event) -> Option<String> {
        if event.prompt_response.is_some() {
            return None;
        }
        let known = self.relay.identities.now().commands(self.record.instance);
        commands::reworded(&event.text, &known, self.own(entry))
    }

    /// The commands that the operator configured for the bot of an entry.
    fn own(&self, entry: &Entry) -> &[Command] {
        let bots = &self.relay.bots;
        let bot = bots.position(&BotKey::new(&entry.platform, &entry.bot));
        bot.and_then(|bot| bots[bot].commands()).map_or(&[], |commands| &commands.own)
    }
}

fn said(event: Event, text: String) -> Event {
    let is_command = text.starts_with('/');
    let is_plain = event.message_type == message_type::COMMAND && !is_command;
    let message_type = if is_plain { message_type::TEXT.to_owned() } else { event.message_type };
    Event { text, message_type, ..event }
}
