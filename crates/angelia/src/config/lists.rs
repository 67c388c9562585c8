//! Settings of which there may be several: lists of tables, such as `[[bots]]`
//! and `[[identity.oidc]]`.

use super::bot_fields::BOTS;
use super::fault::Problem;
use super::keys::{Shown, quoted};
use super::raw::Given;
use super::values::{endpoint, issuer, word};
use super::{Config, Oidc};

/// A list of tables.
pub(super) struct List {
    /// The section it stands in; empty if it stands by itself.
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    /// Adds an entry; the fields are read into the last one.
    pub(super) begin: fn(&mut Config),
    /// Looks at the last entry as a whole, beside those before it.
    pub(super) check: fn(&Config) -> Result<(), Problem>,
    /// How many entries there are.
    pub(super) count: fn(&Config) -> usize,
}

/// One key of such a table.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Why it must be there; `None` if it has a default.
    pub(super) required: Option<&'static str>,
    pub(super) read: fn(&mut Config, &Given<'_>) -> Result<(), Problem>,
    /// The value of one entry.
    pub(super) show: fn(&Config, usize) -> Shown,
}

impl List {
    /// `section.name`, or the name alone.
    pub(super) fn path(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }
}

/// All lists.
pub(super) const LISTS: &[List] = &[OIDC, BOTS];

const OIDC: List = List {
    section: "identity",
    name: "oidc",
    fields: &[
        Field {
            name: "issuer",
            required: Some("tokens are trusted by who issued them"),
            read: |config, given| issuer(given).map(|it| with_oidc(config, |oidc| oidc.issuer = it)),
            show: |config, index| quoted(&config.identity.oidc[index].issuer),
        },
        Field {
            name: "jwks_url",
            required: Some("the issuer's keys are fetched from it"),
            read: |config, given| endpoint(given).map(|it| with_oidc(config, |oidc| oidc.jwks_url = it)),
            show: |config, index| quoted(&config.identity.oidc[index].jwks_url),
        },
        Field {
            name: "audience",
            required: Some("without it a token made for any other service of this issuer would be good here"),
            read: |config, given| {
                word(given, "angelia").map(|it| with_oidc(config, |oidc| oidc.audience = it))
            },
            show: |config, index| quoted(&config.identity.oidc[index].audience),
        },
        Field {
            name: "tenant_claim",
            required: None,
            read: |config, given| {
                word(given, "tid").map(|it| with_oidc(config, |oidc| oidc.tenant_claim = it))
            },
            show: |config, index| quoted(&config.identity.oidc[index].tenant_claim),
        },
    ],
    begin: |config| config.identity.oidc.push(Oidc::default()),
    check: |config| one_entry_per_issuer(&config.identity.oidc),
    count: |config| config.identity.oidc.len(),
};

fn with_oidc(config: &mut Config, change: impl FnOnce(&mut Oidc)) {
    if let Some(oidc) = config.identity.oidc.last_mut() {
        change(oidc);
    }
}

/// Two entries would make it a matter of order which keys and audience count.
fn one_entry_per_issuer(entries: &[Oidc]) -> Result<(), Problem> {
    match entries.split_last() {
        Some((last, before))
            if !last.issuer.is_empty() && before.iter().any(|other| other.issuer == last.issuer) =>
        {
            let message = format!("names {:?} a second time; an issuer has one entry", last.issuer);
            Err(Problem::BadValue { key: "identity.oidc.issuer".into(), message })
        }
        _ => Ok(()),
    }
}
