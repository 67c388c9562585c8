//! Appending many events, to however many instances.

use super::NOW;
use super::given::{Given, bytes, number, numbers, signed, some_text, text, texts};
use super::post::{self, Asked, Post};
use crate::store::footprint;
use angelia_core::inbox::{CONVERSATION_REFRESH, Entry, InstanceId, Mark, Quota, Seq};
use angelia_core::ports::log::NewEntry;
use angelia_core::ports::{Hint, HintKind};
use angelia_core::turns::WhileBusy;
use std::borrow::Cow;
use std::sync::LazyLock;
use tokio_postgres::{Error, Row};

/// The part of an inbox that is left for chats that hold little: below it there is nothing to decide.
const SMALL_SHARE: u64 = 8;
/// The same of a tenant's share of the disk.
const SPARE: u64 = 16;

/// Numbers what is new for instances that are locked and have ample room, and writes it. Of what
/// is left it says nothing; what must not be left, with whatever came along, fails.
pub(super) static APPEND: LazyLock<String> = LazyLock::new(|| {
    let is_usual = &*post::IS_USUAL;
    let refresh = CONVERSATION_REFRESH.as_millis();
    format!(
        "WITH given AS (
             SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                                  $19, $20) WITH ORDINALITY AS
             g (instance, kind, platform, bot, chat_id, message_id, session_key, ahead, received_at, body,
                while_busy, tenant, footprint, required, line, room, author, client_id, room_lines, room_bytes, ord)
         ), wanted AS (
             SELECT instance, count(*) AS entries, sum(length(body)) AS bytes FROM given GROUP BY instance
         ), ample AS (
             SELECT i.instance, i.tail, i.redrives FROM instances i JOIN wanted w USING (instance)
             WHERE i.waiting + w.entries <= $21 AND i.bytes + w.bytes <= $22
               AND coalesce((SELECT u.bytes FROM tenant_usage u WHERE u.tenant = i.tenant), 0)
                   + (SELECT sum(f.footprint) FROM given f WHERE f.tenant = i.tenant) <= $23
               AND (i.name = '' OR EXISTS (
                   SELECT 1 FROM gateways w WHERE w.instance = i.instance AND w.revoked_at IS NULL))
         ), fresh AS (
             SELECT g.*, a.redrives, a.tail + row_number() OVER (PARTITION BY g.instance ORDER BY g.ord) AS seq
             FROM given g JOIN ample a USING (instance)
             WHERE NOT EXISTS (
                 SELECT 1 FROM journal j WHERE j.message_id = g.message_id AND j.chat_id = g.chat_id
                 AND j.platform = g.platform AND j.bot = g.bot AND j.kind = g.kind)
             AND (g.room IS NULL OR ({is_usual}))
         ), noted AS (
             INSERT INTO journal (message_id, kind, platform, bot, chat_id, tenant, instance, received_at,
                                  appended_at, seq)
             SELECT message_id, kind, platform, bot, chat_id, tenant, instance, received_at, {NOW}, seq
             FROM fresh ORDER BY ord RETURNING id, instance, seq
         ), put AS (
             INSERT INTO inbox (instance, seq, kind, platform, bot, chat_id, message_id, session_key, ahead,
                                received_at, body, journal, while_busy)
             SELECT f.instance, f.seq, f.kind, f.platform, f.bot, f.chat_id, f.message_id, f.session_key, f.ahead,
                    f.received_at, f.body, n.id, f.while_busy
             FROM fresh f JOIN noted n ON n.instance = f.instance AND n.seq = f.seq
         ), talked AS (
             INSERT INTO conversations (tenant, session_key, instance, chat_id, last_at)
             SELECT DISTINCT ON (tenant, session_key) tenant, session_key, instance, chat_id, {NOW}
             FROM fresh ORDER BY tenant, session_key, ord DESC
             ON CONFLICT (tenant, session_key) DO UPDATE
             SET instance = excluded.instance, chat_id = excluded.chat_id, last_at = excluded.last_at
             WHERE conversations.instance <> excluded.instance OR conversations.chat_id <> excluded.chat_id
                   OR conversations.last_at < excluded.last_at - {refresh}
         ), counted AS (
             UPDATE instances i SET tail = i.tail + f.entries, waiting = i.waiting + f.entries,
                                    bytes = i.bytes + f.bytes
             FROM (SELECT instance, count(*) AS entries, sum(length(body)) AS bytes FROM fresh GROUP BY instance) f
             WHERE i.instance = f.instance
         ), kept AS (
             INSERT INTO tenant_usage (tenant, bytes)
             SELECT tenant, sum(footprint) FROM fresh GROUP BY tenant ORDER BY tenant
             ON CONFLICT (tenant) DO UPDATE SET bytes = tenant_usage.bytes + excluded.bytes
         )
         SELECT g.ord - 1, f.seq, f.redrives,
                CASE WHEN g.required = 1 AND f.seq IS NULL THEN 1 / (g.ord - g.ord) END
         FROM given g LEFT JOIN fresh f ON f.ord = g.ord ORDER BY g.ord"
    )
});

/// Events, column by column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    instances: Vec<i64>,
    kinds: Vec<Cow<'a, str>>,
    platforms: Vec<Cow<'a, str>>,
    bots: Vec<Cow<'a, str>>,
    chats: Vec<Cow<'a, str>>,
    messages: Vec<Cow<'a, str>>,
    session_keys: Vec<Cow<'a, str>>,
    ahead: Vec<i64>,
    received_at: Vec<i64>,
    bodies: Vec<&'a [u8]>,
    while_busy: Vec<Option<Cow<'a, str>>>,
    tenants: Vec<Cow<'a, str>>,
    footprints: Vec<i64>,
    required: Vec<i64>,
    /// Of what people post.
    asked: Asked<'a>,
    entries: i64,
    bytes: i64,
    tenant_bytes: i64,
}

impl<'a> Columns<'a> {
    pub(super) fn new(quota: &Quota) -> Self {
        Self {
            entries: signed(quota.entries - quota.entries / SMALL_SHARE),
            bytes: signed(quota.bytes - quota.bytes / SMALL_SHARE),
            tenant_bytes: signed(quota.tenant_bytes - quota.tenant_bytes / SPARE),
            ..Self::default()
        }
    }

    /// Adds an event; one that is `required` must not be left, and what a person posts goes with
    /// its line.
    pub(super) fn push(&mut self, entry: &'a NewEntry, required: bool, post: Option<Post<'a>>) {
        let (waiting, journal) = footprint::new_entry(entry);
        self.instances.push(entry.instance.0);
        self.kinds.push(entry.kind.as_str().into());
        self.platforms.push(text(&entry.platform));
        self.bots.push(text(&entry.bot));
        self.chats.push(text(&entry.chat_id));
        self.messages.push(text(&entry.message_id));
        self.session_keys.push(text(&entry.session_key));
        self.ahead.push(entry.ahead.into());
        self.received_at.push(entry.received_at.0);
        self.bodies.push(&entry.body);
        self.while_busy.push(some_text(entry.while_busy.map(WhileBusy::as_str)));
        self.tenants.push(text(&entry.tenant));
        self.footprints.push(signed(waiting + journal));
        self.required.push(required.into());
        self.asked.push(post);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    pub(super) fn given(&self) -> Vec<Given<'_>> {
        let mut given = vec![
            numbers(&self.instances),
            texts(&self.kinds),
            texts(&self.platforms),
            texts(&self.bots),
            texts(&self.chats),
            texts(&self.messages),
            texts(&self.session_keys),
            numbers(&self.ahead),
            numbers(&self.received_at),
            bytes(&self.bodies),
            texts(&self.while_busy),
            texts(&self.tenants),
            numbers(&self.footprints),
            numbers(&self.required),
        ];
        given.extend(self.asked.given());
        given.extend([number(&self.entries), number(&self.bytes), number(&self.tenant_bytes)]);
        given
    }
}

/// The place of an event in the batch, and its place in its log; `None` if it was left.
pub(super) fn read(row: &Row) -> Result<Option<(usize, Mark)>, Error> {
    let (place, seq, redrives): (i64, Option<i64>, Option<i64>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let place = usize::try_from(place).unwrap_or_default();
    Ok(seq.zip(redrives).map(|(seq, redrives)| {
        (place, Mark { tail: Seq(seq), redrives: u64::try_from(redrives).unwrap_or_default() })
    }))
}

/// What is told of an event that is in its log.
pub(super) fn hint(new: &NewEntry, mark: Mark) -> Hint {
    let entry = Entry {
        seq: mark.tail,
        kind: new.kind,
        platform: new.platform.clone(),
        bot: new.bot.clone(),
        chat_id: new.chat_id.clone(),
        session_key: new.session_key.clone(),
        body: new.body.clone(),
        revision: 0,
        while_busy: new.while_busy,
    };
    let kind = if new.ahead { HintKind::Ahead } else { HintKind::Appended };
    Hint::Log { instance: InstanceId(new.instance.0), mark, entry, kind }
}
