//! An agent's Markdown as HTML that a page may show as it is.
//!
//! The page trusts it, so nothing an agent writes may become more than text:
//! raw HTML is shown as it was typed, links lead to the web or to mail, and
//! pictures are links, because loading one tells its host who is reading.

use pulldown_cmark::{
    Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, TextMergeStream, html,
};
use url::Url;

/// Where links may lead.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Longest HTML of one line, which has up to 8,000 letters; beyond it the line is
/// shown as it was typed.
const MAX_HTML: usize = 128 * 1024;

/// What ends a sentence around an address that was not marked as a link.
const AFTER_ADDRESS: [char; 11] = ['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"', '>'];

/// Markdown to HTML.
pub(super) fn to_html(markdown: &str) -> String {
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut harmless = Harmless::default();
    let events = TextMergeStream::new(parser).flat_map(|event| harmless.take(event));
    let mut page = Bounded(String::with_capacity(markdown.len() * 2));
    match html::write_html_fmt(&mut page, events) {
        Ok(()) => page.0,
        Err(_) => format!("<pre>{}</pre>\n", escaped(markdown)),
    }
}

/// A page that stops growing: a few letters of Markdown can make a table of a
/// hundred thousand cells, which no browser shows.
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MAX_HTML {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// What stands open around an event.
#[derive(Default)]
struct Harmless {
    /// Of each link and picture, whether it was opened.
    links: Vec<bool>,
    in_code: bool,
}

impl Harmless {
    fn take<'a>(&mut self, event: Event<'a>) -> Vec<Event<'a>> {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
            // In a chat a new line is meant as one.
            Event::SoftBreak => vec![Event::HardBreak],
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let open = opened(&dest_url).filter(|_| !self.links.contains(&true));
                self.links.push(open.is_some());
                open.into_iter().collect()
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let opened = self.links.pop().unwrap_or_default();
                opened.then(closed).into_iter().collect()
            }
            // Alignment would be written as a style, which the page forbids.
            Event::Start(Tag::Table(columns)) => {
                vec![Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))]
            }
            Event::Start(Tag::Heading { level, .. }) => {
                let level = below(level);
                vec![Event::Start(Tag::Heading { level, id: None, classes: vec![], attrs: vec![] })]
            }
            Event::End(TagEnd::Heading(level)) => vec![Event::End(TagEnd::Heading(below(level)))],
            Event::Text(text) if self.links.is_empty() && !self.in_code => linked(&text),
            other => {
                match &other {
                    Event::Start(Tag::CodeBlock(_)) => self.in_code = true,
                    Event::End(TagEnd::CodeBlock) => self.in_code = false,
                    _ => {}
                }
                vec![other]
            }
        }
    }
}

/// The page has headings of its own above those of a message.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H4,
        HeadingLevel::H2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// The beginning of a link, if it leads where links may lead.
fn opened(address: &str) -> Option<Event<'static>> {
    let url = Url::parse(address).ok().filter(|url| SCHEMES.contains(&url.scheme()))?;
    let address = escaped(url.as_str());
    let tag = format!("<a href=\"{address}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">");
    Some(Event::InlineHtml(CowStr::from(tag)))
}

fn closed() -> Event<'static> {
    Event::InlineHtml(CowStr::Borrowed("</a>"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A text in which the addresses are links.
fn linked(text: &str) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    let mut plain = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        match address_in(word) {
            Some((before, open, address, after)) => {
                plain.push_str(before);
                events.push(Event::Text(std::mem::take(&mut plain).into()));
                events.extend([open, Event::Text(address.to_owned().into()), closed()]);
                plain.push_str(after);
            }
            None => plain.push_str(word),
        }
    }
    events.push(Event::Text(plain.into()));
    events
}

/// An address in a word, opened as a link, with what stands before and after it.
fn address_in(word: &str) -> Option<(&str, Event<'static>, &str, &str)> {
    let start = ["https://", "http://"].iter().filter_map(|scheme| word.find(scheme)).min()?;
    let (before, rest) = word.split_at(start);
    let address = rest.trim_end().trim_end_matches(AFTER_ADDRESS);
    Some((before, opened(address)?, address, &rest[address.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_write_is_shown_as_they_meant_it() {
        for (markdown, expected) in [
            ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>\n"),
            ("one\ntwo", "<p>one<br />\ntwo</p>\n"),
            ("# Title", "<h4>Title</h4>\n"),
            ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
            (
                "see https://example.org/a_b?x=1&y=2.",
                "<p>see <a href=\"https://example.org/a_b?x=1&amp;y=2\" target=\"_blank\" \
                 rel=\"noopener noreferrer nofollow\">https://example.org/a_b?x=1&amp;y=2</a>.</p>\n",
            ),
        ] {
            assert_eq!(to_html(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn nothing_an_agent_writes_is_more_than_text() {
        for markdown in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=alert(1)>x</div>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "![x](https://example.org/pixel.png)",
            "![x](javascript:alert(1))",
            "[x](https://example.org/\"onmouseover=alert(1))",
            "[x](<https://example.org/' onmouseover='alert(1)>)",
            "<https://example.org/\"><script>alert(1)</script>",
            "https://example.org/\"><script>alert(1)</script>",
            "```\"><script>\n<script>alert(1)</script>\n```",
            "| <b>a</b> |\n|---|\n| <script>x</script> |",
            "<!-- <script>alert(1)</script> -->",
            "&lt;script&gt;",
        ] {
            let html = to_html(markdown);
            let tags: Vec<&str> =
                html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or_default()).collect();
            for tag in tags {
                let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
                let known = ["p", "a", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "br"];
                assert!(known.contains(&name), "{name} in {html}");
                // Within a tag no quote closes early: what follows would be an attribute.
                assert_eq!(tag.matches('"').count() % 2, 0, "{html}");
                assert!(
                    !tag.contains(" on") && !tag.contains("javascript:") && !tag.contains("data:"),
                    "{html}"
                );
            }
        }
    }

    #[test]
    fn a_table_has_no_style_of_its_own_and_ends() {
        assert!(!to_html("|a|b|\n|:-:|--:|\n|1|2|").contains("style"));
        let columns = "|x".repeat(1_000);
        let huge = format!("{columns}\n{}\n{}", "|-".repeat(1_000), "|x\n".repeat(1_300));
        let html = to_html(&huge);
        assert!(html.starts_with("<pre>|x|x") && html.len() < 2 * MAX_HTML, "{} bytes", html.len());
    }

    #[test]
    fn a_link_in_a_link_is_one() {
        let html = to_html("[![alt](https://example.org/a.png)](https://example.org/)");
        assert_eq!((html.matches("<a ").count(), html.matches("</a>").count()), (1, 1), "{html}");
    }
}
