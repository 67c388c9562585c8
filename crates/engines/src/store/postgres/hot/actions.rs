//! What is done to many actions: accepted, begun, finished.

use super::NOW;
use super::given::{Given, bytes, number, numbers, signed, some_text, text, texts};
use crate::store::footprint::{self, ACTION_LENGTHS};
use angelia_core::egress::Owner;
use angelia_core::inbox::Quota;
use angelia_core::ports::{ActionId, ActionOutcome, NewAction};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The part of a tenant's share of the disk above which there is something to decide.
const SPARE: u64 = 16;

/// Writes actions down whose owner is not replaced, whose tenant has ample room, and for which
/// nobody waits behind an interaction. All of one request, or none of it.
pub(super) const ACCEPT: &str = "WITH given AS (
        SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
        WITH ORDINALITY AS g (request, owner, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op,
                              edits, reply_to, received_at, body, footprint, answers, answered_chat, ord)
    ), left_out AS (
        SELECT DISTINCT g.request FROM given g
        WHERE EXISTS (SELECT 1 FROM replaced_owners r WHERE r.owner = g.owner)
           OR g.owner < coalesce((SELECT value FROM counters WHERE name = 'ledger_first_owner'), 0)
           OR coalesce((SELECT u.bytes FROM tenant_usage u WHERE u.tenant = g.tenant), 0)
              + (SELECT sum(f.footprint) FROM given f WHERE f.tenant = g.tenant) > $18
           OR (g.answers = 1 AND EXISTS (
               SELECT 1 FROM capabilities c WHERE c.instance = g.instance AND c.chat_id = g.answered_chat))
    ), numbered AS (
        SELECT nextval('actions_id_seq') AS id, o.* FROM (
            SELECT * FROM given WHERE request NOT IN (SELECT request FROM left_out) ORDER BY ord) o
    ), accepted AS (
        INSERT INTO actions (id, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits, reply_to,
                             state, owner, received_at, body)
        SELECT id, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits, reply_to,
               'accepted', owner, received_at, body FROM numbered ORDER BY ord
    ), kept AS (
        INSERT INTO tenant_usage (tenant, bytes)
        SELECT tenant, sum(footprint) FROM numbered GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE SET bytes = tenant_usage.bytes + excluded.bytes
    )
    SELECT request, id FROM numbered ORDER BY ord";

/// Actions to be accepted, column by column.
#[derive(Default)]
pub(super) struct Accepts<'a> {
    requests: Vec<i64>,
    owners: Vec<i64>,
    tenants: Vec<Cow<'a, str>>,
    instances: Vec<i64>,
    gateways: Vec<Option<Cow<'a, str>>>,
    platforms: Vec<Cow<'a, str>>,
    bots: Vec<Cow<'a, str>>,
    chats: Vec<Cow<'a, str>>,
    threads: Vec<Option<Cow<'a, str>>>,
    ops: Vec<Cow<'a, str>>,
    edits: Vec<Option<Cow<'a, str>>>,
    replies: Vec<Option<Cow<'a, str>>>,
    received_at: Vec<i64>,
    bodies: Vec<&'a [u8]>,
    footprints: Vec<i64>,
    answers: Vec<i64>,
    answered: Vec<Option<Cow<'a, str>>>,
    tenant_bytes: i64,
}

impl<'a> Accepts<'a> {
    pub(super) fn new(quota: &Quota) -> Self {
        Self { tenant_bytes: signed(quota.tenant_bytes - quota.tenant_bytes / SPARE), ..Self::default() }
    }

    pub(super) fn push(&mut self, request: usize, by: Owner, action: &'a NewAction) {
        self.requests.push(signed(request));
        self.owners.push(by.0);
        self.tenants.push(text(&action.tenant));
        self.instances.push(action.instance.0);
        self.gateways.push(some_text(action.gateway_id.as_deref()));
        self.platforms.push(text(&action.platform));
        self.bots.push(text(&action.bot));
        self.chats.push(text(&action.chat_id));
        self.threads.push(some_text(action.thread_id.as_deref()));
        self.ops.push(text(&action.op));
        self.edits.push(some_text(action.edits.as_deref()));
        self.replies.push(some_text(action.reply_to.as_deref()));
        self.received_at.push(action.received_at.0);
        self.bodies.push(&action.body);
        self.footprints.push(signed(footprint::new_action(action)));
        self.answers.push(action.answering.is_some().into());
        self.answered.push(some_text(action.answering.as_ref().map(|it| &*it.chat_id)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn given(&self) -> Vec<Given<'_>> {
        vec![
            numbers(&self.requests),
            numbers(&self.owners),
            texts(&self.tenants),
            numbers(&self.instances),
            texts(&self.gateways),
            texts(&self.platforms),
            texts(&self.bots),
            texts(&self.chats),
            texts(&self.threads),
            texts(&self.ops),
            texts(&self.edits),
            texts(&self.replies),
            numbers(&self.received_at),
            bytes(&self.bodies),
            numbers(&self.footprints),
            numbers(&self.answers),
            texts(&self.answered),
            number(&self.tenant_bytes),
        ]
    }
}

/// Begins actions that nobody took up and that wait; the others are left.
pub(super) static BEGIN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE actions a SET state = 'sending', begun_at = {NOW}, begun_by = g.owner
         FROM unnest($1, $2) AS g (id, owner)
         WHERE a.id = g.id AND a.owner = g.owner AND a.state = 'accepted'
         AND NOT EXISTS (SELECT 1 FROM adoptions t WHERE t.action = a.id)
         RETURNING a.id"
    )
});

/// Actions that are begun, column by column.
#[derive(Default)]
pub(super) struct Begins {
    ids: Vec<i64>,
    owners: Vec<i64>,
}

impl Begins {
    pub(super) fn push(&mut self, by: Owner, id: ActionId) {
        self.ids.push(id.0);
        self.owners.push(by.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn given(&self) -> Vec<Given<'_>> {
        vec![numbers(&self.ids), numbers(&self.owners)]
    }
}

/// Finishes actions that nobody took up and that answer no interaction; the others are left.
pub(super) static FINISH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH before AS (
             SELECT a.id, a.tenant, action_footprint({ACTION_LENGTHS}) AS footprint, g.state AS ended,
                    g.message AS said, g.failure AS why
             FROM actions a JOIN unnest($1, $2, $3, $4, $5) AS g (id, owner, state, message, failure) ON a.id = g.id
             WHERE a.owner = g.owner AND a.state IN ('accepted', 'sending') AND a.capability IS NULL
             AND NOT EXISTS (SELECT 1 FROM adoptions t WHERE t.action = a.id)
             ORDER BY a.id FOR NO KEY UPDATE OF a
         ), ended AS (
             UPDATE actions a SET state = b.ended, message_id = b.said, error = b.why, finished_at = {NOW}, body = NULL
             FROM before b WHERE a.id = b.id
             RETURNING a.id, a.tenant, action_footprint({lengths}) AS footprint
         ), freed AS (
             SELECT b.tenant, CAST(sum(e.footprint - b.footprint) AS BIGINT) AS bytes
             FROM before b JOIN ended e USING (id) GROUP BY b.tenant
         ), kept AS (
             UPDATE tenant_usage u SET bytes = greatest(u.bytes + f.bytes, 0)
             FROM freed f WHERE u.tenant = f.tenant
         )
         SELECT id FROM ended",
        lengths = ACTION_LENGTHS
            .replace("octet_length(", "octet_length(a.")
    )
    .replace(
        &format!("action_footprint({ACTION_LENGTHS})"),
        &format!("action_footprint({})", ACTION_LENGTHS.replace("octet_length(", "octet_length(a.")),
    )
});

/// Actions that end, column by column.
#[derive(Default)]
pub(super) struct Finishes<'a> {
    ids: Vec<i64>,
    owners: Vec<i64>,
    states: Vec<Cow<'a, str>>,
    messages: Vec<Option<Cow<'a, str>>>,
    errors: Vec<Option<Cow<'a, str>>>,
}

impl<'a> Finishes<'a> {
    pub(super) fn push(&mut self, by: Owner, ends: &'a [(ActionId, ActionOutcome)]) {
        for (id, outcome) in ends.iter().filter(|(_, outcome)| outcome.state.is_over()) {
            self.ids.push(id.0);
            self.owners.push(by.0);
            self.states.push(outcome.state.as_str().into());
            self.messages.push(some_text(outcome.message_id.as_deref()));
            self.errors.push(some_text(outcome.error.as_deref()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn given(&self) -> Vec<Given<'_>> {
        vec![
            numbers(&self.ids),
            numbers(&self.owners),
            texts(&self.states),
            texts(&self.messages),
            texts(&self.errors),
        ]
    }
}
