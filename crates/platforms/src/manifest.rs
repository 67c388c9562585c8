//! What a platform says of itself to operators: how its places are written, and what it is
//! configured with. Each platform has one, in its `manifest.rs`; nobody else knows a
//! platform by name (docs/decisions/0039).

use crate::settings::{Block, SectionKey};
use crate::{discord, sms, telegram, webchat, wecom};
use angelia_core::admission::{Grammar, Places};

/// What a platform says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// How its places are written.
    pub places: Grammar,
    /// What it is configured with.
    pub setup: Setup,
}

/// What a platform is configured with.
#[derive(Clone, Copy, Debug)]
pub enum Setup {
    /// A block of `[[bots]]` for each of its bots.
    Bots(&'static Block),
    /// A section of its own: it is built in.
    Section {
        /// The section's keys.
        keys: &'static [SectionKey],
        /// The section as the commented default file has it.
        sample: &'static str,
    },
}

/// Every platform, in the order in which operators are told of them.
pub const ALL: [Manifest; 5] =
    [webchat::MANIFEST, discord::MANIFEST, telegram::MANIFEST, sms::MANIFEST, wecom::MANIFEST];

/// How places are written on all platforms.
pub const PLACES: Places = Places(&GRAMMARS);

const GRAMMARS: [Grammar; ALL.len()] = {
    let mut grammars = [ALL[0].places; ALL.len()];
    let mut at = 1;
    while at < ALL.len() {
        grammars[at] = ALL[at].places;
        at += 1;
    }
    grammars
};

/// The blocks of all platforms that have bots.
pub fn blocks() -> impl Iterator<Item = &'static Block> + Clone {
    ALL.into_iter().filter_map(|manifest| match manifest.setup {
        Setup::Bots(block) => Some(block),
        Setup::Section { .. } => None,
    })
}

/// The keys of all platforms that have a section.
pub fn section_keys() -> impl Iterator<Item = &'static SectionKey> + Clone {
    ALL.into_iter().flat_map(|manifest| match manifest.setup {
        Setup::Bots(_) => [].iter(),
        Setup::Section { keys, .. } => keys.iter(),
    })
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
