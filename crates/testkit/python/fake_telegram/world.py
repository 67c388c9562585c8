"""Who is there, which chats they have, what was said: the state behind the API."""

import asyncio
import itertools
import time
from collections import deque
from dataclasses import dataclass, field

from . import judge, text
from .refusal import Refusal, bad, forbidden

# Telegram keeps what nobody fetched for a day.
KEPT = 24 * 3600
# An offset further ahead than this is taken for one of another bot and ignored.
AHEAD = 10
# These arrive only where they were asked for by name.
OPT_IN = {"chat_member", "message_reaction", "message_reaction_count"}

ANONYMOUS = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
CHANNEL_BOT = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}

GROUPS = ("group", "supergroup")


@dataclass
class Stored:
    """A message as it stands, and what Telegram does not show of it."""

    raw: dict
    by_bot: bool = False
    edits: int = 0
    deleted: bool = False
    # What the bot sent, before Telegram added what it finds itself.
    sent_entities: list = field(default_factory=list)
    # The bot's own.
    reactions: list = field(default_factory=list)


@dataclass
class Chat:
    raw: dict
    # Members that are people or other bots: user id to status.
    members: dict = field(default_factory=dict)
    # "member", "administrator", "left" or "kicked".
    bot: str = "member"
    # A private chat exists for the bot once the person has written.
    started: bool = True
    migrated_to: int = None
    topics: dict = field(default_factory=dict)
    messages: dict = field(default_factory=dict)
    # What "typing…" was shown, for the tests.
    actions: list = field(default_factory=list)
    drafts: list = field(default_factory=list)

    @property
    def id(self):
        return self.raw["id"]

    @property
    def type(self):
        return self.raw["type"]

    @property
    def private(self):
        return self.type == "private"

    def standing(self, message_id):
        stored = self.messages.get(message_id)
        return stored if stored and not stored.deleted else None


class World:
    def __init__(self, token, options):
        self.token = token
        self.strict = options.strict
        self.bot = {
            "id": int(token.split(":")[0]),
            "is_bot": True,
            "first_name": options.name,
            "username": options.username,
        }
        self.privacy = options.privacy
        self.topics_enabled = options.private_topics
        self.users, self.chats, self.files, self.commands = {}, {}, {}, {}
        self.next_user, self.next_group, self.next_channel = 500_001, 4_000_001, 1_700_000_001
        # Private chats and small groups count their messages together, the others each for itself.
        self.next_message, self.next_messages = 1, {}
        self.next_update = options.first_update
        self.updates = deque()
        self.confirmed = None
        self.allowed = None
        self.arrived = asyncio.Event()
        self.clock = 0.0

    # --- people and chats ---

    def now(self):
        return int(time.time() + self.clock)

    def user(self, user_id):
        if user_id not in self.users:
            raise bad(f"the fake knows no user {user_id}")
        return self.users[user_id]

    def make_user(self, ask):
        user_id = ask.get("id") or self.next_user
        self.next_user = max(self.next_user, user_id) + 1
        user = {"id": user_id, "is_bot": bool(ask.get("is_bot")), "first_name": ask.get("first_name", f"User{user_id}")}
        user |= {key: ask[key] for key in ("last_name", "username", "language_code") if ask.get(key)}
        self.users[user_id] = user
        return user

    def make_private(self, user_id, started=True):
        user = self.user(user_id)
        raw = {key: user[key] for key in ("id", "first_name", "last_name", "username") if key in user}
        chat = self.chats.setdefault(user_id, Chat({**raw, "type": "private"}, members={user_id: "member"}))
        chat.started = started
        return chat

    def make_chat(self, kind, ask):
        chat_id = ask.get("id")
        if chat_id is None and kind == "group":
            chat_id, self.next_group = -self.next_group, self.next_group + 1
        elif chat_id is None:
            chat_id, self.next_channel = -1_000_000_000_000 - self.next_channel, self.next_channel + 1
        raw = {"id": chat_id, "title": ask.get("title", f"{kind} {chat_id}"), "type": kind}
        if ask.get("username"):
            raw["username"] = ask["username"]
        if ask.get("forum"):
            raw["is_forum"] = True
        rank = "administrator" if ask.get("admin") or kind == "channel" else "member"
        chat = self.chats[chat_id] = Chat(raw, bot=rank)
        for number, user_id in enumerate(ask.get("members", [])):
            self.user(user_id)
            chat.members[user_id] = "creator" if number == 0 else "member"
        if not ask.get("quiet"):
            self.announce(chat)
        return chat

    def announce(self, chat):
        """The bot comes into a chat: Telegram tells it, and a group sees a line about it."""
        owner = self.users.get(next(iter(chat.members), None)) or ANONYMOUS
        self.member_update(chat, owner, "left", chat.bot)
        if chat.type in GROUPS:
            self.post(chat, owner, {"new_chat_members": [self.bot]}, service=True)

    def member_update(self, chat, by, old, new):
        change = {
            "chat": chat.raw,
            "from": by,
            "date": self.now(),
            "old_chat_member": self.member(self.bot, old),
            "new_chat_member": self.member(self.bot, new),
        }
        return self.push("my_chat_member", change)

    def member(self, user, status):
        raw = {"user": user, "status": status}
        if status == "kicked":
            raw["until_date"] = 0
        if status == "creator":
            raw["is_anonymous"] = False
        if status == "administrator":
            rights = ("manage_chat", "delete_messages", "manage_video_chats", "restrict_members", "promote_members")
            rights += ("change_info", "invite_users", "post_stories", "edit_stories", "delete_stories")
            raw |= {f"can_{right}": True for right in rights + ("send_welcome_messages", "manage_topics")}
            raw |= {"can_be_edited": False, "is_anonymous": False}
        return raw

    def make_topic(self, chat, name, by):
        """A topic's id is the id of the line that opened it."""
        number = self.peek_message(chat)
        line = {
            "message_thread_id": number,
            "is_topic_message": True,
            "forum_topic_created": {"name": name, "icon_color": 7322096},
        }
        stored, update = self.post(chat, by, line, service=True)
        chat.topics[number] = {"name": name, "closed": False, "first": stored}
        return number, update

    def open_topic(self, chat, name):
        """One of the bot's own, of which Telegram tells it nothing more."""
        number = self.peek_message(chat)
        line = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        raw = {**self.build(chat, self.bot, line), "message_thread_id": number, "is_topic_message": True}
        chat.topics[number] = {"name": name, "closed": False, "first": self.keep(chat, raw, by_bot=True)}
        return number

    def name_topic(self, chat, thread, name):
        """The bot renames one: people see a line of it, and the bot is not told."""
        chat.topics[thread]["name"] = name
        line = {"forum_topic_edited": {"name": name}}
        self.keep(chat, self.build(chat, self.bot, line, thread=thread), by_bot=True)

    def rename_topic(self, chat, thread, name, by):
        chat.topics[thread]["name"] = name
        return self.post(chat, by, {"forum_topic_edited": {"name": name}}, service=True, thread=thread)[1]

    def migrate(self, chat, ask):
        """A group becomes a supergroup: a new id, a line in each, and the old id is dead."""
        new = self.make_chat("supergroup", {"title": chat.raw["title"], "id": ask.get("id"), "quiet": True})
        new.members, new.bot = dict(chat.members), chat.bot
        owner = self.users.get(next(iter(chat.members), None)) or ANONYMOUS
        old_line = lambda: self.post(chat, owner, {"migrate_to_chat_id": new.id}, service=True)
        new_line = lambda: self.post(new, None, {"migrate_from_chat_id": chat.id}, service=True, sender_chat=new)
        lines = [new_line, old_line] if ask.get("new_first") else [old_line, new_line]
        updates = [line()[1] for line in lines]
        if ask.get("member_updates"):
            updates.append(self.member_update(chat, owner, chat.bot, "left"))
            updates.append(self.member_update(new, owner, "left", new.bot))
        chat.migrated_to = new.id
        return new, updates

    # --- messages ---

    def peek_message(self, chat):
        return self.next_messages.get(chat.id, 1) if chat.type in ("supergroup", "channel") else self.next_message

    def take_message(self, chat):
        number = self.peek_message(chat)
        if chat.type in ("supergroup", "channel"):
            self.next_messages[chat.id] = number + 1
        else:
            self.next_message += 1
        return number

    def build(self, chat, author, content, sender_chat=None, thread=None, reply_to=None):
        """A message's JSON, with the thread and reply fields Telegram adds."""
        raw = {"message_id": self.take_message(chat), "chat": chat.raw, "date": self.now()}
        if chat.type == "channel":
            raw["sender_chat"] = chat.raw
        elif sender_chat:
            raw["from"] = ANONYMOUS if sender_chat.id == chat.id else CHANNEL_BOT
            raw["sender_chat"] = sender_chat.raw
        else:
            raw["from"] = author
        if reply_to and thread is None and reply_to.raw.get("is_topic_message"):
            thread = reply_to.raw["message_thread_id"]
        if reply_to:
            raw["reply_to_message"] = without_reply(reply_to.raw)
        if thread is not None:
            raw |= {"message_thread_id": thread, "is_topic_message": True}
            if not reply_to and not chat.private:
                raw["reply_to_message"] = without_reply(chat.topics[thread]["first"].raw)
        elif reply_to and chat.type == "supergroup" and not chat.raw.get("is_forum"):
            # A chain of replies has the first message's id as its thread, and is no topic.
            raw["message_thread_id"] = reply_to.raw.get("message_thread_id", reply_to.raw["message_id"])
        return {**raw, **content}

    def keep(self, chat, raw, **more):
        stored = chat.messages[raw["message_id"]] = Stored(raw, **more)
        return stored

    def post(self, chat, author, content, service=False, sender_chat=None, thread=None, reply_to=None):
        """Somebody else's message: kept, and an update where the bot may see it."""
        raw = self.build(chat, author, content, sender_chat, thread, reply_to)
        stored = self.keep(chat, raw)
        kind = "channel_post" if chat.type == "channel" else "message"
        update = self.push(kind, raw) if self.sees(chat, stored, service) else None
        return stored, update

    def sees(self, chat, stored, service):
        if chat.bot in ("left", "kicked"):
            return False
        if service or not self.privacy or chat.type not in GROUPS or chat.bot == "administrator":
            return True
        reply = stored.raw.get("reply_to_message", {}).get("from", {})
        return reply.get("id") == self.bot["id"] or self.addressed(stored.raw)

    def addressed(self, raw):
        """Whether a command or mention in it is for the bot."""
        words = raw.get("text") or raw.get("caption") or ""
        me = "@" + self.bot["username"].lower()
        for entity in raw.get("entities") or raw.get("caption_entities") or []:
            said = text.piece(words, entity).lower()
            if entity["type"] == "mention" and said == me:
                return True
            if entity["type"] == "bot_command" and ("@" not in said or said.endswith(me)):
                return True
        return False

    # --- updates ---

    def push(self, kind, content):
        """Queues an update, unless the bot did not ask for its kind."""
        if self.allowed is not None and kind not in self.allowed or self.allowed is None and kind in OPT_IN:
            return None
        raw = {"update_id": self.next_update, kind: content}
        if self.strict:
            judge.judge_update(raw)
        return self.queue(raw)

    def queue(self, raw):
        self.next_update += 1
        # A copy: the message may be edited before anybody fetches this.
        self.updates.append((self.now(), raw["update_id"], copied(raw)))
        self.arrived.set()
        self.arrived = asyncio.Event()
        return raw["update_id"]

    def expire(self):
        while self.updates and self.updates[0][0] <= self.now() - KEPT:
            self.updates.popleft()

    def fetch(self, offset, limit):
        """The waiting updates from an offset on; what lies before it is gone for good."""
        self.expire()
        if offset < 0:
            while len(self.updates) > -offset:
                self.updates.popleft()
        elif 0 < offset <= self.next_update + AHEAD:
            self.confirmed = offset
            while self.updates and self.updates[0][1] < offset:
                self.updates.popleft()
        return [raw for _, _, raw in itertools.islice(self.updates, limit)]

    # --- what calls need ---

    def reachable(self, given):
        """The chat a call names, or Telegram's reason why the bot cannot act there."""
        chat = self.find(given)
        if chat.migrated_to:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=chat.migrated_to,
            )
        if chat.private and chat.bot == "kicked":
            raise forbidden("bot was blocked by the user")
        if chat.private and not chat.started:
            raise forbidden("bot can't initiate conversation with a user")
        if chat.bot == "kicked":
            raise forbidden(f"bot was kicked from the {chat.type} chat")
        if chat.bot == "left":
            raise forbidden(f"bot is not a member of the {chat.type} chat")
        return chat

    def find(self, given):
        if given is None or given == "":
            raise bad("chat_id is empty")
        if isinstance(given, str) and given.startswith("@"):
            for chat in self.chats.values():
                if not chat.private and chat.raw.get("username", "").lower() == given[1:].lower():
                    return chat
            raise bad("chat not found")
        try:
            chat = self.chats.get(int(given))
        except (TypeError, ValueError):
            chat = None
        if chat is None:
            raise bad("chat not found")
        return chat


def without_reply(raw):
    """Telegram shows one level of replies only."""
    return {key: value for key, value in raw.items() if key != "reply_to_message"}


def copied(value):
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
