//! What every node of a cluster does for a change of the master key, and of the admin token, that
//! another one makes (docs/decisions/0048).
//!
//! | the node that changes the key | every other one |
//! |---|---|
//! | stages the next key, hands it to each of them | stages it, opens with it as well, says that it has it |
//! | when all have it: begins the change in the store | sees that, seals with it, says so |
//! | wraps everything anew | |
//! | when all have changed: forgets the old key | sees that it is finished |
//!
//! A node that comes late or stood still is handed the key by whoever has both. If the changing
//! node is gone after the beginning, whoever does the upkeep goes on.

use super::Admin;
use super::master_key_change::{adopt, resume, step};
use crate::cluster::{Chore, Facts, KeyFacts};
use crate::supervise::Lifecycle;
use angelia_core::cluster::Nodes as _;
use angelia_core::error::{Error, Result};
use angelia_core::records::look;
use angelia_core::records::rows::NoteRow;
use angelia_core::seal::{ADMIN_TOKEN, FORMER_KEY, KEY_CHECK, KeyId, key_id};
use std::sync::Arc;
use std::time::Duration;

/// How often a node looks whether another has changed the key or the token: both count
/// everywhere within a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Finishes what was cut short, and follows what other nodes change.
pub(crate) async fn follow(admin: Arc<Admin>, life: Arc<Lifecycle>) {
    resume(&admin).await;
    if !admin.cluster.is_shared() {
        return;
    }
    let mut was_well = true;
    while life.pause(LOOK_EVERY).await {
        let looked = look_once(&admin).await;
        if let Err(error) = &looked
            && was_well
        {
            tracing::warn!(%error, "what other nodes change of the master key or the admin token cannot be followed; trying again");
        }
        was_well = looked.is_ok();
    }
}

/// What the store says at one moment.
struct Notes {
    /// The key that opens it.
    key: Option<KeyId>,
    /// Whether a change is not finished.
    unfinished: bool,
    token: Option<Vec<u8>>,
}

async fn read(admin: &Admin) -> Result<Notes> {
    look(&*admin.ports.records, "read the keys of all nodes", |view| {
        let mut note = |name: &str| Ok::<_, Error>(view.get::<NoteRow>((name,))?.map(|note| note.value));
        let key = note(KEY_CHECK)?.as_deref().and_then(key_id);
        Ok(Notes { key, unfinished: note(FORMER_KEY)?.is_some(), token: note(ADMIN_TOKEN)? })
    })
    .await
}

pub(super) async fn look_once(admin: &Admin) -> Result<()> {
    let ring = &admin.keys;
    // Whoever changes the key here does all of this itself. Before anything is read: what was
    // read before a change would be taken for one.
    let turn = ring.rotating.try_lock();
    let notes = read(admin).await?;
    if turn.is_err() {
        return admin.token.follow(notes.token, ring);
    }
    take_key(admin)?;
    let current = ring.keys().current().id();
    if notes.key == Some(current) {
        ring.note_trouble(None);
        if ring.is_unfinished() {
            go_on(admin, &notes).await?;
        }
    } else if notes.key.is_some() && notes.key == ring.next() {
        change(admin, &notes).await?;
    } else if let Some(needed) = notes.key {
        cannot_follow(admin, current, needed);
    }
    admin.token.follow(notes.token, ring)
}

/// Takes the next key, if another node hands it to this one.
fn take_key(admin: &Admin) -> Result<()> {
    let (ring, me) = (&admin.keys, admin.cluster.node());
    let known = ring.keys();
    for row in admin.cluster.seen().there.iter().filter(|row| row.node != me) {
        let mut theirs = Facts::of(row).key;
        let Some(given) = theirs.gives.remove(me) else { continue };
        let Some(next) = ring.recipient.take(&given, known.current(), me)? else { continue };
        if next.id() == known.current().id() {
            continue;
        }
        // Written down before anybody counts on it: a start must find the key that opens the store.
        if let Err(error) = ring.keeper.stage(&next) {
            let trouble = format!("the next master key, {}, cannot be written down: {error}", next.id());
            tracing::error!("{trouble}");
            ring.note_trouble(Some(trouble));
            return Err(error);
        }
        tracing::info!(next = %next.id(), from = row.node, "the next master key was handed over");
        ring.note_trouble(None);
        ring.expect(next);
        admin.cluster.look_now();
    }
    Ok(())
}

/// Another node has changed the key: seals with the new one from now on.
async fn change(admin: &Admin, notes: &Notes) -> Result<()> {
    let ring = &admin.keys;
    ring.change_to_next()?;
    adopt(admin);
    ring.note_trouble(None);
    // What others sealed with it before this node had it.
    admin.identities.read_again().await?;
    admin.cluster.look_now();
    if !notes.unfinished {
        // This node stood still while the others finished. What it stored meanwhile under the
        // old key only it can open.
        step(admin).await?;
    }
    Ok(())
}

/// A change that this node has taken up is not finished, as far as it knows.
async fn go_on(admin: &Admin, notes: &Notes) -> Result<()> {
    let ring = &admin.keys;
    if !notes.unfinished && !ring.is_awaited() {
        ring.finished();
    } else if admin.cluster.does(Chore::Upkeep) {
        step(admin).await?;
    }
    Ok(())
}

/// The store opens with a key that this node has not got. It may be handed over yet.
fn cannot_follow(admin: &Admin, current: KeyId, needed: KeyId) {
    let trouble = format!(
        "the master key was changed to {needed}, and this node has {current} only; it waits for another node to \
         hand the new one over. If that takes long, copy master.key from the data directory of a node that runs, \
         or point keys.master at the new key, and start this one again"
    );
    if admin.keys.note_trouble(Some(trouble.clone())) {
        tracing::error!("{trouble}");
    }
}

/// The nodes of which something does not hold yet, each with what it says of its key. Read from
/// the store: one that came a moment ago counts.
pub(super) async fn nodes_without(
    admin: &Admin,
    holds: impl Fn(&KeyFacts) -> bool,
) -> Result<Vec<(String, KeyFacts)>> {
    if !admin.cluster.is_shared() {
        return Ok(Vec::new());
    }
    let (now, rows) = admin.ports.records.nodes().await?;
    let others = rows.iter().filter(|row| row.is_there(now) && row.node != admin.cluster.node());
    let told = others.map(|row| (row.node.clone(), Facts::of(row).key));
    Ok(told.filter(|(_, key)| !holds(key)).collect())
}
