"""Texts and their entities, counted as Telegram counts: in UTF-16 units."""

import re

from .refusal import bad

TEXT_LIMIT = 4096
# More than these are dropped without a word.
ENTITY_LIMIT = 100
# What the servers take of entities, in bytes of their own serialisation.
ENTITY_BYTES = 9500

STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler"}
CODE = {"code", "pre"}
QUOTES = {"blockquote", "expandable_blockquote"}
FOUND = {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
KNOWN = STYLES | CODE | QUOTES | FOUND | {"text_link", "text_mention", "custom_emoji", "date_time"}
# What a text_link may lead to.
SCHEMES = {"http", "https", "tg", "ton"}
FIELDS = {
    "pre": {"language"},
    "text_link": {"url"},
    "text_mention": {"user"},
    "custom_emoji": {"custom_emoji_id"},
    "date_time": {"unix_time", "date_time_format"},
}

FINDERS = [
    ("url", re.compile(r"https?://[^\s<>\"]*[^\s<>\".,;:!?)'*_]")),
    ("email", re.compile(r"(?<![\w.@])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("mention", re.compile(r"(?<![\w@/])@[A-Za-z]\w{2,31}(?!\w)", re.ASCII)),
    ("hashtag", re.compile(r"(?<![\w#])#\w*[^\W\d]\w*")),
    ("bot_command", re.compile(r"(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z]\w{2,31})?(?![\w/])", re.ASCII)),
]


def units(text):
    """Length in UTF-16 units."""
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def boundaries(text):
    """The offsets at which a character begins or the text ends."""
    found, at = {0}, 0
    for character in text:
        at += 2 if ord(character) > 0xFFFF else 1
        found.add(at)
    return found


def piece(text, entity):
    """The part of the text an entity covers."""
    raw = text.encode("utf-16-le")
    return raw[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode("utf-16-le")


def prepared(text, entities):
    """What Telegram makes of a text with entities: checked, trimmed, found ones added."""
    if not isinstance(text, str) or not text.strip():
        raise bad("message text is empty")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise bad("strings must be encoded in UTF-8") from None
    entities = checked(text, entities or [])
    text, entities = trimmed(text, entities)
    if units(text) > TEXT_LIMIT:
        raise bad("message is too long")
    entities = sorted(around_code(entities), key=lambda entity: (entity["offset"], -entity["length"]))
    entities = sorted(entities + found(text, entities), key=lambda entity: (entity["offset"], -entity["length"]))
    return text, entities


def checked(text, entities):
    """Every entity has to fit. Telegram mends a few of these faults; a client that makes them is wrong."""
    if not isinstance(entities, list):
        raise bad("can't parse entities: expected an Array of MessageEntity")
    edges, end = boundaries(text), units(text)
    for entity in entities:
        check_one(entity, edges, end)
    entities = [dict(entity) for entity in entities]
    entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))
    check_nesting(entities)
    if sum(stored_size(entity) for entity in entities) > ENTITY_BYTES:
        raise bad("ENTITIES_TOO_LONG")
    return [entity for entity in entities[:ENTITY_LIMIT] if shown(entity)]


def shown(entity):
    """A link that no client opens is left out, its text stays."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+-]*):(?!\d)", entity.get("url", ""))
    return entity["type"] != "text_link" or scheme is None or scheme[1].lower() in SCHEMES


def check_one(entity, edges, end):
    if not isinstance(entity, dict) or entity.get("type") not in KNOWN:
        raise bad(f"can't parse entities: unsupported entity {entity!r}")
    kind, offset, length = entity["type"], entity.get("offset"), entity.get("length")
    if type(offset) is not int or offset < 0:
        raise bad(f"receive an entity with incorrect offset {offset}")
    if type(length) is not int or length <= 0:
        raise bad(f"receive an entity with incorrect length {length}")
    strange = set(entity) - {"type", "offset", "length"} - FIELDS.get(kind, set())
    if strange:
        raise bad(f"can't parse entities: {kind} has no {sorted(strange)}")
    if kind == "text_link" and not (isinstance(entity.get("url"), str) and entity["url"].strip()):
        raise bad(f"can't parse entities: wrong url {entity.get('url')!r} of a text_link")
    if kind == "pre" and not isinstance(entity.get("language", ""), str):
        raise bad("can't parse entities: the language of a pre is a string")
    if offset >= end:
        raise bad(f"entity begins after the end of the text at UTF-16 offset {offset}")
    this, until = f"entity beginning at UTF-16 offset {offset}", f"at UTF-16 offset {offset + length}"
    if offset + length > end:
        raise bad(f"{this} ends after the end of the text {until}")
    if offset not in edges:
        raise bad(f"entity begins in a middle of a UTF-16 symbol at UTF-16 offset {offset}")
    if offset + length not in edges:
        raise bad(f"{this} ends in a middle of a UTF-16 symbol {until}")


def check_nesting(entities):
    """Entities lie inside or beside each other; quotes do not lie in quotes."""
    open_ones = []
    for entity in entities:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        while open_ones and open_ones[-1]["offset"] + open_ones[-1]["length"] <= begin:
            open_ones.pop()
        if open_ones and end > open_ones[-1]["offset"] + open_ones[-1]["length"]:
            raise bad(f"can't parse entities: the entities at {open_ones[-1]['offset']} and {begin} overlap")
        if entity["type"] in QUOTES and any(outer["type"] in QUOTES for outer in open_ones):
            raise bad(f"can't parse entities: a blockquote inside a blockquote at {begin}")
        open_ones.append(entity)


def stored_size(entity):
    """Bytes of the entity in Telegram's own serialisation: three words, and strings padded to words."""
    size = 12
    for field in ("url", "language", "custom_emoji_id"):
        if field in entity:
            raw = len(str(entity[field]).encode("utf-8"))
            size += (raw + (1 if raw < 254 else 4) + 3) // 4 * 4
    return size


def trimmed(text, entities):
    """Blanks at the end go, and those at the beginning up to the first entity."""
    end = len(text.rstrip(" \n"))
    text = text[:end]
    total = units(text)
    first = min((entity["offset"] for entity in entities), default=total)
    cut = 0
    while cut < first and text[cut] in " \n":
        cut += 1
    kept = []
    for entity in entities:
        length = min(entity["length"], total - entity["offset"])
        if length > 0 and piece(text, {**entity, "length": length}).strip():
            kept.append({**entity, "offset": entity["offset"] - cut, "length": length})
    return text[cut:], kept


def around_code(entities):
    """Code holds nothing else: other entities end before it and go on behind it."""
    codes = [entity for entity in entities if entity["type"] in CODE]
    kept = []
    for entity in entities:
        if entity["type"] in CODE | QUOTES:
            kept.append(entity)
            continue
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        for code in codes:
            code_end = code["offset"] + code["length"]
            if code_end <= begin or code["offset"] >= end:
                continue
            if code["offset"] > begin:
                kept.append({**entity, "offset": begin, "length": code["offset"] - begin})
            begin = code_end
        if begin < end:
            kept.append({**entity, "offset": begin, "length": end - begin})
    return kept


def found(text, entities):
    """Commands, mentions, links and hashtags that stand in a text without being marked."""
    taken = [
        (entity["offset"], entity["offset"] + entity["length"])
        for entity in entities
        if entity["type"] not in STYLES | QUOTES
    ]
    more = []
    if not any(sign in text for sign in "@/#"):
        return more
    for kind, finder in FINDERS:
        for match in finder.finditer(text):
            begin = units(text[: match.start()])
            end = begin + units(match.group())
            if all(end <= other or begin >= other_end for other, other_end in taken):
                taken.append((begin, end))
                more.append({"type": kind, "offset": begin, "length": end - begin})
    return more
