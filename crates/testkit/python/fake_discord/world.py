"""The people, places and messages: simcord's backend on a real clock.

Adds what tests do as people (write, edit, start threads) and what simcord does
not keep: nonces, how often a message was edited, whose a managed role is.
"""

import base64
import collections
import dataclasses
import datetime
import mimetypes
import secrets
import time

import discord
import simcord.backend.cdn
import simcord.http.client  # noqa: F401  registers the routes
from simcord._clock import Clock
from simcord.backend import Backend
from simcord.backend.models import AllowedMentions, Overwrite
from simcord.backend.models.message import MessageSticker
from simcord.enums import ChannelType, MessageType, OverwriteType
from simcord.http import router

from . import payloads

KINDS = {
    "text": ChannelType.TEXT,
    "voice": ChannelType.VOICE,
    "category": ChannelType.CATEGORY,
    "news": ChannelType.NEWS,
    "forum": ChannelType.FORUM,
}

#: discord.MessageFlags: a thread was started from the message.
HAS_THREAD = 1 << 5

#: Application flags of the privileged intents, as unverified bots have them.
GRANTS = {"presences": 1 << 13, "members": 1 << 15, "message_content": 1 << 19}

VIEW = discord.Permissions.view_channel.flag

#: Characters of chance in an interaction's token.
TOKEN_CHANCE = 126

#: discord.MessageFlags: only one person sees it; it is an answer still to come; it is a recording.
EPHEMERAL, LOADING, VOICE = 1 << 6, 1 << 7, 1 << 13
#: The format of a sticker that is a plain picture.
PNG_STICKER = 1


def new_token(interaction_id):
    """As long as Discord's, and like them a word in base64 that names its interaction."""
    chance = secrets.token_urlsafe(TOKEN_CHANCE)[:TOKEN_CHANCE]
    return base64.urlsafe_b64encode(f"interaction:{interaction_id}:{chance}".encode()).decode().rstrip("=")


class WallClock(Clock):
    """simcord's own clock stands still, and would give ids and times of its release."""

    def now(self):
        return datetime.datetime.now(datetime.UTC)


@dataclasses.dataclass
class Note:
    """What is remembered of a message beside simcord's own record."""

    nonce: str | int | None = None
    allowed_mentions: dict | None = None
    edits: int = 0


class NotedBackend(Backend):
    """Writes the note of a message before its event goes out."""

    def __init__(self, world):
        self.world = world
        super().__init__(clock=WallClock())
        # Journals that nobody reads here and that only grow.
        self.transcript = collections.deque(maxlen=0)
        self.http_requests = collections.deque(maxlen=0)

    def emit(self, event, payload):
        if not self.world.silent:
            super().emit(event, payload)

    def commit_message(self, message, *, broadcast=True):
        self.world.wake_thread(message.channel_id)
        if self.world.next_note is not None:
            self.world.notes[message.id] = self.world.next_note
            self.world.next_note = None
        return super().commit_message(message, broadcast=broadcast)

    def edit_message(self, channel_id, message_id, fields):
        message = super().edit_message(channel_id, message_id, fields)
        self.world.notes.setdefault(message_id, Note()).edits += 1
        return message

    def new_interaction(self, *facts):
        """With a token like Discord's; simcord's own can be guessed."""
        record = super().new_interaction(*facts)
        del self.interaction_tokens[record.token]
        record.token = new_token(record.id)
        self.interaction_tokens[record.token] = record.id
        return record


class World:
    def __init__(self, options, address):
        self.options = options
        self.notes = {}
        self.next_note = None
        self.nonces = {}
        self.silent = False
        self.role_bots = {}
        payloads.install(self)
        simcord.backend.cdn.CDN_BASE = f"http://{address}"
        self.backend = NotedBackend(self)
        self.bot = self.backend.bot_user
        self.bot.name = options.bot_name
        # Applications made since 2017 share their bot's id.
        self.backend.application_id = self.bot.id
        if options.token is None:
            head = base64.urlsafe_b64encode(str(self.bot.id).encode()).decode().rstrip("=")
            options.token = f"{head}.{secrets.token_urlsafe(4)}.{secrets.token_urlsafe(28)}"

    def note(self, message_id):
        return self.notes.get(message_id) or Note()

    def application_flags(self):
        return sum(GRANTS[name] for name in self.options.privileged)

    # ------------------------------------------------------------- places

    def make_user(self, ask):
        return self.backend.make_user(
            ask["name"], bot=bool(ask.get("bot")), global_name=ask.get("global_name")
        )

    def make_guild(self, ask):
        """A guild and the role Discord made for the bot there."""
        shard_id, shard_count = ask.get("shard") or (None, 1)
        self.silent = True
        guild = self.backend.create_guild(ask["name"], shard_id=shard_id, shard_count=shard_count)
        role = next(role for role in guild.roles.values() if role.managed)
        self.role_bots[role.id] = self.bot.id
        if not ask.get("bot", True):
            del guild.members[self.bot.id]
        self.silent = False
        self.backend.emit("GUILD_CREATE", payloads.guild_create_payload(self.backend, guild))
        return guild, role

    def make_role(self, ask):
        """A role; with `bot`, the one Discord manages for that bot."""
        self.silent = True
        role = self.backend.create_role(int(ask["guild"]), ask["name"], mentionable=True)
        if ask.get("bot"):
            role.managed = True
            self.role_bots[role.id] = int(ask["bot"])
        self.silent = False
        told = {"guild_id": str(ask["guild"]), "role": payloads.serializers.role_payload(role)}
        self.backend.emit("GUILD_ROLE_CREATE", told)
        return role

    def make_channel(self, ask):
        fields = {"topic": ask.get("topic")}
        if ask.get("parent"):
            fields["parent_id"] = int(ask["parent"])
        channel = self.backend.create_channel(
            int(ask["guild"]), ask["name"], type=KINDS[ask.get("kind", "text")], **fields
        )
        if ask.get("hidden"):
            self.hide(channel.id, True)
        return channel

    def hide(self, channel_id, hidden):
        """Takes the channel out of the bot's sight, or gives it back."""
        if hidden:
            veil = Overwrite(target_id=self.bot.id, type=OverwriteType.MEMBER, deny=VIEW)
            self.backend.set_overwrite(channel_id, veil)
        else:
            self.backend.delete_overwrite(channel_id, self.bot.id)

    def forbid(self, channel_id, what):
        """Takes a permission away from the bot in a channel; None gives all of them back."""
        if what is None:
            self.backend.delete_overwrite(channel_id, self.bot.id)
            return
        deny = discord.Permissions(**{what: True}).value
        self.backend.set_overwrite(channel_id, Overwrite(target_id=self.bot.id, type=OverwriteType.MEMBER, deny=deny))

    def threads(self, parent_id):
        """The threads below a channel, oldest first."""
        below = [channel for channel in self.backend.channels.values() if channel.parent_id == parent_id]
        return [
            {"id": str(one.id), "name": one.name, "owner": str(one.owner_id), "own": one.owner_id == self.bot.id}
            for one in sorted(below, key=lambda channel: channel.id) if one.is_thread
        ]

    def make_thread(self, ask):
        """A thread as people start it: from a message, or on its own."""
        parent, owner = int(ask["parent"]), int(ask["owner"])
        message_id = int(ask["message"]) if ask.get("message") else None
        kind = ChannelType.PRIVATE_THREAD if ask.get("private") else ChannelType.PUBLIC_THREAD
        self.join(parent, owner)
        thread = self.backend.create_thread(
            parent, ask["name"], owner, type=kind, message_id=message_id, broadcast=False
        )
        if ask.get("private") and ask.get("invite_bot", True):
            thread.thread_members[self.bot.id] = self.backend.now_iso()
        self.backend.announce_thread_create(thread)
        if message_id is not None:
            self._mark_start(thread, message_id)
        elif not ask.get("private"):
            self.backend.create_system_message(
                parent, MessageType.THREAD_CREATED, owner, target_channel_id=thread.id
            )
        return thread

    def _mark_start(self, thread, message_id):
        """The message says that it has a thread; the thread begins by pointing at it."""
        start = self.backend.get_message(thread.parent_id, message_id)
        start.flags |= HAS_THREAD
        self.backend.emit("MESSAGE_UPDATE", payloads.serializers.message_payload(self.backend, start))
        first = self.backend.create_message(
            thread.id, thread.owner_id, "-", message_type=MessageType.THREAD_STARTER_MESSAGE, broadcast=False
        )
        first.content = ""
        first.reference = {"channel_id": str(thread.parent_id), "message_id": str(message_id), "type": 0}
        self.backend.announce_message_create(first)

    def archive(self, ask):
        state = {"archived": ask.get("archived", True), "locked": ask.get("locked", False)}
        self.backend.edit_channel(int(ask["thread"]), {}, thread_metadata=state)

    def wake_thread(self, channel_id):
        """A message in an archived thread opens it again."""
        channel = self.backend.get_channel(channel_id)
        state = channel.thread_metadata
        if state is not None and state.archived and not state.locked:
            self.backend.edit_channel(channel_id, {}, thread_metadata={"archived": False})

    def leave(self, guild):
        """The bot is thrown out: it hears nothing more and may ask nothing more."""
        del guild.members[self.bot.id]
        self.backend.emit("GUILD_DELETE", {"id": str(guild.id)})

    def is_in(self, guild_id):
        guild = self.backend.guilds.get(guild_id)
        return guild is not None and self.bot.id in guild.members

    def join(self, channel_id, user_id):
        """Who writes in a guild is one of its members."""
        guild_id = self.backend.get_channel(channel_id).guild_id
        if guild_id is not None and user_id not in self.backend.guilds[guild_id].members:
            self.backend.add_member(guild_id, user_id, announce=True)

    # ----------------------------------------------------------- messages

    def say(self, ask, number=None):
        """One message of a person."""
        channel = self.backend.get_channel(int(ask["channel"]))
        author = int(ask["author"])
        if channel.guild_id is not None and not ask.get("webhook"):
            self.join(channel.id, author)
        content = ask.get("content", "")
        if number is not None:
            content = content.replace("{n}", str(number))
        if ask.get("mention_role"):
            content = f"<@&{ask['mention_role']}> {content}"
        if ask.get("mention_bot"):
            content = f"<@{self.bot.id}> {content}"
        reference = None
        if ask.get("reply_to"):
            reference = {"channel_id": str(channel.id), "message_id": str(ask["reply_to"])}
        return self.backend.create_message(
            channel.id, author, content, reference=reference,
            allowed_mentions=AllowedMentions(replied_user=ask.get("ping", True)),
            attachments=[self.store_attachment(channel.id, wish) for wish in ask.get("attachments") or []],
            stickers=[self.store_sticker(channel.guild_id, wish) for wish in ask.get("stickers") or []],
            flags=VOICE if any("duration" in wish for wish in ask.get("attachments") or []) else 0,
            webhook_id=int(ask["webhook"]) if ask.get("webhook") else None,
        )

    def store_attachment(self, channel_id, wish):
        data = wish.get("text", "x" * int(wish.get("size", 4))).encode()
        if "content" in wish:
            data = base64.b64decode(wish["content"])
        name = wish["filename"]
        stored = self.backend.cdn.store_attachment(self.backend.snowflake(), channel_id, name, data, None)
        stored["content_type"] = wish.get("content_type") or mimetypes.guess_type(name)[0]
        stored["url"] += self.signature(-1 if wish.get("ended") else 86_400)
        stored["proxy_url"] = stored["url"]
        if "duration" in wish:
            stored["duration_secs"] = wish["duration"]
            stored["waveform"] = "AAAA"
        return stored

    def signature(self, seconds):
        """What follows in a link: they are signed, and end after a day."""
        now = int(time.time())
        return f"?ex={format(now + seconds, 'x')}&is={format(now, 'x')}&hm={secrets.token_hex(32)}&"

    def has_ended(self, query):
        return "ex" in query and int(query["ex"], 16) < time.time()

    def store_sticker(self, guild_id, wish):
        number = self.backend.snowflake()
        url = self.backend.cdn.store_sticker(number, PNG_STICKER, base64.b64decode(wish["content"]))
        return MessageSticker(number, wish["name"], PNG_STICKER, guild_id, url)

    def call_back(self, record, answer, files=()):
        """Answers an interaction; raises what Discord would say against it."""
        self.next_note = Note(allowed_mentions=(answer.get("data") or {}).get("allowed_mentions"))
        path = f"/interactions/{record.id}/{record.token}/callback"
        try:
            return router.dispatch(self.backend, "POST", path, json=answer, files=list(files))
        finally:
            self.next_note = None

    def messages(self, channel_id):
        """A channel as it stands, oldest first."""
        shown = []
        for message in sorted(self.backend.messages.get(channel_id, {}).values(), key=lambda m: m.id):
            note = self.note(message.id)
            shown.append({
                "id": str(message.id),
                "author": str(message.author_id),
                "own": message.author_id == self.bot.id,
                "type": message.type,
                "content": message.content,
                "edits": note.edits,
                "reactions": [one.emoji for one in message.reactions if self.bot.id in one.user_ids],
                "nonce": None if note.nonce is None else str(note.nonce),
                "allowed_mentions": note.allowed_mentions,
                "reference": (message.reference or {}).get("message_id"),
                "attachments": [item["filename"] for item in message.attachments],
                "files": [item["url"] for item in message.attachments],
                "voice": bool(message.flags & VOICE),
                "loading": bool(message.flags & LOADING),
                "ephemeral": bool(message.flags & EPHEMERAL),
                "interaction": (message.interaction_metadata or {}).get("id"),
            })
        return shown
