//! `thread_create` and `thread_rename`: what is asked before a rename, and what is kept of a thread
//! that was opened.

use super::Egress;
use super::action::OutboundAction;
use angelia_contract::action::Action;
use angelia_core::egress::Target;
use angelia_core::inbox::InstanceId;
use angelia_core::threads::{CreatedThread, Guard, KnownThread, NOT_A_THREAD, Opened, ThreadStore, clean};
use angelia_platforms::{Outcome, Reach};

const NOT_KNOWN: &str = "the connector's store does not answer; nothing was renamed";

/// Whether a thread may be renamed under the condition that its action names, if it renames one;
/// else what becomes of the action.
pub(super) async fn check(egress: &Egress, action: &OutboundAction) -> Result<(), Outcome> {
    let Action::ThreadRename { thread_name, .. } = &action.action else { return Ok(()) };
    // Where that is its provider's own matter, nothing is known here.
    let Some(known) = action.platform(egress).thread(&action.target) else { return Ok(()) };
    let (after, reach) = (egress.timings.again, Reach::Action);
    let not_known = |_| Outcome::Later { after, reach, why: NOT_KNOWN.to_owned() };
    let refused = |why: &str| Outcome::Refused { why: why.to_owned() };
    let thread = known.await.map_err(not_known)?.ok_or_else(|| refused(NOT_A_THREAD))?;
    if thread.name.is_some() && thread.name == clean(thread_name) {
        // As it is when it was renamed and nobody heard of that.
        return Ok(());
    }
    let given = egress.records.given_name(&egress.bot_key(action.bot), &thread.chat_id).await;
    let given = given.map_err(not_known)?;
    Guard::of(&action.action).admits(thread.name.as_deref(), given.as_deref()).map_err(refused)
}

/// Takes note of what a platform did.
pub(super) async fn took(egress: &Egress, action: &OutboundAction, outcome: &Outcome) {
    let Outcome::Sent { message_id, .. } = outcome else { return };
    match &action.action {
        Action::ThreadCreate { thread_name, .. } => {
            let name = clean(thread_name).unwrap_or_default();
            let thread = known(egress, action.bot, &below(&action.target, message_id)).await;
            // Somebody may have opened one from the same message before, and named it.
            let own = thread.is_some_and(|thread| thread.name.as_ref() == Some(&name));
            let opened = Opened { thread_id: message_id.clone(), name, own };
            keep(egress, action.bot, &action.target, &opened, action.origin.instance).await;
        }
        Action::ThreadRename { .. } => {
            let Some(thread) = known(egress, action.bot, &action.target).await else { return };
            let Some(name) = thread.name else { return };
            // If that fails, the next guarded rename finds a name that the connector did not give.
            let _ = egress.records.rename_thread(&egress.bot_key(action.bot), &thread.chat_id, &name).await;
        }
        _ => {}
    }
}

/// A thread goes on being meant for whom it was opened for, and the name it was given is kept. If
/// that fails, its people have to mention the bot, and nobody renames it by that name.
pub(super) async fn keep(
    egress: &Egress,
    bot: usize,
    parent: &Target,
    opened: &Opened,
    instance: InstanceId,
) {
    let Some(thread) = known(egress, bot, &below(parent, &opened.thread_id)).await else { return };
    if let Some(account) = egress.bots[bot].account() {
        let _ = account.engage(&*egress.ingest, &thread.chat_id, instance).await;
    }
    if opened.own {
        let new = CreatedThread {
            bot: egress.bot_key(bot),
            chat_id: thread.chat_id,
            parent: parent.chat_id.clone(),
            name: opened.name.clone(),
            instance,
        };
        let _ = egress.records.keep_thread(new).await;
    }
}

async fn known(egress: &Egress, bot: usize, thread: &Target) -> Option<KnownThread> {
    egress.bots[bot].thread(thread)?.await.ok()?
}

fn below(parent: &Target, thread_id: &str) -> Target {
    Target { chat_id: parent.chat_id.clone(), thread_id: Some(thread_id.to_owned()) }
}
