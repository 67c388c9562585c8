//! What was received while nobody listened. Twilio posts a message once; what
//! did not get through then is in its list.

use super::parse::{Attachment, Listed, ListedFile, MAX_MEDIA, Received, file_at, sid};
use super::take::Took;
use super::{Sms, address, date};
use crate::ingress::Ingress;
use crate::kit::{ApiError, ErrorKind, Position, Watch};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::Result;
use angelia_core::store::{Intake, Missed, StreamStore};
use std::sync::Arc;
use std::time::Duration;

/// How often Twilio is asked what was received.
const EVERY: Duration = Duration::from_secs(5 * 60);
/// The first pause after Twilio could not be asked; it doubles up to [`EVERY`].
const AGAIN: Duration = Duration::from_secs(20);
/// How long a posted message waits for the first look. Twilio gives up after 15 s.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// Pages read at once, of a hundred messages each: a day of one every 17 s.
const MAX_PAGES: usize = 50;

/// How soon Twilio is asked once more for the files of a message.
const FILES_AGAIN: Duration = Duration::from_secs(1);
/// The longest that is waited with that if Twilio wants a pause.
const FILES_PATIENCE: Duration = Duration::from_secs(10);
/// Messages of one look whose files Twilio may fail to name. After that it is not asked
/// for any more of them, so that texts do not wait for pictures.
const MAX_WITHOUT_FILES: usize = 3;

/// Why the rest was not read.
const TOO_MANY: &str =
    "more messages came while nobody listened than are read back; see them in Twilio's console";
/// The same, where the list does not go on at Twilio.
const ELSEWHERE: &str = "the list of messages went on at another address than the account's, which was not \
                         asked; see them in Twilio's console, and that `api_url`, if it is set, is right";

/// For how long, in seconds, what a full inbox did not take is tried again. Much
/// shorter than the journal remembers what others got.
const HELD_BACK_FOR: i64 = 24 * 3600;
const FULL_FOR_LONG: &str = "the agent's inbox was full for a day; see the message in Twilio's console";

/// A message in Twilio's list, and when it came.
struct Found {
    received: Received,
    /// Files that came with it, which are not listed yet.
    files: usize,
    at: i64,
}

impl Found {
    fn is_recent(&self, now: UnixMillis) -> bool {
        now.0 / 1000 - self.at < HELD_BACK_FOR
    }

    /// What is said of one that no inbox had room for.
    fn missed(&self) -> Missed {
        let at = UnixMillis(self.at * 1000);
        let (chat_id, after) = (Some(self.received.from.clone()), Some(self.received.sid.clone()));
        Missed { chat_id, after, since: at, until: at, why: FULL_FOR_LONG.into() }
    }
}

/// What a look at the list found.
struct Look {
    /// Oldest first.
    found: Vec<Found>,
    /// Why there is more that is older, and was not read.
    cut: Option<&'static str>,
}

impl Sms {
    /// Looks at what was received, at once and from time to time, until it is time to stop.
    pub(super) async fn keep_up(self: &Arc<Self>, ingress: &Ingress) {
        // What came while another node listened comes before what is posted from now on.
        self.looked.send_replace(false);
        let mut watch = Watch::new(&ingress.stop, EVERY, AGAIN, EVERY);
        while watch.next(self.look_back(ingress).await).await.is_ok() {}
    }

    /// The same once; answers whether that was possible.
    async fn look_back(self: &Arc<Self>, ingress: &Ingress) -> bool {
        let looked = self.catch_up(ingress).await;
        self.looked.send_replace(true);
        let health = &self.account.health;
        match &looked {
            Ok(()) => health.heard(),
            Err(error) => {
                tracing::warn!(bot = %self.config.name, %error, "what was received could not be read back");
                health.count("lists_failed");
                health.down_if_silent(&error.to_string());
            }
        }
        looked.is_ok()
    }

    /// Waits a little for the first look: what somebody wrote before the start
    /// comes before what they write now.
    pub(super) async fn after_first_look(&self) {
        let mut looked = self.looked.subscribe();
        let _ = tokio::time::timeout(FIRST_LOOK, looked.wait_for(|looked| *looked)).await;
    }

    /// Takes in what is missing since the last look, oldest first.
    pub(super) async fn catch_up(self: &Arc<Self>, ingress: &Ingress) -> Result<()> {
        let from = self.begin(ingress).await?;
        let Look { found, cut } = self.look(from).await?;
        let oldest = found.first().map(|first| first.at);
        let (mut taken, mut without_files) = (Vec::with_capacity(found.len()), 0);
        let (mut refused_at, mut full) = (None, Vec::new());
        for mut one in found {
            if ingress.stop.is_now() {
                return Ok(());
            }
            if !self.knows(ingress, &one.received).await? && !self.is_known(ingress, &one.received).await? {
                if one.files > 0 {
                    self.add_files(&mut one, &mut without_files).await;
                }
                match self.take(ingress, &one.received).await? {
                    Took::Message => self.account.health.count("read_back"),
                    Took::Nothing => {}
                    // One agent's inbox is full. The others' messages do not wait for that.
                    Took::Full if one.is_recent(clock::wall()) => {
                        refused_at.get_or_insert(one.at);
                        continue;
                    }
                    // Beyond it the list would be read from so far back that what others
                    // got in the meantime is forgotten, and comes to them once more.
                    Took::Full => full.push(one.missed()),
                }
            }
            taken.push((one.at, one.received.sid));
        }
        if let Some(why) = cut {
            let since = UnixMillis(from * 1000);
            let until = oldest.map_or_else(clock::wall, |second| UnixMillis(second * 1000));
            let missed = Missed { chat_id: None, after: None, since, until, why: why.into() };
            ingress.ports.records.note_missed(&self.account.key, vec![missed]).await?;
        }
        if !full.is_empty() {
            ingress.ports.records.note_missed(&self.account.key, full).await?;
        }
        // What was refused is looked at again, so nothing from there on counts as read.
        taken.retain(|(at, _)| refused_at.is_none_or(|refused| *at < refused));
        self.advance(ingress, taken).await
    }

    /// The second to look from on. A number that was never read begins now, and
    /// that is written down before anything else.
    async fn begin(&self, ingress: &Ingress) -> Result<i64> {
        let position = self.position(ingress).await?;
        if Position::read(&ingress.ports.records.cursors(&self.account.key).await?).is_none() {
            let intake = Intake { cursor: Some(position.cursor()), ..Intake::default() };
            self.account.commit(&position.ingress(ingress), intake).await?;
        }
        Ok(position.from())
    }

    /// Notes how far the list was read, and what it had.
    async fn advance(&self, ingress: &Ingress, taken: Vec<(i64, String)>) -> Result<()> {
        let mut position = self.position(ingress).await?;
        let mut after = position.clone();
        after.listed(taken);
        if after == *position {
            return Ok(());
        }
        let intake = Intake { cursor: Some(after.cursor()), ..Intake::default() };
        self.account.commit(&position.ingress(ingress), intake).await?;
        *position = after;
        Ok(())
    }

    /// What the number received from that second on.
    async fn look(&self, from: i64) -> Result<Look> {
        let mut path = Some(self.api.first_page(&self.config.id, from));
        let (mut found, mut pages, mut cut) = (Vec::new(), 0, None);
        while let Some(next) = path.take().filter(|_| pages < MAX_PAGES) {
            let page = self.api.page(&next).await?;
            pages += 1;
            let mut past = page.messages.is_empty();
            for listed in page.messages {
                let at = [&listed.date_sent, &listed.date_created];
                let at = at.into_iter().flatten().find_map(|text| date::read(text)).unwrap_or(from);
                past |= at < from;
                if at >= from
                    && let Some(one) = self.read_listed(listed, at)
                {
                    found.push(one);
                }
            }
            path = page.next_page_uri.filter(|_| !past);
            if page.is_cut && !past {
                cut = Some(ELSEWHERE);
            } else if pages == MAX_PAGES && path.is_some() {
                cut = Some(TOO_MANY);
            }
        }
        // The list is newest first.
        found.reverse();
        Ok(Look { found, cut })
    }

    fn read_listed(&self, listed: Listed, at: i64) -> Option<Found> {
        // Twilio was asked for that; a stand-in may list everything.
        let ours =
            listed.direction.as_deref() == Some("inbound") && listed.to.as_deref() == Some(&self.config.id);
        if !ours {
            return None;
        }
        let files = listed.files();
        let from = listed.from.filter(|from| address::is_sender(from));
        let (Some(sid), Some(from)) = (sid(listed.sid.as_deref()), from) else {
            self.account.health.count("unreadable");
            return None;
        };
        let received = Received {
            sid,
            from,
            to: self.config.id.clone(),
            body: listed.body.unwrap_or_default(),
            ..Received::default()
        };
        Some(Found { received, files, at })
    }

    /// Names the files of a message. Where Twilio does not, the message has as many,
    /// and nobody can fetch them: later messages do not wait for that.
    async fn add_files(&self, one: &mut Found, without_files: &mut usize) {
        let unnamed = vec![Attachment::default(); one.files.min(MAX_MEDIA)];
        if *without_files >= MAX_WITHOUT_FILES {
            self.account.health.count("files_unnamed");
            one.received.media = unnamed;
            return;
        }
        let files = match self.files(&one.received.sid).await {
            Ok(files) => Ok(files),
            Err(ApiError { kind: ErrorKind::Refused(_), .. }) => Ok(Vec::new()),
            Err(ApiError { kind, .. }) => {
                let pause = match kind {
                    ErrorKind::Limited { after, .. } => after.min(FILES_PATIENCE),
                    _ => FILES_AGAIN,
                };
                tokio::time::sleep(pause).await;
                self.files(&one.received.sid).await
            }
        };
        one.received.media = files.unwrap_or_else(|why| {
            tracing::warn!(bot = %self.config.name, %why, "the files of a message could not be asked for");
            *without_files += 1;
            Vec::new()
        });
        if one.received.media.is_empty() {
            self.account.health.count("files_unnamed");
            one.received.media = unnamed;
        }
    }

    async fn files(&self, message: &str) -> Result<Vec<Attachment>, ApiError> {
        let one = |file: ListedFile| {
            let id = sid(file.sid.as_deref());
            let url = id.as_ref().and_then(|id| self.api.file_url(message, id)).unwrap_or_default();
            Attachment { url, at: id.and_then(|id| file_at(message, &id)), mime: file.content_type }
        };
        Ok(self.api.files(message).await?.media_list.into_iter().take(MAX_MEDIA).map(one).collect())
    }
}
