//! Who typed link codes lately, as it is kept.

use crate::clock::UnixMillis;
use crate::records::table::{field, record};

/// Times in one column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(pub Vec<UnixMillis>);

// What cannot be read was not written by anybody: nobody is kept out by it.
field!(Times as String, |times| serde_json::json!(times.0).to_string(), |text| Some(Times(
    serde_json::from_str(&text).unwrap_or_default()
)));

record! {
    /// What somebody did with link codes lately.
    pub struct LinkTriesRow in "link_tries", key 1 {
        /// Who, as the audit log has them.
        who: String,
        /// When codes were wrong, as a JSON array.
        wrong: Times,
        /// What recognises the last good one, with its place.
        used: Option<String>,
        /// When either was written.
        at: UnixMillis,
    }
}
