//! A text that is longer than one message, and how it changes.

/// One step of bringing messages to a new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This message shows that part now.
    Rewrite {
        /// The message.
        message: String,
        /// The part.
        part: usize,
    },
    /// That part needs a message of its own.
    Add {
        /// The part.
        part: usize,
    },
    /// This message shows nothing any more.
    Remove {
        /// The message.
        message: String,
    },
}

/// The steps that make a message and its further pieces show `parts` parts:
/// first what is there, then what is missing, last what is too much.
pub(super) fn plan(first: &str, pieces: &[String], parts: usize) -> Vec<Step> {
    let there = std::iter::once(first).chain(pieces.iter().map(String::as_str));
    let mut steps: Vec<Step> = there
        .clone()
        .take(parts)
        .enumerate()
        .map(|(part, message)| Step::Rewrite { message: message.to_owned(), part })
        .collect();
    steps.extend((steps.len()..parts).map(|part| Step::Add { part }));
    // From the end, so that what stays is never behind what goes.
    let surplus: Vec<&str> = there.skip(parts.max(1)).collect();
    steps.extend(surplus.iter().rev().map(|message| Step::Remove { message: (*message).to_owned() }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_grow_and_shrink_by_pieces() {
        let rewrite = |message: &str, part| Step::Rewrite { message: message.into(), part };
        let remove = |message: &str| Step::Remove { message: message.into() };
        let pieces = ["11".to_owned(), "12".to_owned()];
        assert_eq!(plan("10", &[], 1), [rewrite("10", 0)]);
        assert_eq!(plan("10", &[], 3), [rewrite("10", 0), Step::Add { part: 1 }, Step::Add { part: 2 }]);
        assert_eq!(plan("10", &pieces, 3), [rewrite("10", 0), rewrite("11", 1), rewrite("12", 2)]);
        assert_eq!(
            plan("10", &pieces, 4),
            [rewrite("10", 0), rewrite("11", 1), rewrite("12", 2), Step::Add { part: 3 }]
        );
        assert_eq!(plan("10", &pieces, 1), [rewrite("10", 0), remove("12"), remove("11")]);
        assert_eq!(plan("10", &pieces, 2), [rewrite("10", 0), rewrite("11", 1), remove("12")]);
    }
}
