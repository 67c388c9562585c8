//! What waits, and what became of a message.

use super::Admin;
use super::gateways::gateway;
use super::other_nodes;
use super::types::{Dropped, Nothing, Purged};
use angelia_core::admission::DropReason;
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::ListedInbox;
use angelia_core::problems::{Place, fill};
use angelia_core::store::{ActionTrace, BoxFuture, Edits, IdentityStore, JournalStore, Listed, MessageTrace};
use std::sync::Arc;

asked! {
    /// Which inboxes, and which of their entries.
    pub struct Selection {
        /// One entry, such as b123.
        pub entry: Option<String>,
        /// The inbox of this gateway.
        pub gateway: Option<String>,
        /// All inboxes of a tenant, or whose gateway it is.
        pub tenant: Option<String>,
        /// Only dead letters.
        #[serde(default)]
        pub dead: bool,
    }
}

answered! {
    /// What waits, per instance.
    pub struct Inboxes {
        /// One for each instance.
        pub inboxes: Vec<ListedInbox>,
    }

    /// Entries, without their text.
    pub struct Entries {
        /// The oldest first.
        pub entries: Vec<Listed>,
    }

    /// Dead letters that are in line again.
    pub struct Redriven {
        /// How many.
        pub redriven: u64,
    }

    /// Which way a message took.
    pub struct Explained {
        /// As it was received.
        pub messages: Vec<ExplainedMessage>,
        /// As an agent wrote it.
        pub actions: Vec<ExplainedAction>,
        /// Why it reached nobody. Each node remembers that of the last messages it dropped.
        pub drops: Vec<ExplainedDrop>,
        /// Nodes that did not answer in time, and may know more of the drops.
        pub not_asked: Vec<String>,
    }

    /// A message that reached nobody, and what to do about it.
    pub struct ExplainedDrop {
        /// What is known of it.
        #[serde(flatten)]
        pub dropped: Dropped,
        /// What its reason means.
        pub means: String,
        /// Why that usually comes about.
        pub cause: String,
        /// The command that mends it; empty if it is as it should be.
        pub next: String,
    }

    /// The way of one received message, and what was answered.
    pub struct ExplainedMessage {
        /// Its way.
        #[serde(flatten)]
        pub message: MessageTrace,
        /// What the agent wrote in answer.
        pub replies: Vec<ExplainedAction>,
    }

    /// The way of one outbound action, and how often its message was changed since.
    pub struct ExplainedAction {
        /// Its way.
        #[serde(flatten)]
        pub action: ActionTrace,
        /// How often its message was changed.
        pub edits: u64,
        /// When it was changed last.
        pub last_edit_at: Option<UnixMillis>,
    }
}

/// Entries in one listing.
const PAGE: usize = 1_000;

/// The inboxes that a selection means; `None` for all there are.
struct Chosen(Option<Vec<InstanceId>>);

impl Chosen {
    fn holds(&self, instance: InstanceId) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.contains(&instance))
    }

    /// One by one, as the store takes them; all at once where nothing was chosen.
    fn each(&self) -> Vec<Option<InstanceId>> {
        self.0.as_ref().map_or(vec![None], |chosen| chosen.iter().copied().map(Some).collect())
    }
}

impl Selection {
    /// The inboxes it means: of a gateway, else of a tenant, else all.
    async fn choose(&self, admin: &Admin) -> Result<Chosen> {
        if let Some(id) = &self.gateway {
            return gateway(admin, self.tenant.as_deref(), id)
                .map(|record| Chosen(Some(vec![record.instance])));
        }
        let Some(tenant) = &self.tenant else { return Ok(Chosen(None)) };
        if !admin.ports.records.tenants().await?.contains(tenant) {
            return Err(Error::not_found(format!("there is no tenant {tenant:?}")));
        }
        let mut instances = admin.ports.records.instances().await?;
        instances.retain(|instance| instance.tenant == *tenant);
        Ok(Chosen(Some(instances.iter().map(|instance| instance.instance).collect())))
    }

    /// The entry it names, in the inboxes it means; `None` if it names none.
    async fn named(&self, admin: &Admin, chosen: &Chosen) -> Result<Option<Listed>> {
        let Some(text) = &self.entry else { return Ok(None) };
        let seq = Seq::from_buffer_id(text)
            .ok_or_else(|| Error::invalid(format!("{text:?} is not an entry; they look like b123")))?;
        let mut entries = admin.ports.inboxes.numbered(seq).await?;
        entries.retain(|entry| chosen.holds(entry.instance));
        match entries.len() {
            0 => Err(gone(text)),
            1 => Ok(entries.pop()),
            many => Err(Error::conflict(format!(
                "{many} inboxes have an entry {text}: say whose it is with --tenant or --gateway"
            ))),
        }
    }

    /// Does something to the named entry, or to every chosen inbox.
    async fn act<'a>(
        &self,
        admin: &'a Admin,
        act: impl Fn(Option<InstanceId>, Option<Seq>) -> BoxFuture<'a, Result<u64>>,
    ) -> Result<u64> {
        let chosen = self.choose(admin).await?;
        let Some(entry) = self.named(admin, &chosen).await? else {
            let mut count = 0;
            for instance in chosen.each() {
                count += act(instance, None).await?;
            }
            return Ok(count);
        };
        let count = act(Some(entry.instance), Some(entry.seq)).await?;
        if count == 0 {
            return Err(gone(&entry.seq.buffer_id()));
        }
        Ok(count)
    }
}

fn gone(entry: &str) -> Error {
    Error::not_found(format!(
        "there is no entry {entry}; it was delivered, thrown away or never here: angelia explain {entry}"
    ))
}

pub(super) async fn list_inboxes(admin: Arc<Admin>, selection: Selection) -> Result<Inboxes> {
    let chosen = selection.choose(&admin).await?;
    let mut inboxes = admin.ports.inboxes.inboxes().await?;
    inboxes.retain(|inbox| chosen.holds(inbox.instance));
    // Where nobody is, and nothing waits for anybody, there is nothing to tell.
    inboxes.retain(|inbox| {
        !admin.identities.now().awaits_first(inbox.instance) || inbox.waiting > 0 || !inbox.gaps.is_empty()
    });
    for inbox in &mut inboxes {
        inbox.name = admin.identities.now().shown(inbox.instance, std::mem::take(&mut inbox.name));
    }
    Ok(Inboxes { inboxes })
}

pub(super) async fn list_entries(admin: Arc<Admin>, selection: Selection) -> Result<Entries> {
    let mut entries = listed(&admin, &selection).await?;
    for entry in &mut entries {
        entry.name = admin.identities.now().shown(entry.instance, std::mem::take(&mut entry.name));
    }
    Ok(Entries { entries })
}

/// The named entry, or those of the chosen inboxes, the oldest first.
async fn listed(admin: &Admin, selection: &Selection) -> Result<Vec<Listed>> {
    let chosen = selection.choose(admin).await?;
    if let Some(entry) = selection.named(admin, &chosen).await? {
        if selection.dead && entry.dead_at.is_none() {
            return Err(Error::not_found(format!("{} is no dead letter", entry.seq.buffer_id())));
        }
        return Ok(vec![entry]);
    }
    let mut entries = Vec::new();
    for instance in chosen.each() {
        entries.extend(admin.ports.inboxes.entries(instance, selection.dead, PAGE).await?);
    }
    entries.sort_by_key(|entry| (entry.received_at.0, entry.instance, entry.seq));
    entries.truncate(PAGE);
    Ok(entries)
}

pub(super) async fn redrive(admin: Arc<Admin>, selection: Selection) -> Result<Redriven> {
    let chosen = selection.choose(&admin).await?;
    if let Some(entry) = selection.named(&admin, &chosen).await?
        && entry.dead_at.is_none()
    {
        return Err(Error::conflict(format!(
            "{} is no dead letter: it is in line already",
            entry.seq.buffer_id()
        )));
    }
    let operator = Actor::operator();
    let redriven = selection.act(&admin, |i, seq| admin.ports.inboxes.redrive(i, seq, &operator)).await?;
    Ok(Redriven { redriven })
}

pub(super) async fn purge(admin: Arc<Admin>, selection: Selection) -> Result<Purged> {
    let operator = Actor::operator();
    let purged = selection.act(&admin, |i, seq| admin.ports.inboxes.purge(i, seq, &operator)).await?;
    Ok(Purged { purged })
}

pub(super) async fn explain(admin: Arc<Admin>, message: String, _: Nothing) -> Result<Explained> {
    let messages = admin.ports.records.explain(&message).await?;
    let actions = admin.ports.records.explain_action(&message).await?;
    let (drops, not_asked) = other_nodes::drops_of(&admin, &message).await;
    if messages.is_empty() && actions.is_empty() && drops.is_empty() {
        let silent = match not_asked.as_slice() {
            [] => String::new(),
            nodes => format!("; {} did not answer, and may know that it was dropped", nodes.join(", ")),
        };
        return Err(Error::not_found(format!(
            "nothing is known of message {message:?}; the journal goes back 72 hours{silent}"
        )));
    }
    let mut told = Vec::new();
    for mut message in messages {
        let replies = with_edits(&admin, std::mem::take(&mut message.replies)).await?;
        message.instance_name = admin.identities.now().shown(message.instance, message.instance_name);
        told.push(ExplainedMessage { message, replies });
    }
    let drops = drops.into_iter().map(|dropped| explained(&admin, dropped)).collect();
    Ok(Explained { messages: told, actions: with_edits(&admin, actions).await?, drops, not_asked })
}

/// Why a message reached nobody, and what to do about it. A reason of a newer node is told as it is.
fn explained(admin: &Admin, dropped: Dropped) -> ExplainedDrop {
    let Some(problem) = DropReason::parse(&dropped.reason).map(DropReason::problem) else {
        return ExplainedDrop { dropped, ..ExplainedDrop::default() };
    };
    // Where it was written in a place that has a route, the route is what has to be mended.
    let known = admin.identities.now();
    let path = dropped.place.split_once(':').map_or("", |(_, path)| path);
    let wider = path.split_once('/').map_or("*", |(wider, _)| wider);
    let route = known.routes().resolve(&dropped.platform, &dropped.bot, &[path, wider, "*"]);
    let of_route = route.map(|route| (route.place.to_string(), route.tenant.clone()));
    let (place, tenant) = of_route.unzip();
    let about = Place {
        place: Some(place.as_deref().unwrap_or(&dropped.place)),
        author: Some(&dropped.author),
        tenant: tenant.as_deref(),
        gateway: None,
    };
    let next = fill(problem.next, &about);
    let (means, cause) = (problem.means.to_owned(), problem.cause.to_owned());
    ExplainedDrop { dropped, means, cause, next }
}

/// What an agent wrote, each with how often it was changed since, and when last.
async fn with_edits(admin: &Admin, actions: Vec<ActionTrace>) -> Result<Vec<ExplainedAction>> {
    let mut told = Vec::new();
    for action in actions {
        let edits = match &action.message_id {
            // A change is not changed itself.
            Some(message_id) if action.op != "edit" => {
                admin.ports.records.edits(&action.chat_id, message_id).await?
            }
            _ => Edits::default(),
        };
        told.push(ExplainedAction { action, edits: edits.count, last_edit_at: edits.last_at });
    }
    Ok(told)
}
