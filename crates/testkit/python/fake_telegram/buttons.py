"""Buttons below messages: which ones Telegram takes, who pressed one, what the bot answered."""

import hashlib
import json
import time

from . import text
from .refusal import bad

# What a button carries, in bytes.
DATA_LIMIT = 64
BUTTON_LIMIT = 100
# Telegram shows no more side by side and drops the rest without a word.
ROW_LIMIT = 8
# What people measured for a whole keyboard, as JSON.
KEYBOARD_BYTES = 10_000
ANSWER_LIMIT = 200
# Telegram does not say how long a press can be answered; tests advance the clock.
ANSWERABLE = 600
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


def keyboard(markup):
    """What a message has of a keyboard that the bot gives it; an empty one is none."""
    if not markup:
        return {}
    if not isinstance(markup, dict):
        raise bad("object expected as reply markup")
    if set(markup) != {"inline_keyboard"}:
        raise bad("this stand-in takes inline keyboards only")
    rows = markup["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad('field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays')
    rows = [[button(given) for given in row] for row in rows if row]
    if any(len(row) > ROW_LIMIT for row in rows):
        raise bad(f"this stand-in takes {ROW_LIMIT} buttons in a row, of more Telegram drops the rest")
    size = len(json.dumps(rows, ensure_ascii=False).encode())
    if sum(len(row) for row in rows) > BUTTON_LIMIT or size > KEYBOARD_BYTES:
        raise bad("reply markup is too long")
    return {"reply_markup": {"inline_keyboard": rows}} if rows else {}


def button(given):
    if not isinstance(given, dict):
        raise unparsed("InlineKeyboardButton must be an Object")
    label, data = given.get("text"), given.get("callback_data")
    if not isinstance(label, str):
        raise unparsed('Can\'t find field "text"')
    if set(given) - {"text", "callback_data"}:
        raise bad("this stand-in takes buttons with callback_data only")
    if not isinstance(data, str) or not data:
        raise unparsed("Text buttons are unallowed in the inline keyboard")
    if not label:
        # Telegram leaves such a button out and says nothing; a client that sends it is wrong.
        raise bad("inline keyboard button text must be non-empty")
    try:
        label.encode()
        carried = len(data.encode())
    except UnicodeEncodeError:
        raise bad("strings must be encoded in UTF-8") from None
    if carried > DATA_LIMIT:
        raise bad("BUTTON_DATA_INVALID")
    return {"text": label, "callback_data": data}


def unparsed(why):
    return bad(f"can't parse inline keyboard button: {why}")


def data_of(raw, label):
    """What the button of a message with this label carries."""
    rows = raw.get("reply_markup", {}).get("inline_keyboard", [])
    buttons = [one for row in rows for one in row]
    for one in buttons:
        if one["text"] == label:
            return one["callback_data"]
    raise bad(f"there is no button {label!r} among {[one['text'] for one in buttons]}")


class Presses:
    def __init__(self, world):
        self.world = world
        self.made = {}
        # No other stand-in has these. A float does not hold them: whoever reads ids as numbers
        # mixes up neighbours.
        self.first = time.time_ns()

    def press(self, chat, stored, user, data):
        """Somebody presses a button: the bot is told if it asked for that."""
        number = str(self.first + len(self.made))
        self.made[number] = {"at": self.world.now(), "answer": None}
        message = stored.raw
        if stored.deleted:
            # The press came just after; what the message was is gone.
            message = {"chat": chat.raw, "message_id": message["message_id"], "date": 0}
        instance = hashlib.sha256(f"{self.world.bot['id']}:{chat.id}".encode()).digest()
        query = {
            "id": number,
            "from": user,
            "message": message,
            "chat_instance": str(int.from_bytes(instance[:8], "big", signed=True)),
            "data": data,
        }
        seen = self.world.sees(chat, stored, True)
        return {"id": number, "update_id": self.world.push("callback_query", query) if seen else None}

    def answer(self, number, words, alert):
        made = self.made.get(number)
        if made is None or made["answer"] or made["at"] <= self.world.now() - ANSWERABLE:
            raise bad(TOO_OLD)
        if text.units(words) > ANSWER_LIMIT:
            raise bad("MESSAGE_TOO_LONG")
        made["answer"] = {"text": words or None, "show_alert": alert}
