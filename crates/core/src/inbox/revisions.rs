//! Entries that their authors changed while they waited.

use super::Entry;

/// Changed entries a socket is told of: more than it keeps in memory.
const MAX_REVISED: usize = 256;

/// Changed entries, each in its newest form.
#[derive(Debug, Default)]
pub struct Revisions(Vec<Entry>);

impl Revisions {
    /// Takes a changed entry. Beyond a limit it is left out: whoever changes so
    /// much at once may be too late with some of it, and nothing worse.
    pub fn put(&mut self, entry: Entry) {
        if let Some(known) = self.0.iter_mut().find(|known| known.seq == entry.seq) {
            if known.revision < entry.revision {
                *known = entry;
            }
        } else if self.0.len() < MAX_REVISED {
            self.0.push(entry);
        }
    }

    /// Brings a copy of an entry up to date.
    pub fn apply(&self, entry: &mut Entry) {
        let newer = self.0.iter().find(|known| known.seq == entry.seq && known.revision > entry.revision);
        if let Some(newer) = newer {
            *entry = newer.clone();
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Takes them out.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry> {
        std::mem::take(&mut self.0).into_iter()
    }
}
