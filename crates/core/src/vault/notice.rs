//! Who waits for an answer that does not come, and is told so before the end.

use super::{Capability, CapabilityId, Stage};
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::records::View;
use crate::records::rows::CapabilityRow;

impl CapabilityRow {
    /// Whether nobody has answered, and nobody was told of it. What was begun and not
    /// ended is told again.
    fn is_untold(&self) -> bool {
        match self.stage {
            Stage::Open => true,
            Stage::Noticed => self.noticed_at.is_none(),
            Stage::Claimed | Stage::Answered => false,
        }
    }
}

/// Up to so many of those after `after` that end within a time, and are untold; oldest first.
pub(crate) fn due(
    view: &mut View<'_>,
    after: CapabilityId,
    (now, before): (UnixMillis, UnixMillis),
    limit: usize,
) -> Result<Vec<Capability>> {
    let mut due: Vec<CapabilityRow> = Vec::new();
    for stage in [Stage::Open, Stage::Noticed] {
        let ending = view.between::<CapabilityRow>((&["stage"], (stage,)), "expires_at", (now, before))?;
        due.extend(ending.into_iter().filter(|row| row.is_untold() && row.id > after));
    }
    due.sort_by_key(|row| row.id);
    due.truncate(limit);
    Ok(due.into_iter().map(Capability::from).collect())
}

/// The person is about to be told; `false` if an answer came first.
pub(crate) fn begin(view: &mut View<'_>, id: CapabilityId) -> Result<bool> {
    let untold = view.get::<CapabilityRow>((id,))?.filter(CapabilityRow::is_untold);
    let Some(row) = untold else { return Ok(false) };
    view.put(&CapabilityRow { stage: Stage::Noticed, ..row });
    Ok(true)
}

/// The person was told, or cannot be.
pub(crate) fn end(view: &mut View<'_>, id: CapabilityId) -> Result<()> {
    if let Some(row) = view.get::<CapabilityRow>((id,))?.filter(|row| row.stage == Stage::Noticed) {
        view.put(&CapabilityRow { noticed_at: Some(view.now()), ..row });
    }
    Ok(())
}
