//! Markdown, event by event, becomes text with styles.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::address;
use super::entities::Kind;
use super::table::Table;
use super::visible;
use super::writer::{Styled, Writer};

/// The longest name of a language; longer ones are no names.
const MAX_LANGUAGE: usize = 32;

/// How many quotations and lists one line may open.
///
/// Nobody nests like that, and the parser's time grows with the depth times
/// the lines: a few kilobytes of `- - - -` would keep it busy for seconds.
const MAX_DEPTH: usize = 64;

/// Reads a whole document.
pub(super) fn read(markdown: &str) -> Styled {
    if markdown.lines().any(|line| depth(line) > MAX_DEPTH) {
        return as_typed(markdown);
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader { source: markdown, out: Writer::new(markdown), ..Reader::default() };
    for (event, range) in Parser::new_ext(markdown, options).into_offset_iter() {
        reader.event(event, range);
    }
    reader.out.finish()
}

/// A document as it was typed, without any style.
pub(super) fn as_typed(source: &str) -> Styled {
    let mut out = Writer::new(source);
    out.start_block(0);
    out.words(source, 0..source.len());
    out.finish()
}

/// How many quotations and lists a line could open.
fn depth(line: &str) -> usize {
    let marks = line.trim_start_matches(|c: char| c.is_ascii_digit() || " \t>-+*.)".contains(c));
    let opening = line.as_bytes()[..line.len() - marks.len()].windows(2);
    let opens = |pair: &&[u8]| match pair[0] {
        b'>' => true,
        b'-' | b'+' | b'*' | b'.' | b')' => matches!(pair[1], b' ' | b'\t'),
        _ => false,
    };
    opening.filter(opens).count()
}

#[derive(Default)]
struct Reader<'s> {
    source: &'s str,
    out: Writer<'s>,
    /// The next number of each open list; bullets have none.
    lists: Vec<Option<u64>>,
    /// How many links and images are open; only the outermost leads anywhere.
    links: usize,
    link: Option<Link>,
    code: Option<Code>,
    /// Without any cell while none is open.
    table: Table,
}

struct Link {
    dest: String,
    /// Where its text begins, once there is some.
    start: Option<usize>,
}

#[derive(Default)]
struct Code {
    language: Option<String>,
    /// Each with where it is in the source.
    lines: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Code(code) => self.inline_code(&code, range),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => {
                self.out.start_block(range.start);
                self.out.words("———", range);
                self.out.end_block();
            }
            Event::TaskListMarker(done) => self.out.tick(done),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.words(&text, range),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        if is_block(tag.to_end()) {
            self.out.start_block(range.start);
        }
        match tag {
            Tag::Emphasis => self.out.open(Kind::Italic),
            Tag::Strong | Tag::Heading { .. } => self.out.open(Kind::Bold),
            Tag::Strikethrough if self.is_struck(&range) => self.out.open(Kind::Strikethrough),
            Tag::Strikethrough => self.words("~", range),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.start_link(&dest_url),
            Tag::BlockQuote(_) => self.out.open(Kind::Blockquote),
            Tag::CodeBlock(kind) => {
                self.code = Some(Code { language: language(&kind), ..Code::default() });
            }
            Tag::List(first) => self.lists.push(first),
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => self.table = Table::new(alignments),
            Tag::TableHead | Tag::TableRow => self.table.start_row(range.start),
            Tag::TableCell => self.table.start_cell(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Emphasis => self.out.close(Kind::Italic),
            TagEnd::Strong | TagEnd::Heading(_) => self.out.close(Kind::Bold),
            TagEnd::Strikethrough if self.is_struck(&range) => self.out.close(Kind::Strikethrough),
            TagEnd::Strikethrough => self.words("~", range.end.saturating_sub(1)..range.end),
            TagEnd::Link | TagEnd::Image => self.end_link(range),
            TagEnd::BlockQuote(_) => self.out.close(Kind::Blockquote),
            TagEnd::CodeBlock => {
                let Code { lines, language } = self.code.take().unwrap_or_default();
                self.out.block_of_code(&lines, language);
            }
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Item => self.out.end_item(),
            TagEnd::Table => self.out.block_of_code(&std::mem::take(&mut self.table).lines(), None),
            _ => {}
        }
        if is_block(tag) {
            self.out.end_block();
        }
    }

    fn words(&mut self, words: &str, range: Range<usize>) {
        if let Some(code) = &mut self.code {
            code.push(words, range);
        } else if let Some(cell) = self.table.cell() {
            visible::push(cell, &words.replace('\n', " "));
        } else {
            let first = self.out.words(words, range);
            if let Some(link) = &mut self.link {
                link.start = link.start.or(first);
            }
        }
    }

    fn line_break(&mut self) {
        match self.table.cell() {
            Some(cell) => cell.push(' '),
            None => self.out.new_line(),
        }
    }

    /// Code in a link is written as text: one excludes the other, and an
    /// address is the greater loss.
    fn inline_code(&mut self, code: &str, range: Range<usize>) {
        if self.links == 0 && self.table.cell().is_none() {
            self.out.code(code, range)
        } else {
            self.words(code, range)
        }
    }

    /// One tilde means "about" or "to" in what models write, so two are needed.
    fn is_struck(&self, range: &Range<usize>) -> bool {
        self.source[range.start..].starts_with("~~")
    }

    fn start_link(&mut self, dest: &str) {
        self.links += 1;
        if self.links == 1 {
            let start = self.table.cell().map(|cell| cell.len());
            self.link = Some(Link { dest: dest.to_owned(), start });
        }
    }

    fn end_link(&mut self, range: Range<usize>) {
        self.links = self.links.saturating_sub(1);
        if self.links > 0 {
            return;
        }
        let Some(Link { dest, start }) = self.link.take() else { return };
        let in_table = self.table.cell().is_some();
        let all = self.table.cell().map_or(self.out.written(), |cell| cell.as_str());
        let start = start.unwrap_or(all.len());
        let text = all[start..].trim();
        let shown = address::readable(&dest);
        let at = range.end..range.end;
        if text == dest || text == shown || dest.is_empty() {
            // Telegram finds plain addresses by itself.
        } else if !visible::any(text) {
            self.words(shown, at);
        } else if let Some(url) = address::linkable(&dest).filter(|_| !in_table) {
            self.out.span(Kind::TextLink, start, Some(url));
        } else {
            self.words(&format!(" ({shown})"), at);
        }
    }

    fn start_item(&mut self) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        self.out.start_item(&marker);
    }
}

impl Code {
    /// Adds a stretch of it, which may begin and end within a line.
    fn push(&mut self, words: &str, range: Range<usize>) {
        let mut at = range.start;
        for (number, line) in words.split('\n').enumerate() {
            if number > 0 || self.lines.is_empty() {
                self.lines.push((at, String::new()));
            }
            if let Some((start, text)) = self.lines.last_mut() {
                if text.is_empty() {
                    *start = at.min(range.end);
                }
                visible::push_code(text, line);
            }
            at += line.len() + 1;
        }
    }
}

/// Whether it is a block of its own, and not within one.
fn is_block(tag: TagEnd) -> bool {
    use TagEnd::{Emphasis, Image, Link, Strikethrough, Strong, TableCell, TableHead, TableRow};
    !matches!(tag, Emphasis | Strong | Strikethrough | Link | Image | TableHead | TableRow | TableCell)
}

/// The language of a code block, where its info string begins with a plain word.
fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '#' | '.');
    (word.len() <= MAX_LANGUAGE && word.chars().all(plain)).then(|| word.to_owned())
}
