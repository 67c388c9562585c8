//! What a thread is called.

/// Longest name, in characters: as much as the strictest platform takes.
pub const MAX_NAME: usize = 100;
/// Words of a first message that its thread is called by.
const FIRST_WORDS: usize = 8;
/// Longest name that is made of them: lists of threads show no more.
const FIRST_CHARS: usize = 60;
/// What such a name ends with where there was more.
const MORE: &str = "…";

/// A name as it can be given: one line, without what nobody sees, and not too long. `None` if
/// nothing is left.
pub fn clean(name: &str) -> Option<String> {
    let plain: String = name.chars().map(|char| if is_seen(char) { char } else { ' ' }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let name: String = words.join(" ").chars().take(MAX_NAME).collect();
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// Whether a character is one that people see: not a control, and none that turns text around or
/// takes no room.
fn is_seen(char: char) -> bool {
    let turns = matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    // It joins the parts of one emoji.
    !char.is_control() && (!turns || char == '\u{200d}')
}

/// Whether a word is one that only its provider shows: a mention, an emoji of a server's own.
fn is_markup(word: &str) -> bool {
    word.strip_prefix('<').is_some_and(|rest| rest.starts_with(['@', '#', ':', 'a']) && rest.ends_with('>'))
}

/// The name of a thread that a message opens: its first words, or its author's name.
pub fn initial(text: &str, author: Option<&str>) -> String {
    let line = text.lines().find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().filter(|word| !is_markup(word)).collect();
    let mut name = String::new();
    for word in words.iter().take(FIRST_WORDS) {
        if !name.is_empty() && name.chars().count() + 1 + word.chars().count() > FIRST_CHARS {
            break;
        }
        name = if name.is_empty() { (*word).to_owned() } else { format!("{name} {word}") };
    }
    let is_all = name.chars().count() == words.join(" ").chars().count();
    let mut name: String = name.chars().take(FIRST_CHARS).collect();
    if !is_all || name.chars().count() == FIRST_CHARS {
        name.push_str(MORE);
    }
    let of_words = Some(name).filter(|name| name != MORE && !line.is_empty());
    of_words
        .and_then(|name| clean(&name))
        .or_else(|| author.and_then(clean))
        .unwrap_or_else(|| "…".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_what_people_see() {
        assert_eq!(clean("  the\n\tweekly \u{0}report\u{202e} ").as_deref(), Some("the weekly report"));
        assert_eq!(clean("👨\u{200d}💻 at work").as_deref(), Some("👨\u{200d}💻 at work"));
        assert_eq!(clean(&"é".repeat(300)).unwrap().chars().count(), MAX_NAME);
        assert_eq!(clean(&format!("{} b", "a".repeat(99))).as_deref(), Some(&*"a".repeat(99)));
        assert_eq!((clean(""), clean(" \n"), clean("\u{200b}")), (None, None, None));
    }

    #[test]
    fn a_thread_is_called_by_the_first_words() {
        assert_eq!(initial("deploy the docs", None), "deploy the docs");
        assert_eq!(initial("\n\n  deploy\nthe docs", None), "deploy");
        let long = "please look at why the nightly build of the gateway fails since Tuesday";
        assert_eq!(initial(long, None), "please look at why the nightly build of…");
        let word = "x".repeat(200);
        assert_eq!(initial(&word, None).chars().count(), FIRST_CHARS + 1);
        assert_eq!(initial("???", Some("Ann\n Lee")), "Ann Lee", "nothing to call it by");
        assert_eq!(initial("<@77> <:wave:5> hi", None), "hi");
        assert_eq!(initial("<@77>", Some("Ann")), "Ann");
        assert_eq!(initial("", None), "…");
    }
}
