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
//! | Which part of it is wanted? | `range.rs` |
//! | Who has it, until when, and does more fit? | `kept.rs` |

mod chunks;
mod kept;
mod kind;
mod name;
mod range;

pub use chunks::{BlobKey, CHUNK_BYTES, SEALED_CHUNK_BYTES, Span, sealed_bytes, span};
pub use kept::{Expired, Holder, KeptFile, MediaStore, NewFile, ORPHAN_AFTER, Stored, TenantFiles};
pub use kind::{MediaKind, SNIFF_BYTES, kind_of, may_show_inline, media_type};
pub use name::{disposition, safe_name};
pub use range::{Asked, asked, content_range};

use crate::secret::random_hex;
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
}

/// The name of a blob or of a file: nobody guesses one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(String);

impl FileId {
    /// Characters of one.
    const LENGTH: usize = 32;

    /// A new one.
    pub fn mint() -> Self {
        Self(random_hex::<{ Self::LENGTH / 2 }>())
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

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
