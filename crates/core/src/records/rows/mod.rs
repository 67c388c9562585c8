//! The records, as they are kept.

mod commands;
mod directory;
mod journal;
mod lease;
mod media;
mod prompt;
mod seals;
mod thread;
mod tries;
mod vault;

pub use commands::{Commands, ManifestRow, RegisteredRow};
pub use directory::{ChatRow, CursorRow, MintedRow, MissedRow, NoticeRow, PieceRow, QuarantineRow};
pub use journal::{JournalRow, LedgerRow};
pub use lease::{LeaseRow, NodeRow};
pub use media::{BlobRow, FileRow, TenantFilesRow};
pub use prompt::PromptRow;
pub use seals::{SealedBlobRow, SealedCapabilityRow, SealedSecretRow, SealedTenantRow, SealedUpdateRow};
pub use thread::CreatedThreadRow;
pub use tries::{LinkTriesRow, Times};

use crate::admission::{Allow, Place, Policy, Route, RouteOptions};
use crate::audit::{AuditEntry, AuditLine, Sort};
use crate::clock::UnixMillis;
use crate::identity::Subject;
use crate::inbox::{AckHabit, InstanceId};
use crate::records::Record as _;
use crate::records::table::{Table, field, record};
use crate::store::{Client, CodeAllow, Fingerprint, LinkCode, Quarantined, TenantIdentity, Untold};
use crate::turns::WhileBusy;
use crate::vault::Capability;

/// Every table of records. What engines write and search is made of these.
pub const TABLES: [&Table; 44] = [
    NoteRow::TABLE,
    TenantRow::TABLE,
    RemovalRow::TABLE,
    TenantIdentity::TABLE,
    Client::TABLE,
    EnrollTokenRow::TABLE,
    LinkCode::TABLE,
    LinkTriesRow::TABLE,
    InstanceRow::TABLE,
    GatewayRow::TABLE,
    SecretRow::TABLE,
    RouteRow::TABLE,
    FrontRow::TABLE,
    PolicyRow::TABLE,
    ManifestRow::TABLE,
    RegisteredRow::TABLE,
    AuditRow::TABLE,
    AuditLine::TABLE,
    PersonRow::TABLE,
    LineRow::TABLE,
    LeaseRow::TABLE,
    NodeRow::TABLE,
    ChatRow::TABLE,
    PieceRow::TABLE,
    NoticeRow::TABLE,
    Untold::TABLE,
    CursorRow::TABLE,
    MintedRow::TABLE,
    QuarantineRow::TABLE,
    Quarantined::TABLE,
    MissedRow::TABLE,
    SealedTenantRow::TABLE,
    SealedSecretRow::TABLE,
    SealedUpdateRow::TABLE,
    SealedCapabilityRow::TABLE,
    SealedBlobRow::TABLE,
    Capability::TABLE,
    PromptRow::TABLE,
    CreatedThreadRow::TABLE,
    BlobRow::TABLE,
    FileRow::TABLE,
    TenantFilesRow::TABLE,
    JournalRow::TABLE,
    LedgerRow::TABLE,
];

field!(UnixMillis as i64, |at| at.0, |at| Some(UnixMillis(at)));
field!(InstanceId as i64, |instance| instance.0, |instance| Some(InstanceId(instance)));
field!(Subject as String, |subject| subject.as_str().to_owned(), |text| Some(Subject::stored(text)));
field!(Place as String, Place::to_string, |text| text.parse().ok());
field!(AckHabit as String, |habit| habit.as_str().to_owned(), |text| Some(
    AckHabit::parse(&text).unwrap_or_default()
));
// A word of a later release must not make the whole record unreadable.
field!(WhileBusy as String, |mode| mode.as_str().to_owned(), |text| Some(
    WhileBusy::parse(&text).unwrap_or_default()
));
field!(RouteOptions as String, |options| serde_json::json!(options).to_string(), |text| Some(
    serde_json::from_str(&text).unwrap_or_default()
));
field!(Allow as Option<String>, stored_allow, |text| match text {
    None => Some(Allow::Any),
    Some(list) => list_of(&list).map(Allow::People),
});
field!(CodeAllow as Option<String>, stored_code_allow, |text| match text.as_deref() {
    None => Some(CodeAllow::Typist),
    Some(ANYBODY) => Some(CodeAllow::Given(Allow::Any)),
    Some(list) => list_of(list).map(|people| CodeAllow::Given(Allow::People(people))),
});
field!(Names as String, |names| serde_json::json!(names.0).to_string(), |text| list_of(&text).map(Names));

/// Texts that are kept in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

/// How a stored code says that everybody may speak.
const ANYBODY: &str = "\"any\"";

fn stored_allow(allow: &Allow) -> Option<String> {
    match allow {
        Allow::Any => None,
        Allow::People(people) => Some(serde_json::json!(people).to_string()),
    }
}

fn stored_code_allow(allow: &CodeAllow) -> Option<String> {
    match allow {
        CodeAllow::Typist => None,
        CodeAllow::Given(Allow::Any) => Some(ANYBODY.to_owned()),
        CodeAllow::Given(people) => stored_allow(people),
    }
}

fn list_of(text: &str) -> Option<Vec<String>> {
    serde_json::from_str(text).ok()
}

record! {
    /// A small fact about the database itself.
    pub struct NoteRow in "notes", key 1 {
        /// Its name.
        name: String,
        /// What it says.
        value: Vec<u8>,
    }
}

record! {
    /// A tenant.
    pub struct TenantRow in "tenants", key 1, fed ["tenant"] {
        /// Its name.
        tenant: String,
        /// When it was made.
        created_at: UnixMillis,
        /// The instance that gets what no route assigns.
        default_instance: Option<InstanceId>,
        /// Sealed; made when its first gateway asks for it.
        delivery_key: Option<Vec<u8>>,
    }
}

record! {
    /// A tenant that is gone and left something that is not.
    pub struct RemovalRow in "removals", key 1 {
        /// The tenant.
        tenant: String,
    } foreign {
        /// Its rooms of the web chat.
        rooms: Names,
        /// The last of the lines it left in them.
        lines_to: i64,
    }
}

record! {
    impl TenantIdentity in "tenant_identities", key 2, fed ["issuer", "claim"], finds [["tenant"]] {
        issuer: String,
        claim: String,
        tenant: String,
    }
}

record! {
    impl Client in "clients", key 1, fed ["client_id"], finds [["tenant"]] {
        client_id: String,
        tenant: String,
        secret_fingerprint: Fingerprint,
        created_at: UnixMillis,
        revoked_at: Option<UnixMillis>,
    }
}

record! {
    /// A token that lets one gateway enrol, once.
    pub struct EnrollTokenRow in "enroll_tokens", key 1, finds [["tenant"]] {
        /// What recognises it.
        fingerprint: Fingerprint,
        /// The tenant it is for.
        tenant: String,
        /// The only gateway it is for.
        gateway_id: Option<String>,
        /// Whether that gateway existed when the token was made.
        replaces: bool,
        /// Until when it is good.
        expires_at: UnixMillis,
    }
}

record! {
    impl LinkCode in "link_codes", key 1, finds [["tenant"]] {
        fingerprint: Fingerprint,
        tenant: String,
        instance: Option<InstanceId>,
        allow: CodeAllow,
        free: bool,
        expires_at: UnixMillis,
    }
}

record! {
    /// A delivery destination, without what its log keeps in the same row.
    pub struct InstanceRow in "instances", key 1, fed ["instance"], finds [["tenant"], ["tenant", "name"]] {
        /// Its number, never given again.
        instance: InstanceId,
        /// Its tenant.
        tenant: String,
        /// Its name within the tenant; empty while it waits for the tenant's first gateway.
        name: String,
        /// Who made it; `None` for the operator.
        subject: Option<Subject>,
    } foreign {
        /// Whether its gateway said it goes idle.
        idle: bool,
        /// What is known of how its gateway acknowledges.
        ack_habit: AckHabit,
        /// What waits, dead letters left out.
        waiting: i64,
    }
}

record! {
    /// A gateway, without its secrets.
    pub struct GatewayRow in "gateways", key 2, fed ["tenant", "gateway_id"], finds [["tenant"], ["instance"], ["tenant", "revoked_at"]] {
        /// Its tenant.
        tenant: String,
        /// Its id.
        gateway_id: String,
        /// The instance it serves.
        instance: InstanceId,
        /// Where to poke it.
        wake_url: Option<String>,
        /// When it was made.
        created_at: UnixMillis,
        /// When it was revoked.
        revoked_at: Option<UnixMillis>,
        /// Who enrolled it; `None` for the operator.
        subject: Option<Subject>,
        /// What people see it called.
        display_name: Option<String>,
        /// What becomes of messages while it is busy, where their route says nothing.
        while_busy: Option<WhileBusy>,
        /// Whether all people of a group are one conversation with it.
        shared_groups: bool,
    }
}

record! {
    /// One secret of a gateway.
    pub struct SecretRow in "gateway_secrets", key 1, fed ["tenant", "gateway_id"], finds [["tenant"], ["tenant", "gateway_id"]] {
        /// Its number; grows.
        id: i64,
        /// The tenant of its gateway.
        tenant: String,
        /// Its gateway.
        gateway_id: String,
        /// The secret, sealed.
        sealed: Vec<u8>,
        /// Until when it is good; `None` for the current one.
        valid_until: Option<UnixMillis>,
        /// When it was made.
        created_at: UnixMillis,
    }
}

record! {
    /// A route.
    pub struct RouteRow in "routes", key 2, fed ["place", "bot"], finds [["tenant"], ["instance"]] {
        /// The place it covers.
        place: Place,
        /// The bot it is for; empty for every bot.
        bot: String,
        /// The tenant the place belongs to.
        tenant: String,
        /// The instance that receives.
        instance: Option<InstanceId>,
        /// Who may speak there.
        allow: Allow,
        /// Whether messages that do not address the bot are delivered too.
        free: bool,
        /// What becomes of messages while the agent is busy.
        while_busy: Option<WhileBusy>,
        /// What else it says.
        options: RouteOptions,
    }
}

record! {
    /// A bot that an instance answers for.
    pub struct FrontRow in "fronts", key 3, fed ["instance"], finds [["instance"]] {
        /// The instance.
        instance: InstanceId,
        /// The platform.
        platform: String,
        /// The bot; empty for every bot.
        bot: String,
    }
}

record! {
    /// What an instance asked to be spared on a platform.
    pub struct PolicyRow in "policies", key 2, fed ["instance", "platform"], finds [["instance"]] {
        /// The instance.
        instance: InstanceId,
        /// The platform.
        platform: String,
        /// Whether messages in groups must address the bot.
        require_address: bool,
        /// Where they need not.
        free_scopes: Names,
        /// Whether messages of other bots are delivered.
        allow_other_bots: bool,
    }
}

record! {
    /// A line of the audit log that is to be written.
    pub struct AuditRow in "audit", key 0, long true {
        /// When.
        at: UnixMillis,
        /// Who.
        actor: String,
        /// What.
        action: String,
        /// Whose.
        tenant: String,
        /// To which thing.
        target: String,
        /// `done`, or `refused` and why.
        outcome: String,
        /// What else is worth knowing.
        detail: String,
        /// With which lines it is counted.
        sort: String,
    }
}

record! {
    impl AuditLine in "audit", key 1, finds [["tenant"]], long true {
        id: i64,
    } foreign {
        at: UnixMillis,
        actor: String,
        action: String,
        tenant: String,
        target: String,
        outcome: String,
        detail: String,
    }
}

record! {
    /// A key of a room of the web chat.
    pub struct PersonRow in "webchat_people", key 1, fed ["room", "user"], finds [["room"], ["room", "user"]] {
        /// What recognises it.
        key_fingerprint: Fingerprint,
        /// The room.
        room: String,
        /// Who holds it.
        user: String,
        /// Since when.
        created_at: UnixMillis,
        /// Of those who let themselves in, until when.
        visits_until: Option<UnixMillis>,
    }
}

record! {
    /// A line of a room, as far as rules look at it.
    pub struct LineRow in "webchat_lines", key 1, finds [["room"]] {
        /// Its number; grows.
        id: i64,
    } foreign {
        /// The room.
        room: String,
        /// Who wrote it.
        author: String,
    }
}

impl AuditRow {
    /// The line that tells of an entry.
    pub fn of(entry: &AuditEntry, at: UnixMillis) -> Self {
        Self {
            at,
            actor: entry.actor.as_str().to_owned(),
            action: entry.action.to_owned(),
            tenant: entry.tenant.clone(),
            target: entry.target.clone(),
            outcome: entry.outcome.clone(),
            detail: entry.detail.clone(),
            sort: Sort::of(entry).as_str().to_owned(),
        }
    }
}

impl From<Route> for RouteRow {
    fn from(Route { place, bot, tenant, instance, allow, free, while_busy, options }: Route) -> Self {
        Self { place, bot: bot.unwrap_or_default(), tenant, instance, allow, free, while_busy, options }
    }
}

impl From<RouteRow> for Route {
    fn from(RouteRow { place, bot, tenant, instance, allow, free, while_busy, options }: RouteRow) -> Self {
        let bot = (!bot.is_empty()).then_some(bot);
        Self { place, bot, tenant, instance, allow, free, while_busy, options }
    }
}

impl From<PolicyRow> for Policy {
    fn from(PolicyRow { require_address, free_scopes, allow_other_bots, .. }: PolicyRow) -> Self {
        Self { require_address, free_scopes: free_scopes.0, allow_other_bots }
    }
}
