//! The next step for a problem: a text with commands, and what is known filled into them.

/// What is known of where a problem came up; what is not stays a word in capitals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// `{place}`: where somebody wrote.
    pub place: Option<&'a str>,
    /// `{author}`: who did.
    pub author: Option<&'a str>,
    /// `{tenant}`: whose place or gateway it is.
    pub tenant: Option<&'a str>,
    /// `{gateway}`: which gateway.
    pub gateway: Option<&'a str>,
}

/// A step with what is known filled in, so that its commands can be pasted into a shell. What would mean
/// something else to a shell is not: strangers choose ids.
pub fn fill(step: &str, known: &Place<'_>) -> String {
    let words = [
        ("{place}", known.place, "PLACE"),
        ("{author}", known.author, "ID"),
        ("{tenant}", known.tenant, "TENANT"),
        ("{gateway}", known.gateway, "GATEWAY"),
    ];
    words.into_iter().fold(step.to_owned(), |text, (name, value, unknown)| {
        text.replace(name, value.filter(|value| is_plain(value)).unwrap_or(unknown))
    })
}

fn is_plain(value: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-.:/@+".contains(c);
    !value.is_empty() && !value.starts_with('-') && value.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_filled_in_unless_a_shell_would_read_it_otherwise() {
        let step = "angelia route add --tenant {tenant} --allow {author} {place}";
        let known = Place { place: Some("webchat:lab"), author: Some("Zoë"), ..Place::default() };
        assert_eq!(fill(step, &known), "angelia route add --tenant TENANT --allow Zoë webchat:lab");
        for odd in ["", "-x", "a b", "$(reboot)", "a;b", "a'b", "a`b", "a\nb", "*", "{tenant}"] {
            let known = Place { author: Some(odd), ..Place::default() };
            assert_eq!(fill("--allow {author}", &known), "--allow ID", "{odd:?}");
        }
    }
}
