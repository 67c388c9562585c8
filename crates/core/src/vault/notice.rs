//! What is in the vault, and who waits for an answer that does not come: they are told so before
//! the end.

use super::{Capability, CapabilityId, Stage};
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::ports::BoxFuture;
use crate::records::{Change, Records, View, change, look};

/// Finding capabilities. They come in with [`Intake`](crate::ports::Intake), are chosen
/// when an action is accepted, and go when their time is over.
pub trait VaultStore: Records {
    /// What an instance holds that is not over at `now`, oldest first.
    fn capabilities(&self, instance: InstanceId, now: UnixMillis) -> BoxFuture<'_, Result<Vec<Capability>>> {
        look(self, "read the vault", move |view| {
            let held = view.find::<Capability>(&["instance"], (instance,))?.into_iter();
            Ok(held.filter(|it| it.is_live(now)).collect())
        })
    }

    /// One of them, over or not.
    fn capability(&self, id: CapabilityId) -> BoxFuture<'_, Result<Option<Capability>>> {
        look(self, "read the vault", move |view| view.get((id,)))
    }

    /// Those after `after` that nobody has answered and that end between `now` and
    /// `before`, oldest first; also those whose notice was begun and not finished.
    fn unanswered(
        &self,
        after: CapabilityId,
        now: UnixMillis,
        before: UnixMillis,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Capability>>> {
        look(self, "read the vault", move |view| due(view, after, (now, before), limit))
    }

    /// The person is about to be told that no answer came; `false` if one came first.
    fn begin_notice(&self, id: CapabilityId) -> BoxFuture<'_, Result<bool>> {
        change(self, Change::to("begin a notice"), move |view| begin(view, id))
    }

    /// The person was told, or cannot be.
    fn end_notice(&self, id: CapabilityId) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("end a notice"), move |view| end(view, id))
    }
}

impl<R: Records + ?Sized> VaultStore for R {}

impl Capability {
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
fn due(
    view: &mut View<'_>,
    after: CapabilityId,
    (now, before): (UnixMillis, UnixMillis),
    limit: usize,
) -> Result<Vec<Capability>> {
    let mut due: Vec<Capability> = Vec::new();
    for stage in [Stage::Open, Stage::Noticed] {
        let ending = view.between::<Capability>((&["stage"], (stage,)), "expires_at", (now, before))?;
        due.extend(ending.into_iter().filter(|row| row.is_untold() && row.id > after));
    }
    due.sort_by_key(|row| row.id);
    due.truncate(limit);
    Ok(due)
}

/// The person is about to be told; `false` if an answer came first.
fn begin(view: &mut View<'_>, id: CapabilityId) -> Result<bool> {
    let untold = view.get::<Capability>((id,))?.filter(Capability::is_untold);
    let Some(row) = untold else { return Ok(false) };
    view.put(&Capability { stage: Stage::Noticed, ..row });
    Ok(true)
}

/// The person was told, or cannot be.
fn end(view: &mut View<'_>, id: CapabilityId) -> Result<()> {
    if let Some(row) = view.get::<Capability>((id,))?.filter(|row| row.stage == Stage::Noticed) {
        view.put(&Capability { noticed_at: Some(view.now()), ..row });
    }
    Ok(())
}
