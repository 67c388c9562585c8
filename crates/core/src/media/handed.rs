//! A file goes from one who has it to another of the same tenant: from somebody in a room to the
//! room's agent, from an agent to a room. Its bytes stay where they are, and it gets one more name.

use super::kept::{admit, find, touch, usage};
use super::{FileId, Holder, KeptFile, TENANT_FILES};
use crate::error::Result;
use crate::records::View;
use crate::records::rows::FileRow;
use std::time::Duration;

/// A file that is handed on.
#[derive(Clone, Debug)]
pub struct Handed {
    /// Which.
    pub file: FileId,
    /// Who has it.
    pub from: Holder,
    /// Whose both are. A file never leaves its tenant.
    pub tenant: String,
    /// Who gets it.
    pub to: Holder,
    /// How they refer to it. Handed on once more, it is found.
    pub named: FileId,
    /// What it is called from now on, if not as before.
    pub called: Option<String>,
    /// For how long.
    pub kept_for: Duration,
}

/// Hands a file on; `None` if nobody of that tenant has it like this.
pub(super) fn hand_on(view: &mut View<'_>, handed: &Handed) -> Result<Option<KeptFile>> {
    let Handed { file, from, tenant, to, named, called, kept_for } = handed;
    // One that is past its time and not swept yet counts still.
    if view.get::<FileRow>((named.as_str(),))?.is_some_and(|row| row.holder == *to) {
        touch(view, named, *kept_for)?;
        return Ok(find(view, named, to)?.map(|(file, _)| file));
    }
    let Some((file, _)) = find(view, file, from)?.filter(|(file, _)| file.tenant == *tenant) else {
        return Ok(None);
    };
    let mut usage = usage(view, tenant)?;
    admit(&usage, TENANT_FILES)?;
    usage.files += 1;
    view.put(&usage);
    let file = KeptFile { name: called.clone().unwrap_or(file.name), ..file };
    let expires_at = view.now().after(*kept_for);
    view.put(&FileRow {
        file: named.to_string(),
        tenant: tenant.clone(),
        holder: to.clone(),
        blob: file.blob.to_string(),
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        expires_at,
    });
    Ok(Some(file))
}

/// Keeps files for longer; those that `holder` has, in their order.
pub(super) fn keep_longer(
    view: &mut View<'_>,
    files: &[FileId],
    holder: &Holder,
    kept_for: Duration,
) -> Result<Vec<Option<KeptFile>>> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let kept = find(view, file, holder)?;
        if kept.is_some() {
            touch(view, file, kept_for)?;
        }
        found.push(kept.map(|(kept, _)| kept));
    }
    Ok(found)
}
