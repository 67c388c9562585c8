//! A change of the master key, in small steps under traffic.
//!
//! | step | what is durable after it | a start after it |
//! |---|---|---|
//! | stage | the new key in a file beside the old one | throws it away: nothing was changed |
//! | hand out, among several nodes | the same on each of them (`key_following.rs`) | the same |
//! | begin | the check under the new key, the old key sealed with the new one | takes the new key, which opens everything |
//! | adopt | the new key in the place of the old one | goes on with the change |
//! | rewrap, often | some rows under the new key | goes on with the change |
//! | retire | nothing under the old key, nor the old key | finds nothing to do |
//!
//! From *begin* on everything new is sealed with the new key and both open. Nobody waits
//! for a change but whoever asked for it (docs/decisions/0031). Among several nodes all of them
//! have the new key before it begins, and all of them seal with it before the old one is
//! forgotten (docs/decisions/0048).

use super::Admin;
use super::key_following::nodes_without;
use super::keys::RotatedKey;
use crate::cluster::KeyFacts;
use crate::keyring::copy;
use angelia_core::audit::Actor;
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::seal::{KEY_CHECK, KeyId, Keys, MasterKey};
use angelia_core::secret::Secret;
use angelia_core::store::{IdentityStore, KeyChange, PageSize, Resealed, Retired, SealStore, SealedValue};
use std::path::Path;
use std::time::Duration;

/// What the bindings of quarantined updates begin with.
const QUARANTINE: &str = "quarantine/";
const PURGE: &str = "; angelia bot quarantine purge throws such updates away";
/// How much is read, and sealed anew in one commit: what others commit in between
/// waits for no more than this.
const STEP: PageSize = PageSize { count: 100, bytes: 256 * 1024 };
/// The pause before it is looked again whether somebody still stores what they have sealed.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long other nodes may take to have the next key, or to seal with it. They say so with
/// their next signs of life, twice a second; one that stood still is taken for gone by then.
const NODES_IN_TIME: Duration = Duration::from_secs(20);
/// How often they are asked meanwhile.
const ASK_NODES_EVERY: Duration = Duration::from_millis(100);

/// Everything that is sealed, one step after the other.
#[derive(Default)]
pub(super) struct Pages {
    last: Option<SealedValue>,
    is_over: bool,
}

impl Pages {
    pub(super) async fn next(&mut self, admin: &Admin) -> Result<Option<Vec<SealedValue>>> {
        if self.is_over {
            return Ok(None);
        }
        let page = admin.ports.records.sealed_values(self.last.as_ref(), STEP).await?;
        self.is_over = !page.more;
        self.last = page.last().cloned();
        Ok(Some(page.items))
    }
}

/// Changes the master key, or finishes a change that was not finished.
pub(super) async fn change_key(admin: &Admin, file: Option<&Path>) -> Result<RotatedKey> {
    let ring = &admin.keys;
    let _turn = ring.rotating.lock().await;
    let next_step = if ring.is_unfinished() {
        refuse_a_third(admin, file)?;
        None
    } else {
        begin(admin, file).await?
    };
    let old = ring.retiring();
    let finished = finish(admin).await.map_err(|error| unfinished(old, error))?;
    Ok(RotatedKey {
        old_key_id: old.map(|id| id.to_string()),
        key_id: ring.keys().current().id().to_string(),
        // The check was, when the change began.
        resealed: finished.resealed as u64 + 1,
        old_erased: finished.erased,
        next_step: with_others(admin, next_step).await?,
    })
}

/// What has to be done before the next start of this node, and of the others.
async fn with_others(admin: &Admin, own: Option<String>) -> Result<Option<String>> {
    let mut steps: Vec<String> = own.into_iter().collect();
    for (node, key) in nodes_without(admin, |key| key.to_do.is_none()).await? {
        steps.extend(key.to_do.map(|to_do| format!("on the node {node}, {to_do}")));
    }
    Ok((!steps.is_empty()).then(|| steps.join("; ")))
}

/// A change has to be finished before the next: the store keeps one key besides the current one.
fn refuse_a_third(admin: &Admin, file: Option<&Path>) -> Result<()> {
    let ring = &admin.keys;
    let current = ring.keys().current().id();
    let Some(file) = file else { return Ok(()) };
    if ring.keeper.next(Some(file))?.id() == current {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "the change to the key {current} is not finished; angelia key rotate, without --to, finishes it"
    )))
}

fn unfinished(old: Option<KeyId>, error: Error) -> Error {
    let old = old.map_or_else(|| "which does not open".to_owned(), |id| id.to_string());
    Error::new(
        error.kind(),
        format!(
            "the master key is changed, but the old one, {old}, is still needed and kept in the database: {error}. \
             Everything else opens; angelia key rotate, or the next start of the server, goes on"
        ),
    )
    .caused_by(error)
}

/// Makes the new key the one that seals. Answers what the operator has to do before the next start.
async fn begin(admin: &Admin, file: Option<&Path>) -> Result<Option<String>> {
    let ring = &admin.keys;
    let old = ring.keys().current().clone();
    let next = ring.keeper.next(file)?;
    if next.id() == old.id() {
        return Err(Error::conflict(format!("the key {} is in use already", old.id())));
    }
    open_everything(admin).await?;
    let change = first_step(admin, &old, &next).await?;
    ring.keeper.stage(&next)?;
    fail::point("key_staged");
    let begun = match hand_out(admin, &next).await {
        Ok(()) => admin.ports.records.begin_key_change(change, &Actor::operator()).await,
        Err(error) => Err(error),
    };
    ring.hand_out(None);
    begun?;
    fail::point("key_begun");
    ring.change_to(next, copy(&old)?);
    // From here on there is no way back: the store opens with the new key only.
    let next_step = adopt(admin);
    fail::point("key_adopted");
    Ok(next_step)
}

/// Puts the key that seals now in its place on disk. Answers what the operator has to do.
pub(super) fn adopt(admin: &Admin) -> Option<String> {
    let ring = &admin.keys;
    let next_step = ring.keeper.adopt().unwrap_or_else(|error| {
        tracing::error!(%error, "the new master key is staged, but not in its place; the next start puts it there");
        Some(format!("{error}; the next start tries again"))
    });
    ring.note_to_do(next_step.clone());
    let (old, new) = (ring.retiring(), ring.keys().current().id());
    let old = old.map(tracing::field::display);
    tracing::info!(old, %new, to_do = next_step.as_deref(), "the master key is a new one");
    next_step
}

/// Waits until every other node has the next key: from the beginning of the change on it may
/// meet what is sealed with it.
async fn hand_out(admin: &Admin, next: &MasterKey) -> Result<()> {
    if !admin.cluster.is_shared() {
        return Ok(());
    }
    admin.keys.hand_out(Some(copy(next)?));
    admin.cluster.look_now();
    let id = Some(next.id().to_string());
    let missing = wait_for_nodes(admin, |key| key.has == id).await?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "nothing was changed: within {} s {} not taken the new key over. Look at its log, or stop it, and try again; \
         see: angelia cluster status",
        NODES_IN_TIME.as_secs(),
        in_words(&missing)
    )))
}

/// Waits until something holds of every other node; answers those of which it does not, when
/// time is over.
async fn wait_for_nodes(admin: &Admin, holds: impl Fn(&KeyFacts) -> bool) -> Result<Vec<(String, KeyFacts)>> {
    let began = clock::mono();
    loop {
        let missing = nodes_without(admin, &holds).await?;
        if missing.is_empty() || clock::mono().since(began) > NODES_IN_TIME {
            return Ok(missing);
        }
        tokio::time::sleep(ASK_NODES_EVERY).await;
        go_on(admin)?;
    }
}

fn in_words(missing: &[(String, KeyFacts)]) -> String {
    let why = |key: &KeyFacts| key.trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let nodes: Vec<String> = missing.iter().map(|(node, key)| format!("{node}{}", why(key))).collect();
    let has = if nodes.len() == 1 { "has" } else { "have" };
    format!("{} {has}", nodes.join(", "))
}

/// Refuses to begin what could not be finished.
async fn open_everything(admin: &Admin) -> Result<()> {
    let keys = admin.keys.keys();
    let mut pages = Pages::default();
    while let Some(page) = pages.next(admin).await? {
        for value in &page {
            let opened = keys.open(&value.sealed, &value.bound_to).map_err(Error::from);
            opened.map_err(|error| {
                Error::conflict(format!("nothing was changed: {}", in_the_way(value, &error)))
            })?;
        }
    }
    Ok(())
}

/// What does not open, in words for people.
fn in_the_way(value: &SealedValue, error: &Error) -> String {
    // One that was set aside in the very moment of a change by an older release may never open.
    let next = if value.bound_to.starts_with(QUARANTINE) { PURGE } else { "" };
    format!("the {} ({}): {error}{next}", value.kind, value.bound_to)
}

async fn first_step(admin: &Admin, old: &MasterKey, next: &MasterKey) -> Result<KeyChange> {
    let missing = || Error::internal("the check of the master key is gone");
    let old_check = admin.ports.records.note(KEY_CHECK).await?.ok_or_else(missing)?;
    Ok(KeyChange {
        from: old.id(),
        to: next.id(),
        check: next.seal(&Secret::new(KEY_CHECK), KEY_CHECK)?,
        former: next.enclose(old)?,
        old_check,
    })
}

/// How a change ended.
struct Finished {
    resealed: usize,
    erased: bool,
}

/// Finishes a change that an earlier process has begun, if there is one. Among several nodes
/// whoever does the upkeep goes on with it, a little later.
pub(super) async fn resume(admin: &Admin) {
    let ring = &admin.keys;
    let _turn = ring.rotating.lock().await;
    if !ring.is_unfinished() || admin.cluster.is_shared() {
        return;
    }
    let old = ring.retiring();
    tracing::warn!(
        old = old.map(tracing::field::display),
        "a change of the master key was cut short; finishing it"
    );
    if let Err(error) = finish(admin).await {
        tracing::error!("{}", unfinished(old, error));
    }
}

/// Seals everything anew that the current key has not sealed, and gives the old key up.
async fn finish(admin: &Admin) -> Result<Finished> {
    let ring = &admin.keys;
    let mut resealed = 0;
    loop {
        resealed += rewrap_all(admin).await?;
        while ring.is_awaited() {
            pause(admin).await?;
        }
        let missing = wait_for_nodes(admin, has_changed(admin)).await?;
        if !missing.is_empty() {
            return Err(Error::unavailable(format!("{} not changed to it yet", in_words(&missing))));
        }
        if let Some(erased) = retire(admin, resealed).await? {
            return Ok(Finished { resealed, erased });
        }
        pause(admin).await?;
    }
}

/// Goes on with a change as far as that goes without waiting for anybody.
pub(super) async fn step(admin: &Admin) -> Result<()> {
    let resealed = rewrap_all(admin).await?;
    if !admin.keys.is_awaited() && nodes_without(admin, has_changed(admin)).await?.is_empty() {
        retire(admin, resealed).await?;
    }
    Ok(())
}

/// Whether a node seals with the key that this one does, and stores nothing else any more.
fn has_changed(admin: &Admin) -> impl Fn(&KeyFacts) -> bool {
    let id = admin.keys.keys().current().id().to_string();
    move |key| key.id == id && key.settled
}

/// Gives the old key up, unless something that is stored needs it. Answers whether that is
/// gone from the disk.
async fn retire(admin: &Admin, resealed: usize) -> Result<Option<bool>> {
    let ring = &admin.keys;
    let key = ring.keys().current().clone();
    let Retired::Gone { erased } = admin.ports.records.retire_key(key.head()).await? else { return Ok(None) };
    fail::point("key_retired");
    ring.finished();
    tracing::info!(key = %key.id(), resealed, "the change of the master key is finished");
    Ok(Some(erased))
}

/// One walk over everything. What does not open is left, and told when the rest is done.
async fn rewrap_all(admin: &Admin) -> Result<usize> {
    let keys = admin.keys.keys();
    let (mut resealed, mut failed) = (0, None);
    let mut pages = Pages::default();
    while let Some(page) = pages.next(admin).await? {
        let (due, stuck) = rewrap(&keys, page);
        failed = failed.or(stuck);
        if !due.is_empty() {
            resealed += admin.ports.records.reseal(due).await?;
            fail::point("key_rewrapped");
        }
        go_on(admin)?;
    }
    failed.map_or(Ok(resealed), Err)
}

/// Those of the values that are due, under the current key, and the first that does not open.
fn rewrap(keys: &Keys, values: Vec<SealedValue>) -> (Vec<Resealed>, Option<Error>) {
    let (mut due, mut failed) = (Vec::new(), None);
    for old in values.into_iter().filter(|value| keys.is_due(&value.sealed)) {
        match keys.rewrap(&old.sealed, &old.bound_to) {
            Ok(sealed) => due.push(Resealed { old, sealed }),
            Err(error) => {
                failed.get_or_insert_with(|| Error::new(Kind::Conflict, in_the_way(&old, &error)));
            }
        }
    }
    (due, failed)
}

async fn pause(admin: &Admin) -> Result<()> {
    tokio::time::sleep(LOOK_AGAIN).await;
    go_on(admin)
}

fn go_on(admin: &Admin) -> Result<()> {
    if admin.life.is_stopping() {
        return Err(Error::unavailable("the server stops"));
    }
    Ok(())
}
