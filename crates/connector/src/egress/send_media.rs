//! The file of a `send_media`, before its platform is called.

use super::Egress;
use super::action::OutboundAction;
use crate::media::{Wanted, why};
use angelia_contract::action::Action;
use angelia_core::egress::Sender;
use angelia_core::ports::ActionId;
use angelia_platforms::{Outcome, OutgoingFile, Reach};

/// What a gateway is told where no files are kept.
pub(super) const NO_FILES: &str = "no files are kept here: the operator can set media.url";

/// The file that an action sends, or what comes of it that there is none.
pub(super) async fn file(
    egress: &Egress,
    action: &OutboundAction,
    number: ActionId,
) -> Result<OutgoingFile, Outcome> {
    let refused = |why: &str| Outcome::Refused { why: why.to_owned() };
    let media = egress.media.as_ref().ok_or_else(|| refused(NO_FILES))?;
    let Action::SendMedia { source_url, filename, media_kind, .. } = &action.action else {
        return Err(refused("this is no file"));
    };
    let sender = Sender { tenant: &action.origin.tenant, instance: action.origin.instance };
    let wanted = Wanted { source_url, name: filename.as_deref(), kind: media_kind };
    media.outgoing(sender, number, &wanted).await.map_err(|error| {
        let (why, may_help) = why(&error);
        if may_help {
            Outcome::Later { after: egress.timings.again, reach: Reach::Action, why }
        } else {
            Outcome::Refused { why }
        }
    })
}
