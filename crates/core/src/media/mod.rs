//! Files: pictures, voice and documents that people and agents send each other (docs/decisions/0055).
//!
//! The bytes of a file are a *blob*: one object of the port [`Blobs`](crate::ports::Blobs), sealed in
//! chunks under a key of its own. What refers to it is a row for each instance it was meant for, so
//! that nobody else can ask for it. The same bytes are kept once within a tenant.
//!
//! | Question | File |
//! |---|---|
//! | How do the bytes rest, and where is the one that is asked for? | `chunks.rs` |
//! | What is it, and may a page show it? | `kind.rs` |
//! | What is it called? | `name.rs` |
//! | How do events carry files? | `attached.rs` |
//! | Which part of it is wanted? | `range.rs` |
//! | How long is a recording? | `ogg.rs` |
//! | Who has it, until when, and does more fit? | `kept.rs` |
//! | How does it go from one who has it to another? | `handed.rs` |

mod attached;
mod chunks;
mod handed;
mod kept;
mod kind;
mod name;
mod ogg;
mod range;

pub use attached::{
    Attached, Brought, Handing, Origin, album, attach, attached, below, count_files, hand_over, has_files,
    message_type_of, readable_size,
};
pub use chunks::{BlobKey, CHUNK_BYTES, SEALED_CHUNK_BYTES, Span, sealed_bytes, span};
pub use handed::Handed;
pub use kept::{Expired, Holder, KeptFile, MediaStore, NewFile, ORPHAN_AFTER, Stored, TenantFiles};
pub use kind::{MediaKind, SNIFF_BYTES, kind_of, media_type, shown_as};
pub use name::{disposition, safe_name};
pub use ogg::opus_duration;
pub use range::{Asked, asked, content_range};

use crate::secret::{hex, random_hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;

angelia_contract::limits! {
    /// As much as gateways take and give, and more than most platforms do.
    pub const FILE_BYTES: u64 = 25 * 1024 * 1024, bytes "of one file";
    /// Some forty of the largest files, or thousands of pictures. A tenant that has more is refused new ones.
    pub const TENANT_BYTES: u64 = 1024 * 1024 * 1024, bytes "of a tenant's files";
    /// More than agents and people send in a day.
    pub const TENANT_FILES: u64 = 10_000, count "files of a tenant";
    /// Long enough to send it, and to look at it again the same day.
    pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3_600), time "for which a file is kept after its agent used it last";
    /// As long as people scroll back. Longer than any message waits for its agent.
    pub const ROOM_KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3_600), time "for which a room of the web chat keeps the files of a line";
}

/// The name of a blob or of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileId(String);

impl FileId {
    /// Characters of one.
    const LENGTH: usize = 32;

    /// A new one.
    pub fn mint() -> Self {
        Self(random_hex::<{ Self::LENGTH / 2 }>())
    }

    /// The one that these words make, and no others: what is brought again is found by it. It is
    /// for one holder, so it may be guessed.
    pub fn named(words: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for word in words {
            hash.update((word.len() as u64).to_be_bytes());
            hash.update(word);
        }
        let mut name = hex(&hash.finalize());
        name.truncate(Self::LENGTH);
        Self(name)
    }

    /// One that somebody wrote; `None` if it cannot be one. What passes is safe in paths and headers.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == Self::LENGTH && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for FileId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("32 hexadecimal digits name a file")
    }
}

impl From<FileId> for String {
    fn from(id: FileId) -> Self {
        id.0
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
