"""aiogram reads a chat: python telegram_reader.py URL TOKEN CHAT

No bot can read a chat of Telegram's back, so the stand-in hands its messages over and aiogram's own types
say what they are; what came with them is downloaded by aiogram's own bot. Prints one JSON object:
`messages`, the oldest first, with what stands below and on them, `threads` (topics, by the notes that
Telegram leaves of them), and `drafts` as HTML. discord_reader.py prints the same of a channel of Discord's.
"""

import asyncio
import base64
import json
import sys
import urllib.request

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import Message, MessageEntity, ReactionTypeEmoji
from aiogram.utils.text_decorations import html_decoration

URL, TOKEN, CHAT = sys.argv[1:4]

# In this order: an animation is a document as well, for clients that know none.
KINDS = ("photo", "voice", "audio", "animation", "video", "video_note", "sticker", "document")


def read(what):
    with urllib.request.urlopen(f"{URL}/_fake/{what}?chat={CHAT}", timeout=30) as answer:
        return json.load(answer)


def buttons(message):
    rows = message.reply_markup.inline_keyboard if message.reply_markup else []
    return [{"label": one.text, "data": one.callback_data} for row in rows for one in row]


def said(message):
    """Whether somebody said it, and not Telegram."""
    return message.text or any(getattr(message, kind) for kind in KINDS)


async def files(bot, message):
    """What came with it, downloaded as a bot would; of a photo the largest."""
    for kind in KINDS:
        if file := getattr(message, kind):
            file = file[-1] if kind == "photo" else file
            content = await bot.download(file)
            name = getattr(file, "file_name", None)
            return [{"kind": kind, "name": name, "content": base64.b64encode(content.read()).decode()}]
    return []


async def told(bot, shown, message):
    marks = [ReactionTypeEmoji(emoji=emoji) for emoji in shown["reactions"]]
    return {
        "id": str(message.message_id),
        "text": message.text or message.caption or "",
        "html": message.html_text,
        "files": await files(bot, message),
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


async def main():
    shown = [(one, Message.model_validate(one["raw"])) for one in read("messages")]
    messages = [message for _, message in shown]
    session = AiohttpSession(api=TelegramAPIServer.from_base(URL))
    async with Bot(TOKEN, session=session) as bot:
        told_of = [await told(bot, *one) for one in shown if said(one[1])]
    drafts = [draft(one) for one in read("drafts")]
    print(json.dumps({"messages": told_of, "threads": topics(messages), "drafts": drafts}), flush=True)


asyncio.run(main())
