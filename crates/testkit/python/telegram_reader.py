"""aiogram reads a chat: python telegram_reader.py URL CHAT

No bot can read a chat of Telegram's back, so the stand-in hands its messages over and aiogram's own types
say what they are. Prints one JSON object: `messages`, the oldest first, with what stands below and on
them, `threads` (topics, by the notes that Telegram leaves of them), and `drafts` as HTML.
discord_reader.py prints the same of a channel of Discord's.
"""

import json
import sys
import urllib.request

from aiogram.types import Message, MessageEntity, ReactionTypeEmoji
from aiogram.utils.text_decorations import html_decoration

URL, CHAT = sys.argv[1:3]


def read(what):
    with urllib.request.urlopen(f"{URL}/_fake/{what}?chat={CHAT}", timeout=30) as answer:
        return json.load(answer)


def buttons(message):
    rows = message.reply_markup.inline_keyboard if message.reply_markup else []
    return [{"label": one.text, "data": one.callback_data} for row in rows for one in row]


def told(shown, message):
    marks = [ReactionTypeEmoji(emoji=emoji) for emoji in shown["reactions"]]
    return {
        "id": str(message.message_id),
        "text": message.text,
        "html": message.html_text if message.text else None,
        "own": bool(message.from_user and message.from_user.is_bot),
        "edited": message.edit_date is not None,
        "marks": [mark.emoji for mark in marks],
        "buttons": buttons(message),
        "reply_to": str(message.reply_to_message.message_id) if message.reply_to_message else None,
        "topic": str(message.message_thread_id) if message.is_topic_message else None,
    }


def topics(messages):
    names = {}
    for message in messages:
        if message.forum_topic_created:
            names[message.message_thread_id] = message.forum_topic_created.name
        if message.forum_topic_edited and message.forum_topic_edited.name:
            names[message.message_thread_id] = message.forum_topic_edited.name
    return [{"id": str(number), "name": name} for number, name in names.items()]


def draft(shown):
    entities = [MessageEntity.model_validate(one) for one in shown["entities"]]
    return html_decoration.unparse(shown["text"], entities)


def main():
    shown = [(one, Message.model_validate(one["raw"])) for one in read("messages")]
    messages = [message for _, message in shown]
    print(
        json.dumps(
            {
                "messages": [told(*one) for one in shown if one[1].text],
                "threads": topics(messages),
                "drafts": [draft(one) for one in read("drafts")],
            }
        ),
        flush=True,
    )


main()
