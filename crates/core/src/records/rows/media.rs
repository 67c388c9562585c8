//! Files, as they are kept: the blob, whom it was meant for, and what a tenant has of them.

use crate::clock::UnixMillis;
use crate::media::Holder;
use crate::records::table::{field, record};

field!(Holder as String, Holder::to_string, |text| text.parse().ok());

record! {
    /// The bytes of a file, sealed, wherever they rest.
    pub struct BlobRow in "blobs", key 1, finds [["tenant"], ["tenant", "hash"]] {
        /// Its name.
        blob: String,
        /// Whose it is.
        tenant: String,
        /// By which the same bytes are found again, within the tenant.
        hash: String,
        /// How many bytes it has.
        size: i64,
        /// The key it is sealed with, sealed.
        sealed: Vec<u8>,
        /// When it was kept.
        created_at: UnixMillis,
    }
}

record! {
    /// A file that somebody may ask for.
    pub struct FileRow in "files", key 1, finds [["tenant"], ["holder"], ["blob"]], walks [[] along "expires_at"] {
        /// Its name in references.
        file: String,
        /// Whose it is.
        tenant: String,
        /// Who may ask for it.
        holder: Holder,
        /// Its bytes.
        blob: String,
        /// What people call it.
        name: String,
        /// What it is.
        media_type: String,
        /// Until when it is kept.
        expires_at: UnixMillis,
    }
}

record! {
    /// How much a tenant has.
    pub struct TenantFilesRow in "tenant_files", key 1 {
        /// The tenant.
        tenant: String,
        /// Its files.
        files: i64,
        /// Its blobs: files of the same bytes have one.
        blobs: i64,
        /// Their bytes.
        bytes: i64,
    }
}
