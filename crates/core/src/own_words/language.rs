//! Which language somebody is spoken to in.

use crate::words::words;

words! {
    /// A language that the connector speaks.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Language {
        /// English, also for whoever nothing is known of.
        #[default]
        English = "en",
        /// German.
        German = "de",
    }
}

/// Preferences read of a browser: nobody has more, and whoever sends more may wait for nothing.
const MAX_PREFERENCES: usize = 16;

impl Language {
    /// The language for whoever has set theirs to this tag, such as `de-AT` or `de_AT`:
    /// English for everybody whose language is not spoken here.
    pub fn of_tag(tag: &str) -> Self {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        Self::parse(&primary).unwrap_or_default()
    }

    /// The language for a browser that sends this `Accept-Language`: of those it wants most the
    /// first that is spoken here.
    pub fn of_accept(header: &str) -> Self {
        let read = |preference: &str| {
            let (tag, rest) = preference.split_once(';').unwrap_or((preference, "q=1"));
            let weight = rest.trim().strip_prefix("q=")?.parse::<f32>().ok()?;
            let primary = tag.trim().split('-').next()?.to_ascii_lowercase();
            Some((Self::parse(&primary)?, weight)).filter(|(_, weight)| *weight > 0.0)
        };
        let spoken = header.split(',').take(MAX_PREFERENCES).filter_map(read);
        let wanted = spoken.reduce(|best, next| if next.1 > best.1 { next } else { best });
        wanted.map_or_else(Self::default, |(language, _)| language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_by_its_first_part() {
        for tag in ["de", "de-AT", "de_CH", "DE", " de-Latn-DE"] {
            assert_eq!(Language::of_tag(tag), Language::German, "{tag}");
        }
        for tag in ["en", "en-GB", "den", "deu", "fr", "zh-hans", "", "-de"] {
            assert_eq!(Language::of_tag(tag), Language::English, "{tag}");
        }
    }

    #[test]
    fn a_browser_gets_what_it_wants_most() {
        for header in ["de", "de-DE,de;q=0.9,en;q=0.8", "en;q=0.5, de;q=0.7", "fr, de;q=0.1", "*, de"] {
            assert_eq!(Language::of_accept(header), Language::German, "{header}");
        }
        for header in ["", "en,de", "fr", "de;q=0", "de;q=x", "de;x", "*", "en;q=0.9,de;q=0.8", ";;,,"] {
            assert_eq!(Language::of_accept(header), Language::English, "{header}");
        }
        let far_down = format!("{}de", "fr,".repeat(MAX_PREFERENCES));
        assert_eq!(Language::of_accept(&far_down), Language::English);
    }
}
