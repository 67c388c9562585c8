//! Copying blobs out of their folder, for a backup: as they rest, sealed.

use super::unfinished::{OWNER_ONLY, failed, if_there};
use angelia_core::error::Result;
use angelia_core::media::FileId;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// What came of copying blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedBlobs {
    /// Those that were copied.
    pub count: u64,
    /// Their bytes, as they rest.
    pub bytes: u64,
    /// Those that went before it was their turn.
    pub gone: u64,
}

/// Copies blobs from one folder into another, which is made. A blob never changes, so it may be used
/// meanwhile; one that is past its time may be gone.
///
/// `progress` hears of all bytes so far, now and then.
pub(crate) fn copy_blobs(
    from: &Path,
    to: &Path,
    blobs: &[FileId],
    progress: &mut dyn FnMut(u64),
) -> Result<CopiedBlobs> {
    let mut copied = CopiedBlobs::default();
    let doing = |error| failed("copy the files", error);
    make(to).map_err(doing)?;
    for blob in blobs {
        let folder = to.join(&blob.as_str()[..2]);
        make(&folder).map_err(doing)?;
        let way = Path::new(&blob.as_str()[..2]).join(blob.as_str());
        let bytes = if_there(fs::copy(from.join(&way), to.join(&way))).map_err(doing)?;
        let Some(bytes) = bytes else {
            copied.gone += 1;
            continue;
        };
        File::open(to.join(&way)).and_then(|file| file.sync_all()).map_err(doing)?;
        copied.count += 1;
        copied.bytes += bytes;
        progress(copied.bytes);
    }
    Ok(copied)
}

/// A folder for its owner only, unless it is there.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(folder)
}
