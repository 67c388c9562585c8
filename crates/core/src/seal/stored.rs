//! Every sealed value there is, and a change of the master key as rules over records. A
//! new kind is one more line of [`KINDS`]; one that is missing there would be lost with the
//! next change of the key.

use super::{ADMIN_TOKEN, BUS_KEY, FORMER_KEY, Head, KEY_CHECK, KeyId, OAUTH_KEY, may_retire};
use crate::audit::{Actor, AuditEntry};
use crate::directory::BotKey;
use crate::error::{Error, Result};
use crate::ports::BoxFuture;
use crate::records::rows::{
    NoteRow, SealedBlobRow, SealedCapabilityRow, SealedSecretRow, SealedTenantRow, SealedUpdateRow,
};
use crate::records::{Change, Direction, Erased, Kind, Record, Records, Value, View, Write, change, look};
use crate::store::{Filling, Page, PageSize};

/// One sealed value, wherever it rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedValue {
    /// What it is, in words for people.
    pub kind: &'static str,
    /// Which of its kind.
    pub row: String,
    /// What it is bound to; it opens only together with it.
    pub bound_to: String,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// A sealed value and what takes its place.
#[derive(Clone, Debug)]
pub struct Resealed {
    /// As it was read.
    pub old: SealedValue,
    /// The same secret under another key.
    pub sealed: Vec<u8>,
}

/// The first step of a change of the master key: from here on it is the new key that
/// opens the store, and finds the old one in it.
#[derive(Clone, Debug)]
pub struct KeyChange {
    /// The key there was.
    pub from: KeyId,
    /// The key there is to be.
    pub to: KeyId,
    /// The note [`KEY_CHECK`](crate::seal::KEY_CHECK) as it was read.
    pub old_check: Vec<u8>,
    /// The same under the new key.
    pub check: Vec<u8>,
    /// The old key under the new one, for the note [`FORMER_KEY`](crate::seal::FORMER_KEY).
    pub former: Vec<u8>,
}

/// What became of the key before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// Something needs it still: nothing was changed.
    Needed,
    /// It is forgotten.
    Gone {
        /// Whether what was sealed with it is gone from the disk already, or goes when
        /// the log is emptied next.
        erased: bool,
    },
}

/// Everything that is sealed, for a look at it and for a change of the master key, asked of any
/// records.
pub trait SealStore: Records {
    /// What comes after a value, in an order that stays, or the first of all.
    fn sealed_values(
        &self,
        after: Option<&SealedValue>,
        size: PageSize,
    ) -> BoxFuture<'_, Result<Page<SealedValue>>> {
        let after = after.map(|value| (value.kind, value.row.clone()));
        look(self, "read what is sealed", move |view| list(view, after.as_ref(), size))
    }

    /// Begins a change of the master key. A conflict, and nothing changed, if the check is
    /// not the one that was read, or a change before it is not finished.
    fn begin_key_change(&self, to: KeyChange, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("begin a change of keys"), move |view| begin_change(view, &to, &by))
    }

    /// Replaces those of the values that are still the `old` ones, in one commit, and
    /// answers how many that were.
    fn reseal(&self, values: Vec<Resealed>) -> BoxFuture<'_, Result<usize>> {
        change(self, Change::to("seal some values anew"), move |view| replace(view, &values))
    }

    /// Forgets the key before the current one, if [`may_retire`](crate::seal::may_retire)
    /// says so of what is stored at that moment.
    fn retire_key(&self, current: Head) -> BoxFuture<'_, Result<Retired>> {
        let erased = Erased::default();
        let told = erased.clone();
        let forget = change(self, Change::to("forget a key"), move |view| retire(view, &current, &told));
        Box::pin(async move {
            let gone = forget.await?;
            Ok(if gone { Retired::Gone { erased: erased.is_so() } } else { Retired::Needed })
        })
    }
}

impl<R: Records + ?Sized> SealStore for R {}

/// Rows read at a time. One may hold what a provider sent, which can be long.
const ROWS: usize = 16;

/// Every kind, in words for people, and where it rests.
const KINDS: [(&str, Rests); 9] = [
    ("key check", Rests::Note(KEY_CHECK)),
    ("key of the token endpoint", Rests::Note(OAUTH_KEY)),
    ("key of the bus", Rests::Note(BUS_KEY)),
    ("admin token", Rests::Note(ADMIN_TOKEN)),
    ("delivery key of a tenant", Rests::rows::<SealedTenantRow>()),
    ("secret of a gateway", Rests::rows::<SealedSecretRow>()),
    ("unreadable update", Rests::rows::<SealedUpdateRow>()),
    ("capability", Rests::rows::<SealedCapabilityRow>()),
    ("key of a file", Rests::rows::<SealedBlobRow>()),
];

/// Where sealed values of one kind rest.
enum Rests {
    /// In the note of this name.
    Note(&'static str),
    /// In the rows of a table.
    Rows {
        /// Takes what comes after a row into a page; answers whether the page is full.
        list: fn(&mut View<'_>, &mut Sheet, &'static str, &str) -> Result<bool>,
        /// Puts other bytes in the place of a value; `false` if it is not there any more.
        replace: fn(&mut View<'_>, &Resealed) -> Result<bool>,
        /// How the least and the greatest value begin.
        heads: fn(&mut View<'_>) -> Result<Vec<Vec<u8>>>,
    },
}

impl Rests {
    const fn rows<R: Sealed>() -> Self {
        Self::Rows { list: list_rows::<R>, replace: replace_row::<R>, heads: |view| view.heads::<R>() }
    }
}

/// A record that holds a sealed value. It is named by its key, which is one column.
trait Sealed: Record {
    /// Its key.
    fn key(&self) -> Value {
        self.to_row().swap_remove(0)
    }

    /// The value, if it has one.
    fn sealed(&mut self) -> Option<&mut Vec<u8>>;

    /// What the value is bound to.
    fn bound_to(&self) -> String;
}

impl Sealed for SealedTenantRow {
    fn sealed(&mut self) -> Option<&mut Vec<u8>> {
        self.delivery_key.as_mut()
    }

    fn bound_to(&self) -> String {
        super::delivery_key(&self.tenant)
    }
}

impl Sealed for SealedSecretRow {
    fn sealed(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.sealed)
    }

    fn bound_to(&self) -> String {
        super::gateway_secret(&self.tenant, &self.gateway_id)
    }
}

impl Sealed for SealedUpdateRow {
    fn sealed(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.sealed)
    }

    fn bound_to(&self) -> String {
        super::quarantine(&self.platform, &self.bot)
    }
}

impl Sealed for SealedCapabilityRow {
    fn sealed(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.sealed)
    }

    fn bound_to(&self) -> String {
        let bot = BotKey { platform: self.platform.as_str().into(), bot: self.bot.as_str().into() };
        let whom = [self.chat_id.as_str(), &self.user_id, &self.interaction_id];
        super::capability(&self.tenant, self.instance, &bot, whom)
    }
}

impl Sealed for SealedBlobRow {
    fn sealed(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.sealed)
    }

    fn bound_to(&self) -> String {
        super::blob_key(&self.tenant, &self.blob)
    }
}

/// A page in the making.
struct Sheet {
    filling: Filling,
    page: Page<SealedValue>,
}

impl Sheet {
    /// Takes a value; `false` if the page is full.
    fn takes(&mut self, value: SealedValue) -> bool {
        let fits = self.filling.takes(value.sealed.len());
        if fits {
            self.page.items.push(value);
        } else {
            self.page.more = true;
        }
        fits
    }
}

/// What is sealed after a value, in an order that stays.
fn list(
    view: &mut View<'_>,
    after: Option<&(&'static str, String)>,
    size: PageSize,
) -> Result<Page<SealedValue>> {
    let mut sheet = Sheet { filling: Filling::new(size), page: Page::default() };
    let (from, mut row) = after.map_or((KINDS[0].0, ""), |(kind, row)| (*kind, row.as_str()));
    for (kind, rests) in KINDS.iter().skip_while(|(kind, _)| *kind != from) {
        let after = std::mem::take(&mut row);
        let is_full = match rests {
            Rests::Note(name) => list_note(view, &mut sheet, kind, (name, after))?,
            Rests::Rows { list, .. } => list(view, &mut sheet, kind, after)?,
        };
        if is_full {
            break;
        }
    }
    Ok(sheet.page)
}

fn list_rows<R: Sealed>(
    view: &mut View<'_>,
    sheet: &mut Sheet,
    kind: &'static str,
    after: &str,
) -> Result<bool> {
    let along = R::TABLE.columns[0].name;
    let mut last = key::<R>(after);
    loop {
        let rows = view.walk::<R>((&[], ()), along, (Direction::Up, last.clone()), ROWS)?;
        let is_last = rows.len() < ROWS;
        for mut row in rows {
            last = row.key();
            let Some(sealed) = row.sealed().map(std::mem::take) else { continue };
            let value = SealedValue { kind, row: name(&last), bound_to: row.bound_to(), sealed };
            if !sheet.takes(value) {
                return Ok(true);
            }
        }
        if is_last {
            return Ok(false);
        }
    }
}

fn list_note(
    view: &mut View<'_>,
    sheet: &mut Sheet,
    kind: &'static str,
    (name, after): (&str, &str),
) -> Result<bool> {
    let note = view.get::<NoteRow>((name,))?.filter(|_| after.is_empty());
    let Some(NoteRow { name, value }) = note else { return Ok(false) };
    Ok(!sheet.takes(SealedValue { kind, bound_to: name.clone(), row: name, sealed: value }))
}

/// The key of a row, from its name. Every row comes after the empty one.
fn key<R: Record>(name: &str) -> Value {
    match R::TABLE.columns[0].kind {
        Kind::Int => Value::Int(name.parse().unwrap_or_default()),
        Kind::Text | Kind::Bytes => Value::Text(name.to_owned()),
    }
}

fn name(key: &Value) -> String {
    match key {
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Null | Value::Bytes(_) => String::new(),
    }
}

/// Begins a change of the master key: from here on the new key opens the store, and finds
/// the old one in it.
fn begin_change(view: &mut View<'_>, change: &KeyChange, by: &Actor) -> Result<()> {
    if view.get::<NoteRow>((FORMER_KEY,))?.is_some() {
        return Err(Error::conflict("a change of keys before this one is not finished"));
    }
    let check = view.get::<NoteRow>((KEY_CHECK,))?;
    if check.map(|note| note.value).as_ref() != Some(&change.old_check) {
        return Err(Error::conflict("the master key was changed meanwhile; nothing was changed"));
    }
    view.put(&NoteRow { name: KEY_CHECK.to_owned(), value: change.check.clone() });
    view.put(&NoteRow { name: FORMER_KEY.to_owned(), value: change.former.clone() });
    let entry = AuditEntry::done(by, "key.rotate", "", &change.to.to_string());
    view.audit(&entry.with(format!("from {}", change.from)));
    Ok(())
}

/// Replaces those of the values that are still as they were read; answers how many.
fn replace(view: &mut View<'_>, values: &[Resealed]) -> Result<usize> {
    let mut replaced = 0;
    for value in values {
        let Some((_, rests)) = KINDS.iter().find(|(kind, _)| *kind == value.old.kind) else { continue };
        replaced += usize::from(match rests {
            Rests::Note(_) => replace_note(view, value)?,
            Rests::Rows { replace, .. } => replace(view, value)?,
        });
    }
    Ok(replaced)
}

fn replace_row<R: Sealed>(view: &mut View<'_>, Resealed { old, sealed }: &Resealed) -> Result<bool> {
    let Some(mut row) = view.get::<R>((key::<R>(&old.row),))? else { return Ok(false) };
    let Some(value) = row.sealed().filter(|value| **value == old.sealed) else { return Ok(false) };
    value.clone_from(sealed);
    view.replace(&row);
    Ok(true)
}

fn replace_note(view: &mut View<'_>, Resealed { old, sealed }: &Resealed) -> Result<bool> {
    let note = view.get::<NoteRow>((&old.row,))?.filter(|note| note.value == old.sealed);
    let Some(note) = note else { return Ok(false) };
    view.put(&NoteRow { value: sealed.clone(), ..note });
    Ok(true)
}

/// Forgets the key before the current one, unless something that is stored needs it.
/// `erased` is told whether it is gone from the disk as well.
fn retire(view: &mut View<'_>, current: &Head, erased: &Erased) -> Result<bool> {
    for (_, rests) in &KINDS {
        let heads = match rests {
            Rests::Note(name) => view.get::<NoteRow>((name,))?.into_iter().map(|note| note.value).collect(),
            Rests::Rows { heads, .. } => heads(view)?,
        };
        if !may_retire(current, heads.iter().map(Vec::as_slice)) {
            return Ok(false);
        }
    }
    if let Some(former) = view.get::<NoteRow>((FORMER_KEY,))? {
        view.delete(&former);
    }
    view.also(Write::Erase(erased.clone()));
    Ok(true)
}
