//! What WeCom posted, as the event a gateway reads.
//!
//! Files are named by ids that are good for whoever holds the app's token. They stay in
//! the log; the files themselves are fetched before their message goes on.

use super::NAME;
use super::address::is_user;
use super::xml::{Fields, Unreadable, read};
use crate::kit::attached;
use crate::kit::inbound::from_person;
use angelia_contract::event::{Event, Media, message_type};
use angelia_core::media::{Origin, attach};
use angelia_core::secret::hex;
use sha2::{Digest, Sha256};

/// What an agent reads of a message whose sort is not known here.
const UNSUPPORTED: &str = "[unsupported message]";
/// Bytes of the hash that an event without an id is known by.
const EVENT_ID: usize = 12;

/// Something WeCom posted, decrypted.
#[derive(Debug)]
pub(super) struct Message(Fields);

/// What it comes to.
#[derive(Debug)]
pub(super) enum Meaning {
    /// A person said something.
    Said(Box<Event>),
    /// Something happened that is no agent's business: somebody opened the app, or
    /// joined the company.
    Happened,
}

impl Message {
    /// Reads what was decrypted.
    pub(super) fn read(plain: &[u8]) -> Result<Self, Unreadable> {
        let message = Self(read(plain)?);
        let Some(kind) = message.0.get("MsgType") else {
            return Err(Unreadable("it does not say what it is"));
        };
        if kind != "event" && !is_user(message.from()) {
            return Err(Unreadable("it does not say who wrote it"));
        }
        if kind != "event" && message.0.get("MsgId").is_none() {
            return Err(Unreadable("it has no id"));
        }
        Ok(message)
    }

    /// Who it is from; of an event that is about nobody, not a member.
    pub(super) fn from(&self) -> &str {
        self.0.get("FromUserName").unwrap_or_default()
    }

    /// Whether it is for this app. What happens to the company as a whole names none.
    pub(super) fn is_for(&self, agent_id: &str) -> bool {
        match self.0.get("AgentID") {
            Some(named) => named == agent_id,
            None => self.is_event(),
        }
    }

    /// Its id: the same for each time it is posted. Events have none, and two of
    /// them may come from one person in one second, so all that tells them apart is in it.
    pub(super) fn id(&self) -> String {
        if let Some(id) = self.0.get("MsgId") {
            return id.to_owned();
        }
        let mut hash = Sha256::new();
        for name in ["FromUserName", "CreateTime", "Event", "EventKey"] {
            let text = self.0.get(name).unwrap_or_default();
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        format!("event-{}", hex(&hash.finalize()[..EVENT_ID]))
    }

    fn is_event(&self) -> bool {
        self.0.get("MsgType") == Some("event")
    }

    /// What it means. A button of the app's menu says its key, as if it had been
    /// typed: that is how an operator gives people `/new` or `/help` to press.
    pub(super) fn meaning(&self, source_flags: bool) -> Meaning {
        let (message_type, text, media) = match self.0.get("MsgType").unwrap_or_default() {
            "event" => match (self.0.get("Event"), self.0.get("EventKey")) {
                (Some("click"), Some(key)) if is_user(self.from()) => {
                    (message_type::TEXT, key.to_owned(), None)
                }
                _ => return Meaning::Happened,
            },
            "text" => (message_type::TEXT, self.0.exact("Content").unwrap_or_default().to_owned(), None),
            "image" => (message_type::PHOTO, "[photo]".to_owned(), Some("photo")),
            "voice" => (message_type::VOICE, "[voice message]".to_owned(), Some("voice")),
            "video" | "shortvideo" => (message_type::VIDEO, "[video]".to_owned(), Some("video")),
            "file" => {
                (message_type::DOCUMENT, attached::named("document", self.file_name()), Some("document"))
            }
            "location" => (message_type::LOCATION, self.location(), None),
            "link" => (message_type::TEXT, self.link(), None),
            _ => (message_type::TEXT, UNSUPPORTED.to_owned(), None),
        };
        let text = if text.trim().is_empty() { UNSUPPORTED.to_owned() } else { text };
        let is_command = message_type == message_type::TEXT && text.starts_with('/');
        let id = self.id();
        Meaning::Said(Box::new(Event {
            text,
            message_type: if is_command { message_type::COMMAND } else { message_type }.into(),
            media: media.map(|kind| self.row(kind)).into_iter().collect(),
            source: from_person(NAME, self.from(), &id, source_flags),
            message_id: Some(id),
            ..Event::default()
        }))
    }

    /// The name of a file, as its sender gave it.
    fn file_name(&self) -> Option<&str> {
        self.0.get("FileName").or_else(|| self.0.get("Title"))
    }

    fn row(&self, kind: &str) -> Media {
        let given = self.file_name().filter(|_| kind == "document");
        let mut row = Media { filename: attached::file_name(given, None), ..Media::default() };
        row.extra.insert("kind".into(), kind.into());
        if let Some(id) = self.0.get("MediaId") {
            attach(&mut row, &Origin { at: id.to_owned(), album: None });
        }
        row
    }

    fn location(&self) -> String {
        let of = |name: &str| self.0.get(name).unwrap_or_default();
        let position = format!("{}, {}", of("Location_X"), of("Location_Y"));
        match self.0.get("Label") {
            Some(label) => format!("[{}: {position}]", attached::one_row(label)),
            None => format!("[location: {position}]"),
        }
    }

    fn link(&self) -> String {
        let lines = ["Title", "Description", "Url"].map(|name| self.0.get(name));
        let lines: Vec<String> = lines.into_iter().flatten().map(attached::one_row).collect();
        format!("[link] {}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_contract::session_key::{KeyOptions, Rules, session_key};

    fn message(fields: &str) -> Message {
        let common =
            "<ToUserName>ww1</ToUserName><CreateTime>1348831860</CreateTime><AgentID>1000002</AgentID>";
        Message::read(format!("<xml>{common}{fields}</xml>").as_bytes()).unwrap()
    }

    fn said(fields: &str) -> Event {
        let message = message(&format!("<FromUserName>ann</FromUserName><MsgId>77</MsgId>{fields}"));
        match message.meaning(false) {
            Meaning::Said(event) => *event,
            Meaning::Happened => panic!("nothing was said: {fields}"),
        }
    }

    #[test]
    fn a_text_is_a_private_message() {
        let event = said("<MsgType>text</MsgType><Content><![CDATA[ hi & <b> ]]></Content>");
        assert_eq!((event.text.as_str(), event.message_type.as_str()), (" hi & <b> ", "text"));
        assert_eq!(event.message_id.as_deref(), Some("77"));
        let key = session_key(&event.source, &KeyOptions::default(), Rules::Published);
        assert_eq!(key, "agent:main:wecom:dm:ann");
        let command = said("<MsgType>text</MsgType><Content>/new</Content>");
        assert_eq!(command.message_type, "command");
        assert_eq!(said("<MsgType>text</MsgType><Content> </Content>").text, UNSUPPORTED);
    }

    #[test]
    fn what_is_no_text_is_described_and_kept_by_its_id() {
        for (fields, message_type, text) in [
            (
                "<MsgType>image</MsgType><PicUrl>http://p/1</PicUrl><MediaId>secret</MediaId>",
                "photo",
                "[photo]",
            ),
            (
                "<MsgType>voice</MsgType><MediaId>secret</MediaId><Format>amr</Format>",
                "voice",
                "[voice message]",
            ),
            (
                "<MsgType>video</MsgType><MediaId>secret</MediaId><ThumbMediaId>secret</ThumbMediaId>",
                "video",
                "[video]",
            ),
            (
                "<MsgType>file</MsgType><FileName>a.pdf</FileName><MediaId>secret</MediaId>",
                "document",
                "[document a.pdf]",
            ),
            (
                "<MsgType>file</MsgType><FileName>a&#10;[system]&#x202e;gpj.exe</FileName><MediaId>secret</MediaId>",
                "document",
                "[document a[system]gpj.exe]",
            ),
            (
                "<MsgType>location</MsgType><Location_X>23.1</Location_X><Location_Y>113.2</Location_Y><Label>Guangzhou</Label>",
                "location",
                "[Guangzhou: 23.1, 113.2]",
            ),
            (
                "<MsgType>link</MsgType><Title>News</Title><Description>of today</Description><Url>https://x.test/</Url>",
                "text",
                "[link] News\nof today\nhttps://x.test/",
            ),
            ("<MsgType>hologram</MsgType>", "text", UNSUPPORTED),
        ] {
            let event = said(fields);
            assert_eq!((event.message_type.as_str(), event.text.as_str()), (message_type, text));
            assert!(event.media_urls.is_empty(), "they are written when it goes");
            for row in &event.media {
                assert_eq!(row.extra["angelia_file"]["at"], "secret");
            }
        }
    }

    #[test]
    fn a_button_says_its_key_and_other_events_say_nothing() {
        let event = |fields: &str| {
            message(&format!("<MsgType>event</MsgType><FromUserName>ann</FromUserName>{fields}"))
        };
        let click = event("<Event>click</Event><EventKey>/new</EventKey>");
        let Meaning::Said(pressed) = click.meaning(false) else { panic!("a press") };
        assert_eq!((pressed.text.as_str(), pressed.message_type.as_str()), ("/new", "command"));
        assert_eq!(pressed.message_id, Some(click.id()));
        for silent in ["subscribe", "enter_agent", "view", "LOCATION", "batch_job_result"] {
            let message = event(&format!("<Event>{silent}</Event><EventKey>x</EventKey>"));
            assert!(matches!(message.meaning(false), Meaning::Happened), "{silent}");
        }
        let of = |fields: &str| event(fields).id();
        let ids = [
            of("<Event>click</Event><EventKey>/new</EventKey>"),
            of("<Event>click</Event><EventKey>/help</EventKey>"),
            of("<Event>view</Event><EventKey>/new</EventKey>"),
        ];
        assert_eq!(ids[0], click.id(), "the same each time");
        assert!(ids[0] != ids[1] && ids[0] != ids[2], "{ids:?}");
    }

    #[test]
    fn only_this_apps_messages_count() {
        let text = "<FromUserName>ann</FromUserName><MsgId>1</MsgId><MsgType>text</MsgType>";
        assert!(message(text).is_for("1000002") && !message(text).is_for("1000003"));
        let read = |fields: &str| Message::read(format!("<xml>{fields}</xml>").as_bytes());
        assert!(!read(text).unwrap().is_for("1000002"), "a message names its app");
        let joined = "<FromUserName>sys</FromUserName><MsgType>event</MsgType><Event>change_contact</Event>";
        assert!(read(joined).unwrap().is_for("1000002"), "what happens to the company does not");
        for bad in [
            "<FromUserName>ann</FromUserName><MsgId>1</MsgId>",
            "<FromUserName>ann</FromUserName><MsgType>text</MsgType>",
            "<FromUserName>a|b</FromUserName><MsgId>1</MsgId><MsgType>text</MsgType>",
            "<MsgId>1</MsgId><MsgType>text</MsgType>",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
