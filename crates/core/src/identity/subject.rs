//! Who stands behind an identity token.

use std::fmt;

/// The holder of an identity token: who issued it, and who they say it is.
/// Two issuers' subjects are never the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject(String);

impl Subject {
    /// The subject `name` of `issuer`. An issuer has no white space in it, so the pair stays apart.
    pub fn new(issuer: &str, name: &str) -> Self {
        Self(format!("{issuer} {name}"))
    }

    /// The name its issuer gives it.
    pub fn name(&self) -> &str {
        self.0.split_once(' ').map_or("", |(_, name)| name)
    }

    /// Takes back what [`Subject::as_str`] gave.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text the store keeps.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a proven identity token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Who issued it.
    pub issuer: String,
    /// The tenant, as the issuer calls it.
    pub claim: String,
    /// Who holds it.
    pub subject: Subject,
}
