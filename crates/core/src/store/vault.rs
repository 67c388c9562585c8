//! Capabilities, as the store keeps them.

use super::BoxFuture;
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::records::rows::CapabilityRow;
use crate::records::{Change, Records, change, look};
use crate::vault::{Capability, CapabilityId, notice};

/// Finding capabilities. They come in with [`Intake`](super::Intake), are chosen
/// when an action is accepted, and go when their time is over.
pub trait VaultStore: Records {
    /// What an instance holds that is not over at `now`, oldest first.
    fn capabilities(&self, instance: InstanceId, now: UnixMillis) -> BoxFuture<'_, Result<Vec<Capability>>> {
        look(self, "read the vault", move |view| {
            let held = view.find::<CapabilityRow>(&["instance"], (instance,))?.into_iter();
            Ok(held.map(Capability::from).filter(|it| it.is_live(now)).collect())
        })
    }

    /// One of them, over or not.
    fn capability(&self, id: CapabilityId) -> BoxFuture<'_, Result<Option<Capability>>> {
        look(self, "read the vault", move |view| Ok(view.get::<CapabilityRow>((id,))?.map(Capability::from)))
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
        look(self, "read the vault", move |view| notice::due(view, after, (now, before), limit))
    }

    /// The person is about to be told that no answer came; `false` if one came first.
    fn begin_notice(&self, id: CapabilityId) -> BoxFuture<'_, Result<bool>> {
        change(self, Change::to("begin a notice"), move |view| notice::begin(view, id))
    }

    /// The person was told, or cannot be.
    fn end_notice(&self, id: CapabilityId) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("end a notice"), move |view| notice::end(view, id))
    }
}

impl<R: Records + ?Sized> VaultStore for R {}
