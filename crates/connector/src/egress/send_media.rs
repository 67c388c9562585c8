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

/// The file that an action sends, if it sends one, or what comes of it that there is none.
pub(super) async fn file(
    egress: &Egress,
    action: &OutboundAction,
    number: Option<ActionId>,
) -> Result<Option<OutgoingFile>, Outcome> {
    let Action::SendMedia { source_url, filename, media_kind, .. } = &action.action else { return Ok(None) };
    let refused = |why: &str| Outcome::Refused { why: why.to_owned() };
    let media = egress.media.as_ref().ok_or_else(|| refused(NO_FILES))?;
    // Only what is written down asks for a call.
    let number = number.ok_or_else(|| refused("the action has no number"))?;
    let sender = Sender { tenant: &action.origin.tenant, instance: action.origin.instance };
    let wanted = Wanted { source_url, name: filename.as_deref(), kind: media_kind };
    media.outgoing(sender, number, &wanted).await.map(Some).map_err(|error| {
        let (why, may_help) = why(&error);
        if may_help {
            Outcome::Later { after: egress.timings.again, reach: Reach::Action, why }
        } else {
            Outcome::Refused { why }
        }
    })
}
