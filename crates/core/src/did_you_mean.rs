//! "Did you mean …?": the known name that is most like the one somebody wrote.

/// How alike two names must be for one to be suggested for the other.
const ALIKE: f64 = 0.6;

/// The known name that takes the fewest changes, however many those are: for short
/// lists, of which one must have been meant. The first of several.
pub fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|known| strsim::levenshtein(name, known))
}

/// The known name that is most alike, if any is alike at all. The last of several.
pub fn alike(name: &str, known: impl IntoIterator<Item = String>) -> Option<String> {
    let likeness = |known: String| (strsim::normalized_damerau_levenshtein(name, &known), known);
    let alike = known.into_iter().map(likeness).filter(|(likeness, _)| *likeness >= ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_short_list_one_is_always_meant() {
        for (name, meant) in [("smms", "sms"), ("sitting", "kitten"), ("", "sms")] {
            assert_eq!(closest(name, ["kitten", "sms"]), Some(meant), "{name}");
        }
        assert_eq!(closest("x", []), None);
    }

    #[test]
    fn of_a_long_one_only_what_is_alike() {
        let known = || ["server.listen", "log.level"].map(str::to_owned);
        assert_eq!(alike("server.lisetn", known()).as_deref(), Some("server.listen"));
        assert_eq!(alike("tokens", known()), None);
    }
}
