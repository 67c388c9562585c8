//! What a person says: admitted to an instance, or a line of the room and no more.

use super::address;
use super::guide::Guides;
use super::hub::Hub;
use super::normalize::{self, BOT, NAME, chat_id};
use super::read::Reads;
use super::room::{self, AGENT, person_of};
use super::visit::OpenDoors;
use crate::admission::{Admission, Linking, Which};
use crate::inbound;
use angelia_core::admission::{Admitted, DropReason, Observed, link_command};
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::limit::{GcraOf, Rate};
use angelia_core::limit_per_address::Address;
use angelia_core::ports::Ports;
use angelia_core::secret::{Secret, random_hex};
use angelia_core::store::{
    CONNECTOR, Earlier, Guest, LineRevision, NewEntry, NewLine, Person, Posted, Revised, Revision, Unrelayed,
};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::Mutex;

/// What a room shows of a typed `/link`: its code is nobody else's to read.
const LINK_SHOWN: &str = "/link …";

/// Entries in an inbox behind which visitors have to wait: far below its quota.
const VISITORS_WAIT_BEHIND: u64 = 500;

/// Why an edit reaches no agent although its text is admitted.
const NOT_WAITING: Why =
    ("not_waiting", "the agent has the old text, or was never sent this message: write a new one");
const NOT_DELIVERED: Why = ("not_delivered", "it reached nobody when it was said first: say it again");
const MOVED: Why =
    ("moved", "the old text waits for another agent than the one of this room now: write a new message");

/// What the API works on.
pub(super) struct Api {
    pub(super) ports: Ports,
    pub(super) hub: Arc<Hub>,
    pub(super) admission: Arc<dyn Admission>,
    pub(super) source_flags: bool,
    pub(super) bot: BotKey,
    /// One `/link` at a time: a repeated one must find the answer of the first.
    pub(super) linking: Mutex<()>,
    /// The rooms anybody may enter.
    pub(super) doors: OpenDoors,
    pub(super) guides: Arc<Guides>,
    /// Who is being given lines.
    pub(super) reads: Reads,
    /// How fast people write, by room and name.
    pub(super) pace: Rate,
    /// By room and name.
    pub(super) posts: parking_lot::Mutex<GcraOf<(String, String)>>,
}

/// A post, as a client sends it. Who wrote it is not among its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Post {
    pub(super) text: String,
    #[serde(default)]
    pub(super) client_id: Option<String>,
    #[serde(default)]
    pub(super) reply_to: Option<String>,
    #[serde(default)]
    pub(super) files: Vec<Unrelayed>,
}

/// A word for programs, and what a person can do about it.
type Why = (&'static str, &'static str);

/// What became of something said.
pub(super) struct Said {
    pub(super) posted: Posted,
    /// Why no agent gets it.
    pub(super) undelivered: Option<Why>,
    /// What the connector itself answered.
    pub(super) answer: Option<String>,
}

impl Api {
    pub(super) async fn post(self: &Arc<Self>, guest: Guest, from: Address, post: Post) -> Result<Said> {
        self.check_pace(&guest, from)?;
        let Post { text, reply_to, client_id, files } = post;
        if let Some(code) = link_command(address::said(&text)) {
            let (api, code) = (self.clone(), Secret::new(code));
            // On its own, so that whoever hangs up and repeats it finds the answer.
            let linking = tokio::spawn(async move { api.link(guest, code, client_id).await });
            let broken = |_| Error::internal("the link was cut short; look whether the room is linked");
            return linking.await.map_err(broken)?;
        }
        let Guest { person, alone, visiting, .. } = guest;
        let mut line = NewLine { files, ..new_line(person, text, reply_to, client_id) };
        let addressed = alone || self.addresses(&line).await?;
        let decided = self.decide(&line, addressed);
        self.hold_back(visiting, &decided).await?;
        line.undelivered = decided.as_ref().err().copied();
        // A line that nobody receives is still a line of the room; its writer is told.
        let entry = decided.clone().ok().map(|admitted| self.entry(&line, admitted)).transpose()?;
        let posted = match self.ports.lines.post_line(line.clone(), entry).await {
            // Only a full inbox says when to come back.
            Err(full) if full.retry_after().is_some() => {
                self.dropped(&line, addressed, DropReason::InboxFull);
                return Err(full);
            }
            posted => posted?,
        };
        self.doors.was_good(&line.room, from, clock::mono());
        if !posted.new {
            // Whoever lost the first answer must not take this one for a delivery.
            let undelivered = (!posted.entered).then(|| decided.err().map_or(NOT_DELIVERED, why));
            return Ok(Said { posted, undelivered, answer: None });
        }
        let reason = if posted.no_instance { Some(DropReason::NoInstance) } else { decided.err() };
        if let Some(reason) = reason {
            self.dropped(&line, addressed, reason);
        }
        Ok(Said { posted, undelivered: reason.map(why), answer: None })
    }

    /// Changes a line and, if the new text is admitted to the agent that the old
    /// one still waits for, what that agent will get. An error within is why it
    /// gets the old text, or none.
    pub(super) async fn edit(
        &self,
        guest: Guest,
        from: Address,
        message_id: &str,
        text: String,
    ) -> Result<std::result::Result<(), Why>> {
        self.check_pace(&guest, from)?;
        let Guest { person, .. } = guest;
        if link_command(address::said(&text)).is_some() {
            return Err(Error::invalid("send /link as a message of its own, not as an edit"));
        }
        let line = self.ports.lines.line(&person.room, message_id).await?;
        let line = line.ok_or_else(|| Error::not_found("there is no such message in this room"))?;
        let message_id = line.message_id.clone();
        let changed =
            NewLine { message_id, files: line.files, ..new_line(person, text, line.reply_to, None) };
        // A route may have moved since: an edit must not carry a text past it.
        // What waits was meant for the agent when it was written; who may speak to
        // it there is asked anew.
        let decided = self.decide(&changed, true);
        let entry = decided.clone().ok().map(|admitted| self.revision(&changed, admitted)).transpose()?;
        let NewLine { room, message_id, author, text, .. } = changed;
        let revised =
            self.ports.lines.revise_line(LineRevision { room, message_id, author, text, entry }).await?;
        Ok(match (decided, revised) {
            (Err(reason), _) => Err(why(reason)),
            (Ok(_), Revised::Replaced) => Ok(()),
            (Ok(_), Revised::NotWaiting) => Err(NOT_WAITING),
            (Ok(_), Revised::Elsewhere) => Err(MOVED),
        })
    }

    /// Stops what the agent does for a person; a button is no line of the room.
    pub(super) async fn stop(&self, guest: Guest, from: Address) -> Result<String> {
        self.check_pace(&guest, from)?;
        let Guest { person, visiting, .. } = guest;
        let line = new_line(person, "/stop".into(), None, None);
        let refused = |reason: DropReason| {
            self.dropped(&line, true, reason);
            Error::new(Kind::Forbidden, format!("{}: {}", reason.as_str(), address::hint(reason)))
        };
        let decided = self.decide(&line, true);
        self.hold_back(visiting, &decided).await?;
        let admitted = decided.map_err(refused)?;
        match self.ports.log.append(self.entry(&line, admitted)?).await {
            Err(gone) if gone.kind() == Kind::NotFound => Err(refused(DropReason::NoInstance)),
            appended => appended.map(|_| line.message_id.clone()),
        }
    }

    /// Uses up a link code. The room sees that it was tried, and how it went.
    /// Repeated, it is not tried again: the code would be found used.
    async fn link(&self, guest: Guest, code: Secret, client_id: Option<String>) -> Result<Said> {
        let Guest { person, first, .. } = guest;
        let _turn = self.linking.lock().await;
        if let Some(client_id) = &client_id
            && let Some(Earlier { message_id, answer }) = self.ports.lines.earlier(&person, client_id).await?
        {
            let posted = Posted { message_id, new: false, no_instance: false, entered: false };
            return Ok(Said { posted, undelivered: None, answer });
        }
        let typed = Linking {
            platform: NAME,
            bot: None,
            place: room::place(&person.room)?,
            author: person.user.clone(),
            private: person_of(&person.room).is_some(),
            administrator: first,
            code,
        };
        let answer = self.admission.link(typed).await?;
        let line = new_line(person, LINK_SHOWN.into(), None, client_id);
        let reply_id = format!("wc{}", random_hex::<12>());
        let reply = NewLine {
            from_agent: true,
            reply_to: Some(line.message_id.clone()),
            at: line.at,
            ..room::line(line.room.clone(), reply_id, CONNECTOR.into(), answer.clone())
        };
        let posted = self.ports.lines.post_answered(line.clone(), reply).await?;
        self.dropped(&line, true, DropReason::Consumed);
        Ok(Said { posted, undelivered: None, answer: Some(answer) })
    }

    /// Whether a line is meant for the agent, where it could be meant for others.
    async fn addresses(&self, line: &NewLine) -> Result<bool> {
        if person_of(&line.room).is_some() || address::addresses(&line.text) {
            return Ok(true);
        }
        let Some(reply_to) = &line.reply_to else { return Ok(false) };
        let answered = self.ports.lines.line(&line.room, reply_to).await?;
        Ok(answered.is_some_and(|answered| answered.from_agent && answered.author == AGENT))
    }

    /// Everybody is heard in measure, whatever they do, and strangers less: each
    /// line costs a commit.
    fn check_pace(&self, guest: &Guest, from: Address) -> Result<()> {
        let Person { room, user } = &guest.person;
        let now = clock::mono();
        if guest.visiting {
            self.doors.check_pace(room, user, from, now)?;
        }
        let mut posts = self.posts.lock();
        posts.take(&(room.clone(), user.clone()), self.pace, now).map_err(|wait| {
            let why = "you write faster than is taken from one person: nothing was written, try again after a pause";
            Error::new(Kind::TooMany, why).retry_in(wait)
        })
    }

    /// Strangers not at all while much waits: an inbox is bounded, and what they say
    /// must leave room for the others.
    async fn hold_back(&self, visiting: bool, decided: &Result<Admitted, DropReason>) -> Result<()> {
        let Some(admitted) = decided.as_ref().ok().filter(|_| visiting) else { return Ok(()) };
        if self.ports.log.usage(admitted.instance).await?.entries >= VISITORS_WAIT_BEHIND {
            return Err(Error::unavailable("much waits for the agent already; try again later"));
        }
        Ok(())
    }

    fn decide(&self, line: &NewLine, addressed: bool) -> Result<Admitted, DropReason> {
        observe(line, addressed, |observed| self.admission.decide(observed))
    }

    /// Whether the agent of a person's room is connected; `None` if there is none for them.
    pub(super) fn is_agent_present(&self, person: &Person) -> Option<bool> {
        let line = new_line(person.clone(), String::new(), None, None);
        observe(&line, true, |observed| self.admission.is_present(observed))
    }

    fn dropped(&self, line: &NewLine, addressed: bool, reason: DropReason) {
        let which = Which { chat_id: &chat_id(&line.room), thread_id: None, message_id: &line.message_id };
        observe(line, addressed, |observed| self.admission.dropped(observed, which, reason));
    }

    /// What a changed line says to the instance it is admitted to.
    fn revision(&self, line: &NewLine, admitted: Admitted) -> Result<Revision> {
        inbound::revision(&self.bot, &normalize::event(line, self.source_flags), admitted, line.at)
    }

    /// The inbox entry a line makes for the instance it is admitted to.
    fn entry(&self, line: &NewLine, admitted: Admitted) -> Result<NewEntry> {
        inbound::refusable(&self.bot, &normalize::event(line, self.source_flags), admitted, line.at)
    }
}

fn why(reason: DropReason) -> Why {
    (reason.as_str(), address::hint(reason))
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
        engaged: None,
        // Gateways know the room by its chat id, people by its name.
        scopes: &[&chat_id(&line.room), &line.room],
    })
}

fn new_line(person: Person, text: String, reply_to: Option<String>, client_id: Option<String>) -> NewLine {
    let message_id = format!("wp{}", random_hex::<12>());
    NewLine { reply_to, client_id, ..room::line(person.room, message_id, person.user, text) }
}
