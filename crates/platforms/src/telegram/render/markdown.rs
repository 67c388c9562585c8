//! Markdown, event by event, becomes text with styles.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::address;
use super::entities::{Kind, Span};
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
    let mut reader = Reader {
        source: markdown,
        out: Writer::new(markdown),
        lists: Vec::new(),
        items: Vec::new(),
        strikes: Vec::new(),
        links: 0,
        link: None,
        code: None,
        table: None,
    };
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

struct Reader<'s> {
    source: &'s str,
    out: Writer<'s>,
    /// The next number of each open list; bullets have none.
    lists: Vec<Option<u64>>,
    /// The indentation outside each open item.
    items: Vec<usize>,
    /// Which of the open strikethroughs are meant.
    strikes: Vec<bool>,
    /// How many links and images are open; only the outermost leads anywhere.
    links: usize,
    link: Option<Link>,
    code: Option<Code>,
    table: Option<Table>,
}

struct Link {
    dest: String,
    /// Where its text begins, once there is some.
    start: Option<usize>,
}

#[derive(Default)]
struct Code {
    language: Option<String>,
    text: String,
    /// Where in the text each piece begins, and where that is in the source.
    pieces: Vec<(usize, Range<usize>)>,
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
        match tag {
            Tag::Emphasis => self.out.open(Kind::Italic),
            Tag::Strong => self.out.open(Kind::Bold),
            Tag::Strikethrough => self.start_strike(range),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.start_link(&dest_url),
            Tag::Heading { .. } => {
                self.out.start_block(range.start);
                self.out.open(Kind::Bold);
            }
            Tag::BlockQuote(_) => self.out.start_quote(range.start),
            Tag::CodeBlock(kind) => {
                self.out.start_block(range.start);
                self.code = Some(Code { language: language(&kind), ..Code::default() });
            }
            Tag::List(first) => {
                self.out.start_block(range.start);
                self.lists.push(first);
            }
            Tag::Item => self.start_item(range.start),
            Tag::Table(alignments) => {
                self.out.start_block(range.start);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row(range.start);
                }
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.start_cell();
                }
            }
            _ => self.out.start_block(range.start),
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Emphasis => self.out.close(Kind::Italic),
            TagEnd::Strong => self.out.close(Kind::Bold),
            TagEnd::Strikethrough => self.end_strike(range),
            TagEnd::Link | TagEnd::Image => self.end_link(range),
            TagEnd::Heading(_) => {
                self.out.close(Kind::Bold);
                self.out.end_block();
            }
            TagEnd::BlockQuote(_) => self.out.end_quote(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.out.end_block();
            }
            TagEnd::Item => {
                let before = self.items.pop().unwrap_or_default();
                self.out.end_item(before);
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.out.block_of_code(&table.lines(), None);
                }
                self.out.end_block();
            }
            TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell => {}
            _ => self.out.end_block(),
        }
    }

    fn words(&mut self, words: &str, range: Range<usize>) {
        if let Some(code) = &mut self.code {
            code.pieces.push((code.text.len(), range));
            visible::push_code(&mut code.text, words);
        } else if let Some(cell) = self.table.as_mut().and_then(Table::cell) {
            visible::push(cell, &words.replace('\n', " "));
        } else {
            let first = self.out.words(words, range);
            if let Some(link) = &mut self.link {
                link.start = link.start.or(first);
            }
        }
    }

    fn line_break(&mut self) {
        match self.table.as_mut().and_then(Table::cell) {
            Some(cell) => cell.push(' '),
            None => self.out.new_line(),
        }
    }

    /// Code in a link is written as text: one excludes the other, and an
    /// address is the greater loss.
    fn inline_code(&mut self, code: &str, range: Range<usize>) {
        match self.links == 0 && self.table.is_none() {
            true => self.out.code(code, range),
            false => self.words(code, range),
        }
    }

    /// One tilde means "about" or "to" in what models write, so two are needed.
    fn start_strike(&mut self, range: Range<usize>) {
        let meant = self.source[range.start..].starts_with("~~");
        self.strikes.push(meant);
        match meant {
            true => self.out.open(Kind::Strikethrough),
            false => self.words("~", range),
        }
    }

    fn end_strike(&mut self, range: Range<usize>) {
        match self.strikes.pop() {
            Some(true) => self.out.close(Kind::Strikethrough),
            _ => self.words("~", range.end.saturating_sub(1)..range.end),
        }
    }

    fn start_link(&mut self, dest: &str) {
        self.links += 1;
        if self.links == 1 {
            let start = self.table.as_mut().and_then(Table::cell).map(|cell| cell.len());
            self.link = Some(Link { dest: dest.to_owned(), start });
        }
    }

    fn end_link(&mut self, range: Range<usize>) {
        self.links = self.links.saturating_sub(1);
        if self.links > 0 {
            return;
        }
        let Some(Link { dest, start }) = self.link.take() else { return };
        let in_table = self.table.is_some();
        let all = match self.table.as_mut().and_then(Table::cell) {
            Some(cell) => cell.as_str(),
            None => self.out.written(),
        };
        let start = start.unwrap_or(all.len());
        let (text, end) = (all[start..].trim(), all.len());
        let shown = address::readable(&dest);
        let at = range.end..range.end;
        if text == dest || text == shown || dest.is_empty() {
            // Telegram finds plain addresses by itself.
        } else if !visible::any(text) {
            self.words(shown, at);
        } else if let Some(url) = address::linkable(&dest).filter(|_| !in_table) {
            self.out.span(Span { detail: Some(url), ..Span::new(Kind::TextLink, start, end) });
        } else {
            self.words(&format!(" ({shown})"), at);
        }
    }

    fn start_item(&mut self, at: usize) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        let before = self.out.start_item(&marker, at);
        self.items.push(before);
    }

    fn end_code(&mut self) {
        if let Some(code) = self.code.take() {
            let language = code.language.clone();
            self.out.block_of_code(&code.lines(), language);
        }
        self.out.end_block();
    }
}

impl Code {
    /// Its lines, each with where it is in the source.
    fn lines(&self) -> Vec<(usize, String)> {
        let mut at = 0;
        let mut pieces = self.pieces.iter().peekable();
        let mut piece = (0, 0..0);
        let mut lines = Vec::new();
        for line in self.text.split('\n') {
            while let Some(next) = pieces.next_if(|(start, _)| *start <= at) {
                piece = next.clone();
            }
            // Tabs and dropped characters make this a guess, which stays inside the piece.
            lines.push(((piece.1.start + at - piece.0).min(piece.1.end), line.to_owned()));
            at += line.len() + 1;
        }
        lines
    }
}

/// The language of a code block, where its info string begins with a plain word.
fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '#' | '.');
    (word.len() <= MAX_LANGUAGE && word.chars().all(plain)).then(|| word.to_owned())
}
