"""discord.py reads a channel back: python discord_reader.py URL TOKEN CHANNEL

Prints one JSON object: `messages`, the oldest first and without Discord's own, with what stands below and
on them and the bytes of what came with them, and `threads` of the channel. telegram_reader.py prints the same
of a chat of Telegram's.
"""

import asyncio
import base64
import json
import sys

import discord

URL, TOKEN, CHANNEL = sys.argv[1:4]

discord.http.Route.BASE = f"{URL}/api/v10"
discord.Asset.BASE = URL


def by_discord(message):
    return message.is_system() or message.type is discord.MessageType.thread_starter_message


def buttons(message):
    rows = [row.children for row in message.components if isinstance(row, discord.ActionRow)]
    return [
        {"label": one.label, "data": one.custom_id, "style": one.style.name}
        for row in rows
        for one in row
        if isinstance(one, discord.Button) and not one.disabled
    ]


def kind(message, attachment):
    return "voice" if message.flags.voice and attachment.is_voice_message() else attachment.content_type


async def files(message):
    """Everything that came with it, downloaded as a bot would."""
    named = [(kind(message, one), one.filename, one) for one in message.attachments]
    named += [("sticker", one.name, one) for one in message.stickers]
    return [
        {"kind": kind, "name": name, "content": base64.b64encode(await one.read()).decode()}
        for kind, name, one in named
    ]


async def told(message, own):
    return {
        "id": str(message.id),
        "text": message.content,
        "own": message.author.id == own,
        "edited": message.edited_at is not None,
        "marks": [str(reaction.emoji) for reaction in message.reactions if reaction.me],
        "buttons": buttons(message),
        "files": await files(message),
        "reply_to": str(message.reference.message_id) if message.reference else None,
    }


async def main():
    async with discord.Client(intents=discord.Intents.default()) as client:
        await client.login(TOKEN)
        channel = await client.fetch_channel(int(CHANNEL))
        history = channel.history(limit=None, oldest_first=True)
        messages = [await told(one, client.user.id) async for one in history if not by_discord(one)]
        threads = []
        if isinstance(channel, discord.TextChannel):
            guild = await client.fetch_guild(channel.guild.id)
            threads = [one for one in await guild.active_threads() if one.parent_id == channel.id]
        threads = [{"id": str(one.id), "name": one.name} for one in sorted(threads, key=lambda one: one.id)]
        print(json.dumps({"messages": messages, "threads": threads}), flush=True)


asyncio.run(main())
