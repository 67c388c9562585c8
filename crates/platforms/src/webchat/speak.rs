//! What a person says: admitted to an instance, or a line of the room and no more.

use super::address;
use super::hub::Hub;
use super::normalize::{self, BOT, NAME, chat_id};
use super::room::{self, AGENT, person_of};
use crate::admit::{Admit, Linking, Which};
use angelia_contract::event::Event;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_core::admission::{Admitted, DropReason, Observed, link_command};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::EntryKind;
use angelia_core::secret::{Secret, random_hex};
use angelia_core::store::{
    CONNECTOR, Guest, LineRevision, NewEntry, NewLine, Person, Posted, Revision, Store,
};
use angelia_core::{clock, interrupt};
use bytes::Bytes;
use std::sync::Arc;

/// What a room shows of a typed `/link`: its code is nobody else's to read.
const LINK_SHOWN: &str = "/link …";

/// What the API works on.
pub(super) struct Api {
    pub(super) store: Arc<dyn Store>,
    pub(super) hub: Arc<Hub>,
    pub(super) admit: Arc<dyn Admit>,
    pub(super) source_flags: bool,
}

/// What became of something said.
pub(super) struct Said {
    pub(super) posted: Posted,
    /// Why no agent gets it, and what to do about it.
    pub(super) undelivered: Option<(&'static str, &'static str)>,
    /// What the connector itself answered.
    pub(super) answer: Option<String>,
}

impl Api {
    pub(super) async fn post(
        &self,
        guest: Guest,
        text: String,
        reply_to: Option<String>,
        client_id: Option<String>,
    ) -> Result<Said> {
        if let Some(code) = link_command(address::said(&text)) {
            let code = Secret::new(code);
            return self.link(guest, code, client_id).await;
        }
        let Guest { person, alone, .. } = guest;
        let line = new_line(person, text, reply_to, client_id);
        let addressed = alone || self.addresses(&line).await?;
        let (posted, undelivered) = match self.decide(&line, addressed) {
            Ok(admitted) => {
                let entry = self.entry(&line, admitted)?;
                (self.store.post_line(line, Some(entry)).await?, None)
            }
            // A line that nobody receives is still a line of the room; its writer is told.
            Err(reason) => {
                let posted = self.store.post_line(line.clone(), None).await?;
                if posted.new {
                    self.dropped(&line, addressed, reason);
                }
                (posted, Some((reason.as_str(), address::hint(reason))))
            }
        };
        Ok(Said { posted, undelivered, answer: None })
    }

    /// Changes a line, and what still waits of it for the agent; answers
    /// whether something did. Who gets it was decided when it was written.
    pub(super) async fn edit(&self, person: Person, message_id: &str, text: String) -> Result<bool> {
        if link_command(address::said(&text)).is_some() {
            return Err(Error::invalid("send /link as a message of its own, not as an edit"));
        }
        let line = self.store.line(&person.room, message_id).await?;
        let line = line.ok_or_else(|| Error::not_found("there is no such message in this room"))?;
        let message_id = line.message_id.clone();
        let changed = NewLine { message_id, ..new_line(person, text, line.reply_to, None) };
        let event = normalize::event(&changed, self.source_flags);
        let NewLine { room, message_id, author, text, .. } = changed;
        let entry = Revision {
            platform: NAME.into(),
            bot: BOT.into(),
            message_id: message_id.clone(),
            kind: kind(&event),
            body: written(&event)?,
        };
        self.store.revise_line(LineRevision { room, message_id, author, text, entry }).await
    }

    /// Stops what the agent does for a person; a button is no line of the room.
    pub(super) async fn stop(&self, person: Person) -> Result<String> {
        let line = new_line(person, "/stop".into(), None, None);
        let admitted = self.decide(&line, true).map_err(|reason| {
            self.dropped(&line, true, reason);
            Error::new(Kind::Forbidden, format!("{}: {}", reason.as_str(), address::hint(reason)))
        })?;
        self.store.append(self.entry(&line, admitted)?).await?;
        Ok(line.message_id)
    }

    /// Uses up a link code. The room sees that it was tried, and how it went.
    async fn link(&self, guest: Guest, code: Secret, client_id: Option<String>) -> Result<Said> {
        let Guest { person, first, .. } = guest;
        let typed = Linking {
            platform: NAME,
            bot: None,
            place: room::place(&person.room)?,
            author: person.user.clone(),
            private: person_of(&person.room).is_some(),
            administrator: first,
            code,
        };
        let answer = self.admit.link(typed).await?;
        let line = new_line(person, LINK_SHOWN.into(), None, client_id);
        let reply = NewLine {
            room: line.room.clone(),
            message_id: format!("wc{}", random_hex::<12>()),
            author: CONNECTOR.into(),
            from_agent: true,
            text: answer.clone(),
            reply_to: Some(line.message_id.clone()),
            client_id: None,
            at: line.at,
        };
        let posted = self.store.post_answered(line, reply).await?;
        Ok(Said { posted, undelivered: None, answer: Some(answer) })
    }

    /// Whether a line is meant for the agent, where it could be meant for others.
    async fn addresses(&self, line: &NewLine) -> Result<bool> {
        if person_of(&line.room).is_some() || address::addresses(&line.text) {
            return Ok(true);
        }
        let Some(reply_to) = &line.reply_to else { return Ok(false) };
        let answered = self.store.line(&line.room, reply_to).await?;
        Ok(answered.is_some_and(|answered| answered.from_agent && answered.author == AGENT))
    }

    fn decide(&self, line: &NewLine, addressed: bool) -> Result<Admitted, DropReason> {
        observe(line, addressed, |observed| self.admit.decide(observed))
    }

    fn dropped(&self, line: &NewLine, addressed: bool, reason: DropReason) {
        let which = Which { chat_id: &chat_id(&line.room), message_id: &line.message_id };
        observe(line, addressed, |observed| self.admit.dropped(observed, which, reason));
    }

    /// The inbox entry a line makes for the instance it is admitted to.
    fn entry(&self, line: &NewLine, admitted: Admitted) -> Result<NewEntry> {
        let event = normalize::event(line, self.source_flags);
        let kind = kind(&event);
        Ok(NewEntry {
            tenant: admitted.tenant,
            instance: admitted.instance,
            kind,
            platform: NAME.into(),
            bot: BOT.into(),
            chat_id: event.source.chat_id.as_str().into(),
            message_id: line.message_id.clone(),
            session_key: session_key(&event.source, &KeyOptions::default(), Rules::Published).into(),
            body: written(&event)?,
            ahead: kind == EntryKind::Stop,
            received_at: line.at,
        })
    }
}

/// What admission gets to see of a line.
fn observe<T>(line: &NewLine, addressed: bool, ask: impl FnOnce(Observed<'_>) -> T) -> T {
    ask(Observed {
        platform: NAME,
        bot: BOT,
        places: &[&line.room, "*"],
        author: &line.author,
        private: person_of(&line.room).is_some(),
        author_is_bot: false,
        addressed,
        // Gateways know the room by its chat id, people by its name.
        scopes: &[&chat_id(&line.room), &line.room],
    })
}

fn kind(event: &Event) -> EntryKind {
    if interrupt::is_stop(&event.text) { EntryKind::Stop } else { EntryKind::Message }
}

fn written(event: &Event) -> Result<Bytes> {
    let body = serde_json::to_vec(event).map_err(|_| Error::internal("the event could not be written"))?;
    Ok(body.into())
}

fn new_line(person: Person, text: String, reply_to: Option<String>, client_id: Option<String>) -> NewLine {
    NewLine {
        room: person.room,
        message_id: format!("wp{}", random_hex::<12>()),
        author: person.user,
        from_agent: false,
        text,
        reply_to,
        client_id,
        at: clock::wall(),
    }
}
