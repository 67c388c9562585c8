//! Looks for secrets where they do not belong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Every file below a folder: those of people and agents lie deeper than the database.
///
/// # Panics
///
/// When a folder cannot be read.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("read a folder") {
        let path = entry.expect("read a folder").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Secrets, and everything that could carry one.
#[derive(Debug, Default)]
pub struct Aviary {
    /// What each secret is, and the secret.
    pub secrets: Vec<(String, String)>,
    /// Where something was seen, and what.
    pub seen: Vec<(String, Vec<u8>)>,
}

impl Aviary {
    /// Notes a secret.
    ///
    /// # Panics
    ///
    /// When it is short: such a one would be found by chance.
    pub fn plant(&mut self, what: &str, secret: &str) {
        assert!(secret.len() >= 16, "{what} is too short to be searched for: {secret:?}");
        self.secrets.push((what.to_owned(), secret.to_owned()));
    }

    /// Takes what was seen somewhere.
    pub fn see(&mut self, where_: &str, what: impl Into<Vec<u8>>) {
        self.seen.push((where_.to_owned(), what.into()));
    }

    /// Takes an answer that hands out secrets: they are planted, the rest is seen.
    ///
    /// # Panics
    ///
    /// When the answer has no such field.
    pub fn handed_out(&mut self, where_: &str, answer: &Value, fields: &[&str]) {
        let mut rest = answer.to_string();
        for field in fields {
            let secret =
                answer[field].as_str().unwrap_or_else(|| panic!("no {field} in {answer}")).to_owned();
            rest = rest.replace(&secret, "(its own)");
            self.plant(&format!("{field} of {where_}"), &secret);
        }
        self.see(where_, rest);
    }

    /// Everything that was found where it does not belong.
    pub fn escaped(&self) -> Vec<String> {
        let starts = self.by_start();
        let mut found = BTreeSet::new();
        for (place, (_, bytes)) in self.seen.iter().enumerate() {
            // One walk for all of them: files have megabytes, and secrets come by the hundred.
            for (at, pair) in bytes.windows(2).enumerate() {
                let here = &starts[start_of(pair)];
                let met = here.iter().filter(|(_, form)| bytes[at..].starts_with(form));
                found.extend(met.map(|(secret, _)| (*secret, place)));
            }
        }
        let told =
            |(secret, place): (usize, usize)| format!("{} in {}", self.secrets[secret].0, self.seen[place].0);
        found.into_iter().map(told).collect()
    }

    /// Every form a secret may have, by its first two bytes.
    fn by_start(&self) -> Vec<Vec<(usize, Vec<u8>)>> {
        let mut starts = vec![Vec::new(); usize::from(u16::MAX) + 1];
        for (number, (_, secret)) in self.secrets.iter().enumerate() {
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            for form in [secret.clone(), secret.to_uppercase(), hex] {
                starts[start_of(form.as_bytes())].push((number, form.into_bytes()));
            }
        }
        starts
    }

    /// Whether something was seen at places that begin like this.
    pub fn holds(&self, where_: &str, what: &str) -> bool {
        self.seen.iter().any(|(place, bytes)| place.starts_with(where_) && contains(bytes, what.as_bytes()))
    }
}

fn start_of(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    // Only where the first byte fits is worth a look; the files are megabytes.
    let first = wanted[0];
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == first) {
        at += next;
        if bytes[at..].starts_with(wanted) {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds() {
        let mut birds = Aviary::default();
        birds.plant("a secret", "0123456789abcdef");
        birds.see("clean", "nothing here, 0123456789abcde");
        assert!(birds.escaped().is_empty());
        birds.see("dirty", "xx0x0123456789abcdefxx");
        birds.see("shouted", "0123456789ABCDEF");
        birds.see("in hex", "30313233343536373839616263646566");
        assert_eq!(birds.escaped(), ["a secret in dirty", "a secret in shouted", "a secret in in hex"]);
    }
}
