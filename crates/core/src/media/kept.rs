//! Which files there are: whose, for whom, until when, and whether more fit.
//!
//! A blob is written first and its rows are committed behind it, so that nobody is ever pointed to
//! bytes that are not there. What a crash leaves in between is an object without a row, which upkeep
//! finds and removes; one that is younger than [`ORPHAN_AFTER`] may be about to get its row.

use super::handed::{hand_on, keep_longer};
use super::{FileId, Handed, KEPT_FOR};
use crate::clock::UnixMillis;
use crate::error::{Error, Kind, Result};
use crate::inbox::InstanceId;
use crate::ports::BoxFuture;
use crate::records::rows::{BlobRow, FileRow, TenantFilesRow};
use crate::records::{Change, Direction, Records, View, change, look};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How old an object without a row is before it counts as left behind: longer than any upload takes.
pub const ORPHAN_AFTER: Duration = Duration::from_secs(3_600);
/// A use within this time of the last one is not written down again.
const USE_COUNTS_AFTER: Duration = Duration::from_secs(3_600);
/// Rows that one step of upkeep takes away.
const STEP: usize = 200;

const BY_HASH: &[&str] = &["tenant", "hash"];
const BY_BLOB: &[&str] = &["blob"];

/// Who may ask for a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The gateways of one instance.
    Instance(InstanceId),
    /// Whoever reads a room of the web chat.
    Room(String),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(instance) => write!(f, "instance/{}", instance.0),
            Self::Room(room) => write!(f, "room/{room}"),
        }
    }
}

impl FromStr for Holder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::internal("nobody knows who may ask for a file");
        match text.split_once('/') {
            Some(("instance", number)) => {
                number.parse().map(|number| Self::Instance(InstanceId(number))).map_err(|_| unknown())
            }
            Some(("room", room)) => Ok(Self::Room(room.to_owned())),
            _ => Err(unknown()),
        }
    }
}

/// A file whose bytes are where they rest, on its way into the records.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// How it is referred to. One that is there already is kept for longer.
    pub file: FileId,
    /// Whose it is.
    pub tenant: String,
    /// Who may ask for it.
    pub holder: Holder,
    /// The object that was written.
    pub blob: FileId,
    /// Its key, sealed.
    pub sealed: Vec<u8>,
    /// What the same bytes of this tenant have as well.
    pub hash: String,
    /// How many there are.
    pub size: u64,
    /// What people call it.
    pub name: String,
    /// What it is.
    pub media_type: String,
    /// The most a tenant may have with it: so many files,
    pub tenant_files: u64,
    /// and so many bytes.
    pub tenant_bytes: u64,
    /// For how long it is kept.
    pub kept_for: Duration,
}

/// A file that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// How it is referred to.
    pub file: FileId,
    /// Whether its bytes were there before: the object that was written is not needed.
    pub known: bool,
}

/// A file as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Whose it is.
    pub tenant: String,
    /// Where its bytes are.
    pub blob: FileId,
    /// How many there are.
    pub size: u64,
    /// The key they are sealed with, sealed.
    pub sealed: Vec<u8>,
    /// What people call it.
    pub name: String,
    /// What it is.
    pub media_type: String,
}

/// What a tenant has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantFiles {
    /// Files.
    pub files: u64,
    /// Their bytes, the same ones counted once.
    pub bytes: u64,
}

/// A step of forgetting what is past its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Objects that nothing refers to any more.
    pub blobs: Vec<FileId>,
    /// Whether there may be more.
    pub more: bool,
}

/// Files, asked of any records.
pub trait MediaStore: Records {
    /// Keeps a file. Refused if its tenant has as much as it may.
    fn keep_file(&self, new: NewFile) -> BoxFuture<'_, Result<Stored>> {
        change(self, Change::to("keep a file"), move |view| keep(view, &new))
    }

    /// A file that `holder` may ask for, and is kept for longer now; `None` of anybody else's, as of
    /// one that never was.
    fn use_file(&self, file: &FileId, holder: &Holder) -> BoxFuture<'_, Result<Option<KeptFile>>> {
        let (file, holder) = (file.clone(), holder.clone());
        Box::pin(async move {
            let (asked, by) = (file.clone(), holder.clone());
            let found = look(self, "find a file", move |view| find(view, &asked, &by)).await?;
            let Some((kept, is_due)) = found else { return Ok(None) };
            if is_due {
                change(self, Change::to("keep a file longer"), move |view| touch(view, &file, KEPT_FOR))
                    .await?;
            }
            Ok(Some(kept))
        })
    }

    /// Hands a file on to somebody else of its tenant; `None` if it is not there to be handed on.
    fn hand_on(&self, handed: Handed) -> BoxFuture<'_, Result<Option<KeptFile>>> {
        change(self, Change::to("hand a file on"), move |view| hand_on(view, &handed))
    }

    /// Keeps some files of `holder` for that long at least; answers those that are there, in their order.
    fn keep_longer(
        &self,
        files: Vec<FileId>,
        holder: Holder,
        kept_for: Duration,
    ) -> BoxFuture<'_, Result<Vec<Option<KeptFile>>>> {
        change(self, Change::to("keep files longer"), move |view| {
            keep_longer(view, &files, &holder, kept_for)
        })
    }

    /// What a tenant has.
    fn tenant_files(&self, tenant: &str) -> BoxFuture<'_, Result<TenantFiles>> {
        let tenant = tenant.to_owned();
        look(self, "count files", move |view| usage(view, &tenant).map(TenantFiles::from))
    }

    /// What every tenant has that has any.
    fn files_of_tenants(&self) -> BoxFuture<'_, Result<Vec<(String, TenantFiles)>>> {
        look(self, "count files", |view| {
            let rows = view.all::<TenantFilesRow>()?.into_iter();
            Ok(rows.map(|row| (row.tenant.clone(), row.into())).collect())
        })
    }

    /// Forgets some of what is past its time.
    fn expire_files(&self) -> BoxFuture<'_, Result<Expired>> {
        change(self, Change::to("forget files"), expire)
    }

    /// Those of some objects that no row tells of.
    fn unknown_blobs(&self, blobs: Vec<FileId>) -> BoxFuture<'_, Result<Vec<FileId>>> {
        look(self, "find objects without a file", move |view| {
            let mut unknown = Vec::new();
            for blob in &blobs {
                if view.get::<BlobRow>((blob.as_str(),))?.is_none() {
                    unknown.push(blob.clone());
                }
            }
            Ok(unknown)
        })
    }
}

impl<R: Records + ?Sized> MediaStore for R {}

impl From<TenantFilesRow> for TenantFiles {
    fn from(row: TenantFilesRow) -> Self {
        Self { files: row.files.unsigned_abs(), bytes: row.bytes.unsigned_abs() }
    }
}

pub(super) fn usage(view: &mut View<'_>, tenant: &str) -> Result<TenantFilesRow> {
    let none = || TenantFilesRow { tenant: tenant.to_owned(), files: 0, blobs: 0, bytes: 0 };
    Ok(view.get::<TenantFilesRow>((tenant,))?.unwrap_or_else(none))
}

fn keep(view: &mut View<'_>, new: &NewFile) -> Result<Stored> {
    let file = &new.file;
    if view.get::<FileRow>((file.as_str(),))?.is_some_and(|row| row.holder == new.holder) {
        touch(view, file, new.kept_for)?;
        return Ok(Stored { file: file.clone(), known: true });
    }
    let same = view.find::<BlobRow>(BY_HASH, (&*new.tenant, &*new.hash))?.into_iter().next();
    let mut usage = usage(view, &new.tenant)?;
    admit(&usage, new.tenant_files)?;
    usage.files += 1;
    let known = same.is_some();
    let blob = match same {
        Some(row) => row.blob,
        None => add_blob(view, new, &mut usage)?,
    };
    view.put(&usage);
    let expires_at = view.now().after(new.kept_for);
    view.put(&FileRow {
        file: file.to_string(),
        tenant: new.tenant.clone(),
        holder: new.holder.clone(),
        blob,
        name: new.name.clone(),
        media_type: new.media_type.clone(),
        expires_at,
    });
    Ok(Stored { file: file.clone(), known })
}

/// Whether a tenant that may have `most` files may have one more.
pub(super) fn admit(usage: &TenantFilesRow, most: u64) -> Result<()> {
    if usage.files.unsigned_abs() < most {
        return Ok(());
    }
    Err(full("has as many files as it may"))
}

fn full(how: &str) -> Error {
    Error::new(Kind::TooMany, format!("this tenant {how}; older ones go a day after their last use"))
}

/// Keeps a blob and counts it; answers its name.
fn add_blob(view: &mut View<'_>, new: &NewFile, usage: &mut TenantFilesRow) -> Result<String> {
    let size = i64::try_from(new.size).map_err(|_| Error::invalid("no file is that large"))?;
    usage.blobs += 1;
    usage.bytes = usage.bytes.saturating_add(size);
    if usage.bytes.unsigned_abs() > new.tenant_bytes {
        return Err(full("has no room for that file: its files take all the space they may"));
    }
    let (blob, created_at) = (new.blob.to_string(), view.now());
    view.put(&BlobRow {
        blob: blob.clone(),
        tenant: new.tenant.clone(),
        hash: new.hash.clone(),
        size,
        sealed: new.sealed.clone(),
        created_at,
    });
    Ok(blob)
}

/// A file, and whether its use has to be written down.
pub(super) fn find(view: &mut View<'_>, file: &FileId, holder: &Holder) -> Result<Option<(KeptFile, bool)>> {
    let now = view.now();
    let found = view.get::<FileRow>((file.as_str(),))?;
    let Some(row) = found.filter(|row| row.holder == *holder && now < row.expires_at) else {
        return Ok(None);
    };
    let blob = view.get::<BlobRow>((&*row.blob,))?;
    let Some((blob, name)) = blob.and_then(|blob| FileId::parse(&blob.blob).map(|name| (blob, name))) else {
        return Ok(None);
    };
    let is_due = row.expires_at.after(USE_COUNTS_AFTER) <= now.after(KEPT_FOR);
    let kept = KeptFile {
        tenant: row.tenant,
        blob: name,
        size: blob.size.unsigned_abs(),
        sealed: blob.sealed,
        name: row.name,
        media_type: row.media_type,
    };
    Ok(Some((kept, is_due)))
}

pub(super) fn touch(view: &mut View<'_>, file: &FileId, kept_for: Duration) -> Result<()> {
    let until = view.now().after(kept_for);
    if let Some(mut row) = view.get::<FileRow>((file.as_str(),))?.filter(|row| row.expires_at < until) {
        row.expires_at = until;
        view.replace(&row);
    }
    Ok(())
}

fn expire(view: &mut View<'_>) -> Result<Expired> {
    let now = view.now();
    let first = view.walk::<FileRow>((&[], ()), "expires_at", (Direction::Up, UnixMillis(0)), STEP)?;
    let old: Vec<FileRow> = first.into_iter().take_while(|row| row.expires_at <= now).collect();
    let mut expired = Expired { more: old.len() == STEP, ..Expired::default() };
    for row in old {
        view.delete(&row);
        let mut usage = usage(view, &row.tenant)?;
        usage.files -= 1;
        if view.count::<FileRow>(BY_BLOB, (&*row.blob,))? == 0
            && let Some(blob) = view.get::<BlobRow>((&*row.blob,))?
        {
            view.delete(&blob);
            usage.blobs -= 1;
            usage.bytes -= blob.size;
            expired.blobs.extend(FileId::parse(&blob.blob));
        }
        if usage.files <= 0 {
            view.delete(&usage);
        } else {
            view.put(&usage);
        }
    }
    Ok(expired)
}
