//! An agent's `send_media`, as a line with a file.

use super::room::AGENT;
use super::send::{Webchat, lines_of};
use crate::kit::refused;
use crate::platform::{Outcome, OutgoingFile};
use angelia_core::error::Result;
use angelia_core::fail;
use angelia_core::media::{FileId, Handed, Holder, MediaKind, MediaStore, ROOM_KEPT_FOR, shown_as};
use angelia_core::store::{ActionId, NewLine, RoomFile};

impl Webchat {
    /// Says a line with a file, and behind it what does not fit. Repeated, both are the same ones.
    pub(super) async fn show_file(
        &self,
        id: ActionId,
        first: NewLine,
        caption: &str,
        file: &OutgoingFile,
    ) -> Result<Outcome> {
        let message_id = first.message_id.clone();
        let shown = self.hand_to_room(&first.room, id, file).await?;
        let Some(shown) = shown else {
            return Ok(refused("there is no such file any more; upload it again"));
        };
        let mut lines = lines_of(first, caption);
        if let Some(line) = lines.first_mut() {
            line.files.push(shown);
        }
        fail::point("action_sending");
        self.ports.lines.say_lines(lines, id).await?;
        Ok(Outcome::Sent { message_id, recorded: true })
    }

    /// Hands a file on to a room; `None` if its sender has it no more.
    async fn hand_to_room(&self, room: &str, id: ActionId, file: &OutgoingFile) -> Result<Option<RoomFile>> {
        let named = FileId::named(&[AGENT, room, &id.0.to_string()]);
        let (tenant, from) = file.owner.clone();
        let handed = Handed {
            file: file.file.clone(),
            from,
            tenant,
            to: Holder::Room(room.to_owned()),
            named: named.clone(),
            called: Some(file.name.clone()),
            kept_for: ROOM_KEPT_FOR,
        };
        let kept = self.ports.records.hand_on(handed).await?;
        // As what it is, whatever its agent calls it.
        let kind = shown_as(&file.media_type, file.kind == MediaKind::Voice);
        Ok(kept.map(|kept| RoomFile {
            id: Some(named),
            name: kept.name,
            size: kept.size,
            mime: kept.media_type,
            kind,
            alt: None,
        }))
    }
}
