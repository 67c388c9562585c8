"""Judges rendered Markdown: markdown-it-py reads it again, aiogram takes the entities.

One JSON line in, one JSON line out, until the input ends:

  in   {"markdown": str, "parts": [{"text": str, "entities": [...]}]}
  out  {"lines": [[kind, text]], "refused": [str]}

`lines` is what a reader should see, line by line, as markdown-it-py's tokens
say, without blank lines. The kinds:

  text   running text, without white space at its ends
  code   a line of a code block, exactly
  row    a table's row: its cells joined, without white space
  rule   the line under a table's head

What Markdown leaves open is laid out here as chat platforms want it: bullets
as "•" or boxes, thematic breaks as three dashes, links and images as
text, with the address behind it where it cannot be linked.
"""

import html.parser
import json
import re
import sys
import unicodedata
from urllib.parse import urlsplit

from aiogram.types import MessageEntity
from aiogram.utils.text_decorations import html_decoration
from markdown_it import MarkdownIt

READER = MarkdownIt("commonmark").enable(["strikethrough", "table"])
# Every address is a link here, and stays as it was written.
READER.validateLink = lambda url: True
READER.normalizeLink = lambda url: url
READER.normalizeLinkText = lambda url: url


def clean(text):
    """Characters that Telegram drops or replaces."""
    out = []
    for c in text:
        if c == "\r" or "\u202a" <= c <= "\u202e":
            continue
        if c in "\u2028\u2029" or c != "\n" and unicodedata.category(c) == "Cc":
            c = " "
        out.append(c)
    return "".join(out)


def is_linked(url):
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme in ("http", "https"):
        return "." in host.strip(".") or ":" in host
    return parts.scheme == "tg" and bool(re.fullmatch(r"[\w-]+", host))


def readable(url):
    for scheme in ("mailto:", "tel:"):
        if url.startswith(scheme):
            return url[len(scheme) :]
    return url


def with_address(text, url, in_table):
    seen, shown = text.strip(), readable(url)
    if seen in (url, shown) or not url:
        return text
    if not seen:
        return text + shown
    if is_linked(url) and not in_table:
        return text
    return f"{text} ({shown})"


def inline(tokens, in_table=False):
    """The text of inline tokens."""
    out, open_links = [[]], []
    for token in tokens or []:
        if token.type == "link_open":
            open_links.append(token.attrs["href"])
            out.append([])
        elif token.type == "link_close":
            text, url = "".join(out.pop()), open_links.pop()
            out[-1].append(with_address(text, url, in_table))
        elif token.type == "image":
            alt = alternative(token.children)
            shown = alt if open_links else with_address(alt, token.attrs["src"], in_table)
            out[-1].append(shown)
        elif token.type in ("softbreak", "hardbreak"):
            out[-1].append(" " if in_table else "\n")
        else:
            out[-1].append(token.content)
    return "".join(out[0])


def alternative(tokens):
    """The text of an image: what is in it leads nowhere itself."""
    out = []
    for token in tokens or []:
        if token.type == "image":
            out.append(alternative(token.children))
        elif token.type in ("softbreak", "hardbreak"):
            out.append("\n")
        else:
            out.append(token.content)
    return "".join(out)


class Page:
    def __init__(self):
        self.lines = []
        self.markers = ""

    def text(self, text):
        for line in clean(text).split("\n"):
            line = line.strip()
            if line:
                self.lines.append(["text", (self.markers + line).strip()])
                self.markers = ""

    def marker(self):
        """Markers with nothing behind them stand alone."""
        if self.markers:
            self.lines.append(["text", self.markers.strip()])
            self.markers = ""

    def block(self, lines):
        """Lines of fixed width, without blank lines around them."""
        while lines and not lines[0][1].strip():
            lines.pop(0)
        while lines and not lines[-1][1].strip():
            lines.pop()
        if lines:
            self.marker()
            self.lines += [line for line in lines if line[1].strip()]


def task(page, item_text):
    """A box at the start of an item's text, as GitHub reads it."""
    found = re.match(r"\[([ xX])\]\s+(?=\S)", item_text)
    if not found:
        return item_text
    box = "☐ " if found[1] == " " else "☑ "
    page.markers = page.markers.removesuffix("• ") + box
    return item_text[found.end() :]


def read(markdown):
    page, numbers, cells, first = Page(), [], None, False
    for token in READER.parse(markdown):
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            numbers.append(token.attrs.get("start", 1) if kind[0] == "o" else None)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            numbers.pop()
        elif kind == "list_item_open":
            number = numbers[-1]
            page.markers += "• " if number is None else f"{number}. "
            if number is not None:
                numbers[-1] += 1
            first = True
        elif kind == "list_item_close":
            page.marker()
            first = False
        elif kind == "paragraph_open":
            continue
        elif kind == "tr_open":
            cells = []
        elif kind == "tr_close":
            rows.append(["row", re.sub(r"\s", "", clean("".join(cells)).replace("|", ""))])
            cells = None
        elif kind == "table_open":
            rows = []
        elif kind == "thead_close":
            rows.append(["rule", "-"])
        elif kind == "table_close":
            # A row of empty cells leaves a line of bars.
            page.marker()
            page.lines += rows
        elif kind == "inline":
            if cells is not None:
                cells.append(inline(token.children, True))
            else:
                text = inline(token.children)
                page.text(task(page, text) if first else text)
        elif kind in ("fence", "code_block"):
            code = clean(token.content.replace("\t", "    "))
            page.block([["code", line] for line in code.split("\n")])
        elif kind == "html_block":
            page.text(token.content)
        elif kind == "hr":
            page.text("———")
        # A line under an item's text makes it a heading, which can have a box too.
        underlined = kind == "heading_open" and token.markup in ("-", "=")
        if kind != "list_item_open" and not underlined:
            first = False
    if not page.lines:
        page.text(markdown)
    return page.lines


class Seen(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.open = []
        self.wrong = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.text += data


def refusals(part):
    """What a client finds wrong with a part."""
    text, wrong = part["text"], []
    entities = [MessageEntity.model_validate(entity) for entity in part["entities"]]
    units = len(text.encode("utf-16-le")) // 2
    for entity in entities:
        if entity.offset < 0 or entity.length < 1 or entity.offset + entity.length > units:
            wrong.append(f"{entity} is out of range")
        if entity.extract_from(text).strip() == "":
            wrong.append(f"{entity} covers nothing")
    seen = Seen()
    seen.feed(html_decoration.unparse(text, entities))
    seen.close()
    if seen.text != text:
        wrong.append(f"aiogram shows {seen.text!r} for {text!r}")
    return wrong + seen.wrong


for request in sys.stdin:
    request = json.loads(request)
    refused = []
    for part in request["parts"]:
        try:
            refused += refusals(part)
        except Exception as error:
            refused.append(f"{type(error).__name__}: {error}")
    print(json.dumps({"lines": read(request["markdown"]), "refused": refused}), flush=True)
