//! Settings of which there may be several: lists of tables, such as `[[bots]]`
//! and `[[identity.oidc]]`.

use super::Config;
use super::bots::{self, BOTS};
use super::values::{endpoint, issuer};
use angelia_connector::OidcIssuer;
use angelia_platforms::settings::values::word;
use angelia_platforms::settings::{BadValue, Given, Key, Shown};

/// A list of tables.
pub(super) struct List {
    /// The section it stands in; empty if it stands by itself.
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) fields: fn() -> Vec<Field>,
    /// Adds an entry; the fields are read into the last one.
    pub(super) begin: fn(&mut Config),
    /// Looks at the last entry as a whole, beside those before it.
    pub(super) check: fn(&Config) -> Result<(), BadValue>,
    /// How many entries there are.
    pub(super) count: fn(&Config) -> usize,
}

/// One key of such a table.
#[derive(Clone, Copy)]
pub(super) enum Field {
    Own(&'static OwnField),
    /// What a platform adds to its bots.
    OfPlatform(&'static Key),
}

/// A key that every entry has.
pub(super) struct OwnField {
    pub(super) name: &'static str,
    /// Why it must be there; `None` if it has a default.
    pub(super) required: Option<fn() -> String>,
    pub(super) read: fn(&mut Config, &Given<'_>) -> Result<(), BadValue>,
    /// The value of one entry.
    pub(super) show: fn(&Config, usize) -> Shown,
}

impl Field {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own(field) => field.name,
            Self::OfPlatform(key) => key.name,
        }
    }

    /// Why every entry must have it.
    pub(super) fn required(self) -> Option<String> {
        match self {
            Self::Own(field) => field.required.map(|why| why()),
            Self::OfPlatform(_) => None,
        }
    }

    /// Reads a value into the last entry.
    pub(super) fn read(self, config: &mut Config, given: &Given<'_>) -> Result<(), BadValue> {
        match self {
            Self::Own(field) => (field.read)(config, given),
            Self::OfPlatform(key) => bots::read(key, config, given),
        }
    }

    /// The value of one entry.
    pub(super) fn show(self, config: &Config, index: usize) -> Shown {
        match self {
            Self::Own(field) => (field.show)(config, index),
            Self::OfPlatform(key) => bots::show(key, &config.bots[index]),
        }
    }
}

impl List {
    /// What its keys are called.
    pub(super) fn paths(&self) -> Vec<String> {
        (self.fields)().into_iter().map(|field| format!("{}.{}", self.path(), field.name())).collect()
    }

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
    fields: || OIDC_FIELDS.iter().map(Field::Own).collect(),
    begin: |config| config.identity.oidc.push(OidcIssuer::default()),
    check: |config| one_entry_per_issuer(&config.identity.oidc),
    count: |config| config.identity.oidc.len(),
};

const OIDC_FIELDS: &[OwnField] = &[
    OwnField {
        name: "issuer",
        required: Some(|| "tokens are trusted by who issued them".into()),
        read: |config, given| issuer(given).map(|it| with_oidc(config, |oidc| oidc.issuer = it)),
        show: |config, index| Shown::quoted(&config.identity.oidc[index].issuer),
    },
    OwnField {
        name: "jwks_url",
        required: Some(|| "the issuer's keys are fetched from it".into()),
        read: |config, given| endpoint(given).map(|it| with_oidc(config, |oidc| oidc.jwks_url = it)),
        show: |config, index| Shown::quoted(&config.identity.oidc[index].jwks_url),
    },
    OwnField {
        name: "audience",
        required: Some(|| {
            "without it a token made for any other service of this issuer would be good here".into()
        }),
        read: |config, given| word(given, "angelia").map(|it| with_oidc(config, |oidc| oidc.audience = it)),
        show: |config, index| Shown::quoted(&config.identity.oidc[index].audience),
    },
    OwnField {
        name: "tenant_claim",
        required: None,
        read: |config, given| word(given, "tid").map(|it| with_oidc(config, |oidc| oidc.tenant_claim = it)),
        show: |config, index| Shown::quoted(&config.identity.oidc[index].tenant_claim),
    },
];

fn with_oidc(config: &mut Config, change: impl FnOnce(&mut OidcIssuer)) {
    if let Some(oidc) = config.identity.oidc.last_mut() {
        change(oidc);
    }
}

/// Two entries would make it a matter of order which keys and audience count.
fn one_entry_per_issuer(entries: &[OidcIssuer]) -> Result<(), BadValue> {
    match entries.split_last() {
        Some((last, before))
            if !last.issuer.is_empty() && before.iter().any(|other| other.issuer == last.issuer) =>
        {
            let message = format!("names {:?} a second time; an issuer has one entry", last.issuer);
            Err(BadValue { key: "identity.oidc.issuer".into(), message })
        }
        _ => Ok(()),
    }
}
