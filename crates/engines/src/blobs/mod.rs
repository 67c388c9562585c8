//! What implements the port of blobs: a folder, and memory for tests.

mod folder;
mod memory;

pub use folder::FolderBlobs;
pub use memory::MemoryBlobs;
