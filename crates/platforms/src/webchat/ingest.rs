//! What a person says: admitted to an instance, or a line of the room and no more.

use super::context::{addresses, which};
use super::files::Named;
use super::room::{self, chat_id, person_of};
use super::routes::{Answer, Answered, Api, Refusal, body};
use super::verify::Caller;
use super::{BOT, NAME, address};
use crate::admission::{Linking, Presence};
use crate::inbound;
use angelia_core::admission::{Admitted, DropReason, Observed, link_command};
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::WhenFull;
use angelia_core::own_words::{Language, OwnWords};
use angelia_core::secret::{Secret, random_hex};
use angelia_core::store::{
    CONNECTOR, Earlier, Guest, Line, LineRevision, NewEntry, NewLine, Person, Posted, Revised,
};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Longest text a person may post.
pub const MAX_POST_CHARS: usize = 8_000;
/// Longest id a client may give to a post.
const MAX_CLIENT_ID: usize = 64;

/// What a room shows of a typed `/link`: its code is nobody else's to read.
const LINK_SHOWN: &str = "/link …";

/// Entries in an inbox behind which visitors have to wait: far below its quota.
const VISITORS_WAIT_BEHIND: u64 = 500;

/// A post, as a client sends it. Who wrote it is not among its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Post {
    text: String,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    reply_to: Option<String>,
    /// The thread it is said in.
    #[serde(default)]
    thread: Option<String>,
    #[serde(default)]
    files: Vec<Named>,
}

/// Where somebody stops the agent.
#[derive(Deserialize)]
pub(super) struct Where {
    #[serde(default)]
    thread: Option<String>,
}

/// What an edit may change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    text: String,
}

/// A word for programs, and what a person can do about it.
type Why = (&'static str, &'static str);

/// Writes what a person says, and gives it to the agent it is for.
pub(super) async fn post(State(api): State<Arc<Api>>, caller: Caller, request: Request) -> Answered {
    let Post { text, reply_to, thread, client_id, files } = read_post(request).await?;
    api.check_pace(&caller)?;
    let Caller { guest, from, language, .. } = caller;
    if let Some(code) = link_command(address::said(&text)) {
        let code = Secret::new(code);
        // On its own, so that whoever hangs up and repeats it finds the answer.
        let linking = tokio::spawn(async move { api.link(guest, language, code, client_id).await });
        let broken = |_| Error::internal("the link was cut short; look whether the room is linked");
        return Ok(linking.await.map_err(broken)??);
    }
    let Guest { person, alone, visiting, .. } = guest;
    api.check_thread(&person.room, thread.as_deref()).await?;
    let files = api.files_of(&person.room, files).await?;
    let mut line = NewLine { files, reply_to, thread, client_id, ..new_line(person, text) };
    let answered = api.answered(&line).await?;
    let addressed = alone || addresses(&line, answered.as_ref());
    let decided = api.decide(&line, addressed);
    api.hold_back(visiting, &decided, language).await?;
    line.undelivered = decided.as_ref().err().copied();
    // A line that nobody receives is still a line of the room; its writer is told.
    let entry = decided.clone().ok().map(|admitted| api.entry(&line, admitted, answered.as_ref()));
    let posted = api.ports.lines.post_line(line.clone(), entry.transpose()?).await;
    if !posted.as_ref().is_ok_and(|posted| posted.new && !posted.no_instance)
        && let Ok(admitted) = &decided
    {
        api.give_back(&line, admitted);
    }
    let posted = match posted {
        // Only a full inbox says when to come back.
        Err(full) if full.retry_after().is_some() => {
            api.dropped(&line, addressed, DropReason::InboxFull);
            return Err(full.into());
        }
        posted => posted?,
    };
    api.doors.was_good(&line.room, from, clock::mono());
    if !posted.new {
        // Whoever lost the first answer must not take this one for a delivery.
        let undelivered = (!posted.entered).then(|| match decided {
            Err(reason) => why(reason, language),
            Ok(_) => ("not_delivered", OwnWords::EditNotDelivered.text(language)),
        });
        return Ok(told(&posted, undelivered, None));
    }
    let reason = if posted.no_instance { Some(DropReason::NoInstance) } else { decided.err() };
    if let Some(reason) = reason {
        api.dropped(&line, addressed, reason);
        api.overhear(&line, reason);
    }
    Ok(told(&posted, reason.map(|reason| why(reason, language)), None))
}

/// Changes a line and, if the new text is admitted to the agent that the old
/// one still waits for, what that agent will get. Otherwise it is told why it
/// gets the old text, or none.
pub(super) async fn edit(
    State(api): State<Arc<Api>>,
    Path((_, id)): Path<(String, String)>,
    caller: Caller,
    request: Request,
) -> Answered {
    let Edit { text } = body(request, r#"{"text": "hello"}"#).await?;
    check_text(&text)?;
    api.check_pace(&caller)?;
    let (person, language) = (caller.guest.person, caller.language);
    if link_command(address::said(&text)).is_some() {
        return Err(Error::invalid("send /link as a message of its own, not as an edit").into());
    }
    let line = api.line(&person.room, &id).await?;
    let changed = NewLine {
        message_id: line.message_id,
        files: line.files,
        reply_to: line.reply_to,
        thread: line.thread,
        ..new_line(person, text)
    };
    // A route may have moved since: an edit must not carry a text past it.
    // What waits was meant for the agent when it was written; who may speak to
    // it there is asked anew.
    let decided = api.decide(&changed, true);
    let answered = api.answered(&changed).await?;
    let revision = |admitted| {
        let event = api.event(&changed, &admitted, answered.as_ref(), true);
        inbound::revision(&api.bot, &event, admitted, changed.at)
    };
    let entry = decided.clone().ok().map(revision).transpose()?;
    let NewLine { room, message_id, author, text, .. } = changed.clone();
    let revised = api.ports.lines.revise_line(LineRevision { room, message_id, author, text, entry }).await?;
    api.reword(&changed);
    let kept = match (decided, revised) {
        (Err(reason), _) => Some(why(reason, language)),
        (Ok(_), Revised::Replaced) => None,
        (Ok(_), Revised::NotWaiting) => Some(("not_waiting", OwnWords::EditNotWaiting.text(language))),
        (Ok(_), Revised::Elsewhere) => Some(("moved", OwnWords::EditMoved.text(language))),
    };
    let mut answer = json!({ "message_id": id, "replaced": kept.is_none() });
    if let Some((reason, hint)) = kept {
        answer["reason"] = reason.into();
        answer["hint"] = hint.into();
    }
    Ok(Answer(StatusCode::OK, answer))
}

/// Stops what the agent does for a person; a button is no line of the room.
pub(super) async fn stop(
    State(api): State<Arc<Api>>,
    Query(Where { thread }): Query<Where>,
    caller: Caller,
) -> Answered {
    api.check_pace(&caller)?;
    let (Guest { person, visiting, .. }, language) = (caller.guest, caller.language);
    api.check_thread(&person.room, thread.as_deref()).await?;
    let line = NewLine { thread, ..new_line(person, "/stop".into()) };
    let refused = |reason: DropReason| {
        api.dropped(&line, true, reason);
        Error::new(Kind::Forbidden, format!("{}: {}", reason.as_str(), address::hint(reason, language)))
    };
    let decided = api.decide(&line, true);
    api.hold_back(visiting, &decided, language).await?;
    let admitted = decided.map_err(refused)?;
    match api.ports.log.append(api.entry(&line, admitted, None)?).await {
        Err(gone) if gone.kind() == Kind::NotFound => Err(refused(DropReason::NoInstance).into()),
        Err(failed) => Err(failed.into()),
        Ok(_) => Ok(Answer(StatusCode::ACCEPTED, json!({ "message_id": line.message_id }))),
    }
}

impl Api {
    /// Uses up a link code. The room sees that it was tried, and how it went.
    /// Repeated, it is not tried again: the code would be found used.
    async fn link(
        &self,
        guest: Guest,
        language: Language,
        code: Secret,
        client_id: Option<String>,
    ) -> Result<Answer> {
        let Guest { person, first, .. } = guest;
        let _turn = self.linking.lock().await;
        if let Some(client_id) = &client_id
            && let Some(Earlier { message_id, answer }) = self.ports.lines.earlier(&person, client_id).await?
        {
            let posted = Posted { message_id, new: false, no_instance: false, entered: false };
            return Ok(told(&posted, None, answer));
        }
        let typed = Linking {
            platform: NAME,
            bot: None,
            place: room::place(&person.room)?,
            author: person.user.clone(),
            private: person_of(&person.room).is_some(),
            administrator: first,
            code,
            language,
        };
        let answer = self.admission.link(typed).await?;
        let again = person.clone();
        let line = NewLine { client_id, ..new_line(person, LINK_SHOWN.into()) };
        let reply = NewLine {
            room: line.room.clone(),
            message_id: format!("wc{}", random_hex::<12>()),
            author: CONNECTOR.into(),
            from_agent: true,
            text: answer.clone(),
            reply_to: Some(line.message_id.clone()),
            at: line.at,
            ..NewLine::default()
        };
        let posted = self.ports.lines.post_answered(line.clone(), reply).await?;
        if !posted.new
            && let Some(client_id) = &line.client_id
            && let Some(Earlier { message_id, answer }) = self.ports.lines.earlier(&again, client_id).await?
        {
            // Sent through another node at the same time: the room has the answer of the first.
            return Ok(told(&Posted { message_id, ..posted }, None, answer));
        }
        self.dropped(&line, true, DropReason::Consumed);
        Ok(told(&posted, None, Some(answer)))
    }

    /// Whether what is to be said in a thread finds it.
    async fn check_thread(&self, room: &str, thread: Option<&str>) -> Result<()> {
        let Some(thread) = thread else { return Ok(()) };
        let opens = self.ports.lines.line(room, thread).await?;
        if opens.is_some_and(|line| line.thread_name.is_some()) {
            return Ok(());
        }
        Err(Error::not_found("there is no such thread in this room any more; write in the room itself"))
    }

    /// Everybody is heard in measure, whatever they do, and strangers less: each
    /// line costs a commit.
    pub(super) fn check_pace(&self, caller: &Caller) -> Result<()> {
        let Person { room, user } = &caller.guest.person;
        let now = clock::mono();
        if caller.guest.visiting {
            self.doors.check_pace(room, user, caller.from, now)?;
        }
        let mut posts = self.posts.lock();
        posts.take(&(room.clone(), user.clone()), self.pace, now).map_err(|wait| {
            Error::new(Kind::TooMany, OwnWords::RoomTooFast.text(caller.language)).retry_in(wait)
        })
    }

    /// Strangers not at all while much waits: an inbox is bounded, and what they say
    /// must leave room for the others.
    pub(super) async fn hold_back(
        &self,
        visiting: bool,
        decided: &Result<Admitted, DropReason>,
        language: Language,
    ) -> Result<()> {
        let Some(admitted) = decided.as_ref().ok().filter(|_| visiting) else { return Ok(()) };
        if self.ports.log.usage(admitted.instance).await?.entries >= VISITORS_WAIT_BEHIND {
            return Err(Error::unavailable(OwnWords::RoomMuchWaits.text(language)));
        }
        Ok(())
    }

    pub(super) fn decide(&self, line: &NewLine, addressed: bool) -> Result<Admitted, DropReason> {
        observe(line, addressed, |observed| self.admission.decide(observed))
    }

    /// Whether the agent of a person's room is there; `None` if there is none for them.
    pub(super) async fn agent(&self, person: &Person) -> Option<Presence> {
        let line = new_line(person.clone(), String::new());
        observe(&line, true, |observed| self.admission.presence(observed)).await
    }

    /// What people know the agent of a person's room by, if it has a name.
    pub(super) fn agent_name(&self, person: &Person) -> Option<String> {
        let line = new_line(person.clone(), String::new());
        observe(&line, true, |observed| self.admission.agent_name(observed))
    }

    pub(super) fn dropped(&self, line: &NewLine, addressed: bool, reason: DropReason) {
        let chat_id = chat_id(&line.room);
        observe(line, addressed, |observed| {
            self.admission.dropped(observed, which(line, &chat_id), reason);
        });
    }

    /// The inbox entry a line makes for the instance it is admitted to.
    fn entry(&self, line: &NewLine, admitted: Admitted, answered: Option<&Line>) -> Result<NewEntry> {
        let event = self.event(line, &admitted, answered, false);
        let entry = inbound::entry(&self.bot, &event, admitted, line.at)?;
        Ok(NewEntry { when_full: WhenFull::Refuse, ..entry })
    }
}

/// Why no agent gets a line, and what its writer can do about it.
pub(super) fn why(reason: DropReason, language: Language) -> Why {
    (reason.as_str(), address::hint(reason, language))
}

/// What admission gets to see of a line.
pub(super) fn observe<T>(line: &NewLine, addressed: bool, ask: impl FnOnce(Observed<'_>) -> T) -> T {
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

/// A line that somebody writes now.
pub(super) fn new_line(person: Person, text: String) -> NewLine {
    let message_id = format!("wp{}", random_hex::<12>());
    let Person { room, user: author } = person;
    NewLine { room, message_id, author, text, at: clock::wall(), ..NewLine::default() }
}

/// What a post's writer is told.
fn told(posted: &Posted, undelivered: Option<Why>, answered: Option<String>) -> Answer {
    let status = if posted.new { StatusCode::CREATED } else { StatusCode::OK };
    let mut answer = json!({ "message_id": posted.message_id });
    if let Some((reason, hint)) = undelivered {
        answer["undelivered"] = reason.into();
        answer["hint"] = hint.into();
    }
    if let Some(text) = answered {
        answer["answer"] = text.into();
    }
    Answer(status, answer)
}

async fn read_post(request: Request) -> Result<Post, Refusal> {
    let post: Post = body(request, r#"{"text": "hello", "client_id": "1"}"#).await?;
    if post.files.is_empty() || !post.text.is_empty() {
        check_text(&post.text)?;
    }
    let ids = [&post.client_id, &post.reply_to, &post.thread];
    if ids.into_iter().flatten().any(|id| id.is_empty() || id.len() > MAX_CLIENT_ID) {
        let why = format!("client_id, reply_to and thread have 1 to {MAX_CLIENT_ID} bytes");
        return Err(Error::invalid(why).into());
    }
    Ok(post)
}

fn check_text(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("the text is empty"));
    }
    if text.chars().count() > MAX_POST_CHARS {
        return Err(Error::invalid(format!("the text is longer than {MAX_POST_CHARS} characters")));
    }
    Ok(())
}
