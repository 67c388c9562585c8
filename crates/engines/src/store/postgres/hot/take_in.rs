//! Taking in what many bots received: what they learn of chats, and how far they have read.
//! Their entries are appended with all others.

use super::NOW;
use super::given::{Given, numbers, some_text, text, texts};
use angelia_core::directory::{BotKey, Chat};
use angelia_core::lease;
use angelia_core::ports::{Cursor, Intake, Traffic, Under};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Whether everything of an intake is done here; what is left is done one by one.
pub(super) fn is_usual(intakes: &[Intake]) -> bool {
    let usual = |intake: &Intake| {
        intake.capability.is_none()
            && intake.press.is_none()
            && !intake.opens
            && !intake.follows
            && intake.revision.is_none()
            && intake.withdrawals.is_empty()
            && intake.quarantined.is_none()
            && intake.patience.is_none()
    };
    intakes.iter().all(usual)
}

/// Has nobody take or give back leases until the end.
pub(super) const SHARE: &str = "SELECT 1 FROM leases WHERE name = ANY($1) ORDER BY name FOR SHARE";
/// Fails if one of them is not held under the token that is given.
pub(super) const FENCE: &str =
    "SELECT CASE WHEN l.token IS DISTINCT FROM g.token THEN 1 / (g.ord - g.ord) END
    FROM unnest($1, $2) WITH ORDINALITY AS g (name, token, ord) LEFT JOIN leases l ON l.name = g.name";

/// Keeps what providers say of chats now.
pub(super) const LEARN: &str =
    "INSERT INTO chats (platform, bot, chat_id, kind, parent, scope, name, topic, person,
                                                   roles, language)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (platform, bot, chat_id) DO UPDATE
    SET kind = excluded.kind, parent = excluded.parent, scope = excluded.scope, name = excluded.name,
        topic = excluded.topic, person = excluded.person, roles = excluded.roles,
        language = coalesce(excluded.language, chats.language)
    WHERE (chats.kind, chats.parent, chats.scope, chats.name, chats.topic, chats.person, chats.roles,
           chats.language) IS DISTINCT FROM
          (excluded.kind, excluded.parent, excluded.scope, excluded.name, excluded.topic,
           excluded.person, excluded.roles, coalesce(excluded.language, chats.language))";
/// Notes the newest messages of chats that are known.
pub(super) const TRAFFIC: &str = "UPDATE chats c SET last_message = g.message_id, last_at = g.at
    FROM unnest($1, $2, $3, $4, $5) AS g (platform, bot, chat_id, message_id, at)
    WHERE c.platform = g.platform AND c.bot = g.bot AND c.chat_id = g.chat_id
      AND (c.last_at IS NULL OR c.last_at <= g.at)";
/// Notes which instances were addressed in chats.
pub(super) const ENGAGE: &str = "UPDATE chats c SET engaged = g.instance
    FROM unnest($1, $2, $3, $4) AS g (platform, bot, chat_id, instance)
    WHERE c.platform = g.platform AND c.bot = g.bot AND c.chat_id = g.chat_id
      AND c.engaged IS DISTINCT FROM g.instance";
/// Notes how far streams were read.
pub(super) static ADVANCE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO cursors (platform, bot, stream, position, at)
         SELECT platform, bot, stream, position, {NOW}
         FROM unnest($1, $2, $3, $4) AS g (platform, bot, stream, position)
         ON CONFLICT (platform, bot, stream) DO UPDATE SET position = excluded.position, at = excluded.at
         WHERE cursors.position <> excluded.position"
    )
});

/// What bots received but for their entries; of each row the last word.
#[derive(Default)]
pub(super) struct Learnt<'a> {
    leases: BTreeSet<(String, Option<i64>)>,
    chats: BTreeMap<(&'a BotKey, &'a str), &'a Chat>,
    languages: BTreeMap<(&'a BotKey, &'a str), &'static str>,
    traffic: BTreeMap<(&'a BotKey, &'a str), &'a Traffic>,
    engaged: BTreeMap<(&'a BotKey, &'a str), i64>,
    cursors: BTreeMap<(&'a BotKey, &'a str), &'a Cursor>,
}

impl<'a> Learnt<'a> {
    pub(super) fn push(&mut self, bot: &'a BotKey, under: Option<&Under>, intakes: &'a [Intake]) {
        if let Some(Under { lease, token }) = under {
            self.leases.insert((lease.clone(), Some(token.0)));
        } else if intakes.iter().any(|intake| intake.cursor.is_some()) {
            self.leases.insert((lease::of_bot(bot), None));
        }
        for intake in intakes {
            for chat in &intake.chats {
                self.chats.insert((bot, &*chat.chat_id), chat);
                // Where nothing is said of it, what was said before stays.
                if let Some(language) = chat.language {
                    self.languages.insert((bot, &*chat.chat_id), language.as_str());
                }
            }
            for seen in &intake.traffic {
                let newest = self.traffic.entry((bot, &*seen.chat_id)).or_insert(seen);
                if newest.at <= seen.at {
                    *newest = seen;
                }
            }
            let engaged = intake.engaged.iter();
            self.engaged.extend(engaged.map(|(chat, instance)| ((bot, &**chat), instance.0)));
            self.cursors.extend(intake.cursor.iter().map(|cursor| ((bot, &*cursor.stream), cursor)));
        }
    }

    /// Column by column.
    pub(super) fn columns(&self) -> Columns<'_> {
        let mut columns = Columns::default();
        for (name, token) in &self.leases {
            columns.leases.push(text(name));
            columns.tokens.push(*token);
        }
        for (key @ (bot, _), chat) in &self.chats {
            columns.learnt.push(bot, &chat.chat_id);
            columns.kinds.push(chat.kind.as_str().into());
            let said = [&chat.parent, &chat.scope, &chat.name, &chat.topic, &chat.person];
            let said = said.map(|it| some_text(it.as_deref()));
            columns.said.iter_mut().zip(said).for_each(|(column, value)| column.push(value));
            columns.roles.push(serde_json::json!(chat.roles).to_string().into());
            columns.languages.push(some_text(self.languages.get(key).copied()));
        }
        for ((bot, chat), seen) in &self.traffic {
            columns.seen.push(bot, chat);
            columns.messages.push(text(&seen.message_id));
            columns.seen_at.push(seen.at.0);
        }
        for ((bot, chat), instance) in &self.engaged {
            columns.engaged.push(bot, chat);
            columns.instances.push(*instance);
        }
        for ((bot, stream), cursor) in &self.cursors {
            columns.read.push(bot, stream);
            columns.positions.push(text(&cursor.position));
        }
        columns
    }
}

/// What names rows: a platform, a bot, and something of it.
#[derive(Default)]
struct Keys<'a>(Vec<Cow<'a, str>>, Vec<Cow<'a, str>>, Vec<Cow<'a, str>>);

impl<'a> Keys<'a> {
    fn push(&mut self, bot: &'a BotKey, of: &'a str) {
        self.0.push(text(&bot.platform));
        self.1.push(text(&bot.bot));
        self.2.push(text(of));
    }

    fn given(&self) -> Vec<Given<'_>> {
        vec![texts(&self.0), texts(&self.1), texts(&self.2)]
    }
}

#[derive(Default)]
pub(super) struct Columns<'a> {
    leases: Vec<Cow<'a, str>>,
    tokens: Vec<Option<i64>>,
    learnt: Keys<'a>,
    kinds: Vec<Cow<'a, str>>,
    said: [Vec<Option<Cow<'a, str>>>; 5],
    roles: Vec<Cow<'a, str>>,
    languages: Vec<Option<Cow<'a, str>>>,
    seen: Keys<'a>,
    messages: Vec<Cow<'a, str>>,
    seen_at: Vec<i64>,
    engaged: Keys<'a>,
    instances: Vec<i64>,
    read: Keys<'a>,
    positions: Vec<Cow<'a, str>>,
}

impl Columns<'_> {
    /// The leases that stay as they are until the end. Taken before owners are: whoever takes a
    /// bot over has its lease, and then changes its owner.
    pub(super) fn leases(&self) -> Option<Vec<Given<'_>>> {
        (!self.leases.is_empty()).then(|| vec![texts(&self.leases)])
    }

    /// The statements that there is something for, in their order, and what they are given.
    pub(super) fn statements(&self) -> Vec<(&str, Vec<Given<'_>>)> {
        let mut statements: Vec<(&str, Vec<Given<'_>>)> = Vec::new();
        if !self.leases.is_empty() {
            statements.push((FENCE, vec![texts(&self.leases), numbers(&self.tokens)]));
        }
        if !self.kinds.is_empty() {
            let mut given = self.learnt.given();
            given.push(texts(&self.kinds));
            given.extend(self.said.iter().map(texts));
            given.extend([texts(&self.roles), texts(&self.languages)]);
            statements.push((LEARN, given));
        }
        if !self.messages.is_empty() {
            let mut given = self.seen.given();
            given.extend([texts(&self.messages), numbers(&self.seen_at)]);
            statements.push((TRAFFIC, given));
        }
        if !self.instances.is_empty() {
            let mut given = self.engaged.given();
            given.push(numbers(&self.instances));
            statements.push((ENGAGE, given));
        }
        if !self.positions.is_empty() {
            let mut given = self.read.given();
            given.push(texts(&self.positions));
            statements.push((&ADVANCE, given));
        }
        statements
    }
}
