//! What operators ask about: a message that reached nobody, a gateway that was turned away. Each has a
//! word, what it means, why it usually comes about, and the command that mends it. They stand here and
//! nowhere else: `explain`, the log, `angelia problems` and docs/problems.md read them from here.

mod dials;
mod messages;
mod step;

pub use dials::TurnedAway;
pub use step::{Place, fill};

use crate::admission::DropReason;

/// Something that can go wrong, in words for whoever runs the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The word for it: in `explain`, in the log, in counters, as an anchor in the documents.
    pub word: &'static str,
    /// What it means.
    pub means: &'static str,
    /// Why it usually comes about.
    pub cause: &'static str,
    /// What to do, with commands; see [`fill`] for what stands in braces. Empty if it is as it should be.
    pub next: &'static str,
}

/// All problems, by what they are about.
pub fn all() -> [(&'static str, Vec<Problem>); 2] {
    [
        ("Messages that reached nobody", DropReason::ALL.map(DropReason::problem).to_vec()),
        ("Gateways that were turned away", TurnedAway::ALL.map(TurnedAway::problem).to_vec()),
    ]
}

/// The problem with this word.
pub fn named(word: &str) -> Option<Problem> {
    all().into_iter().flat_map(|(_, problems)| problems).find(|problem| problem.word == word)
}

/// For the documents: an anchor each.
pub fn markdown() -> String {
    let mut text = String::new();
    for (about, problems) in all() {
        text.push_str(&format!("## {about}\n\n"));
        for Problem { word, means, cause, next } in problems {
            text.push_str(&format!("### {word}\n\n{means}\n\n*Usually:* {cause}\n\n"));
            if !next.is_empty() {
                text.push_str(&format!("*Next:* {}\n\n", fill(next, &Place::default())));
            }
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_word_of_its_own_and_whole_sentences() {
        let problems: Vec<Problem> = all().into_iter().flat_map(|(_, problems)| problems).collect();
        for (at, problem) in problems.iter().enumerate() {
            let Problem { word, means, cause, next } = problem;
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{word}");
            assert!(problems[..at].iter().all(|other| other.word != *word), "{word} twice");
            for text in [means, cause] {
                assert!(text.len() > 20 && text.ends_with('.'), "{word}: {text}");
            }
            assert!(next.is_empty() || next.len() > 10, "{word}: {next}");
            assert_eq!(named(word), Some(*problem));
        }
        assert_eq!(named("no_such_word"), None);
    }

    #[test]
    fn the_documents_have_an_anchor_for_each() {
        let text = markdown();
        for (_, problems) in all() {
            for problem in problems {
                assert!(text.contains(&format!("\n### {}\n", problem.word)), "{}", problem.word);
            }
        }
        assert!(!text.contains('{'), "nothing is left to be filled in: {text}");
    }
}
