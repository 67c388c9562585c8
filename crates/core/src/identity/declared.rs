//! What a gateway declares about itself: policies, the bots it answers for, its commands.

use crate::admission::Policy;
use crate::audit::{Actor, AuditEntry};
use crate::commands::Command;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::records::View;
use crate::records::rows::{Commands, FrontRow, InstanceRow, ManifestRow, Names, PolicyRow};

/// Replaces what an instance declared for a platform.
pub fn set_policy(
    view: &mut View<'_>,
    instance: InstanceId,
    platform: &str,
    policy: &Policy,
    by: &Actor,
) -> Result<()> {
    view.put(&PolicyRow {
        instance,
        platform: platform.to_owned(),
        require_address: policy.require_address,
        free_scopes: Names(policy.free_scopes.clone()),
        allow_other_bots: policy.allow_other_bots,
    });
    let (tenant, name) =
        view.get::<InstanceRow>((instance,))?.map(|row| (row.tenant, row.name)).unwrap_or_default();
    let detail = format!(
        "{platform}: require_address {}, {} free scopes, allow_other_bots {}",
        policy.require_address,
        policy.free_scopes.len(),
        policy.allow_other_bots
    );
    view.audit(&AuditEntry::done(by, "policy.set", &tenant, &name).with(detail));
    Ok(())
}

/// Replaces the bots an instance answers for.
pub fn set_fronts(view: &mut View<'_>, instance: InstanceId, fronts: &[(String, String)]) -> Result<()> {
    view.delete_all::<FrontRow>(&["instance"], (instance,))?;
    if view.get::<InstanceRow>((instance,))?.is_none() {
        return Ok(());
    }
    for (platform, bot) in fronts {
        view.put(&FrontRow { instance, platform: platform.clone(), bot: bot.clone() });
    }
    Ok(())
}

/// Replaces the commands that an instance declared.
pub fn set_manifest(view: &mut View<'_>, instance: InstanceId, commands: &[Command]) -> Result<()> {
    if commands.is_empty() {
        view.delete_all::<ManifestRow>(&["instance"], (instance,))?;
    } else if view.get::<InstanceRow>((instance,))?.is_some() {
        view.put(&ManifestRow { instance, commands: Commands(commands.to_vec()) });
    }
    Ok(())
}

/// A gateway declares its policies, bots and commands when it starts, not when it is
/// moved: an instance that has none gets those of the one it served.
pub fn inherit(view: &mut View<'_>, from: InstanceId, to: InstanceId) -> Result<()> {
    if view.count::<PolicyRow>(&["instance"], (to,))? == 0 {
        for policy in view.find::<PolicyRow>(&["instance"], (from,))? {
            view.put(&PolicyRow { instance: to, ..policy });
        }
    }
    if view.count::<FrontRow>(&["instance"], (to,))? == 0 {
        for front in view.find::<FrontRow>(&["instance"], (from,))? {
            view.put(&FrontRow { instance: to, ..front });
        }
    }
    if view.get::<ManifestRow>((to,))?.is_none()
        && let Some(manifest) = view.get::<ManifestRow>((from,))?
    {
        view.put(&ManifestRow { instance: to, ..manifest });
    }
    Ok(())
}
