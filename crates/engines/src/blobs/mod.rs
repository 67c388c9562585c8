//! What implements the port of blobs: a folder, a bucket, and memory for tests.

mod bucket;
mod copy;
mod disk;
mod folder;
mod memory;
mod unfinished;

pub use bucket::{BucketBlobs, Options as BucketOptions};
pub use copy::CopiedBlobs;
pub(crate) use copy::copy_blobs;
pub use folder::FolderBlobs;
pub use memory::MemoryBlobs;
