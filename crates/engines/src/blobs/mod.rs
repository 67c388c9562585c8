//! What implements the port of blobs: a folder, a bucket, and memory for tests.

mod bucket;
mod folder;
mod memory;
mod unfinished;

pub use bucket::{BucketBlobs, Options as BucketOptions};
pub use folder::FolderBlobs;
pub use memory::MemoryBlobs;
