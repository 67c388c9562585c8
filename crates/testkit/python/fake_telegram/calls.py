"""The methods of the Bot API."""

import asyncio
import json
import re
import urllib.parse

from . import buttons, text, uploads
from .refusal import Refusal, bad
from .webhook import Webhook

# The longest a poll is held, whatever the client asks for.
LONGEST_POLL = 50
BIGGEST_FILE = 20 * 1024 * 1024
ACTIONS = {
    f"{verb}_{thing}"
    for verb in ("upload", "record")
    for thing in ("photo", "video", "voice", "document", "video_note")
} | {"typing", "choose_sticker", "find_location"}
# Some of those that bots may use; ✅ and ❌ are not among them.
REACTIONS = {"👍", "👎", "❤", "🔥", "👏", "🎉", "🤔", "👀", "💯", "🙏"}
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly "
    "the same as a current content and reply markup of the message"
)
TERMINATED = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


def integer(given, name, default=None):
    value = given.get(name)
    if value is None or value == "":
        return default
    try:
        return int(value)
    except (TypeError, ValueError):
        raise bad(f"parameter {name} must be an integer") from None


def boolean(given, name):
    return str(given.get(name, "")).lower() in ("true", "1", "yes", "y", "t")


def structured(given, name, called=None):
    """Lists and objects come as such in JSON bodies and as JSON texts in forms."""
    value = given.get(name)
    if not isinstance(value, str) or value == "":
        return value or None
    try:
        return json.loads(value)
    except ValueError:
        raise bad(f"can't parse {called or name} JSON object") from None


class Calls:
    def __init__(self, world, limits):
        self.world = world
        self.limits = limits
        self.webhook = Webhook(world, self.call)
        self.presses = buttons.Presses(world)
        self.polling = None
        self.foreign_poller = False

    def knows(self, method):
        return self.named(method) is not None

    def named(self, method):
        names = {name[3:]: name for name in dir(self) if name.startswith("do_")}
        return names.get(method.lower())

    async def call(self, method, given):
        return await getattr(self, self.named(method))(given)

    # --- who am I ---

    async def do_getme(self, _given):
        return {
            **self.world.bot,
            "can_join_groups": True,
            "can_read_all_group_messages": not self.world.privacy,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.world.topics_enabled,
            "allows_users_to_create_topics": self.world.topics_enabled,
        }

    async def do_setmycommands(self, given):
        commands = structured(given, "commands") or []
        if len(commands) > 100:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command.get("command", "")):
                raise bad("BOT_COMMAND_INVALID")
            if not 1 <= len(command.get("description", "")) <= 256:
                raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        # Telegram does not say how much it takes in all: 4 KB it took, and 7.8 KB it refused.
        if sum(len((it["command"] + it["description"]).encode()) for it in commands) > 4096:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        self.world.commands[self.audience(given)] = commands
        return True

    async def do_getmycommands(self, given):
        return self.world.commands.get(self.audience(given), [])

    async def do_deletemycommands(self, given):
        self.world.commands.pop(self.audience(given), None)
        return True

    def audience(self, given):
        scope = structured(given, "scope") or {"type": "default"}
        return json.dumps(scope, sort_keys=True) + given.get("language_code", "")

    # --- updates ---

    async def do_getupdates(self, given):
        if self.webhook.url:
            raise Refusal(409, WEBHOOK_ACTIVE)
        offset, limit = integer(given, "offset", 0), integer(given, "limit", 100)
        if not 1 <= limit <= 100:
            limit = 100
        timeout = min(max(integer(given, "timeout", 0), 0), LONGEST_POLL)
        self.take_allowed(given)
        self.end_poll(TERMINATED)
        mine = self.polling = asyncio.get_running_loop().create_future()
        try:
            return await self.poll(mine, offset, limit, timeout)
        finally:
            mine.cancel()

    async def poll(self, mine, offset, limit, timeout):
        """Waits for updates until the time is up or somebody else polls."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        if self.foreign_poller:
            # The other one asks again at once and wins.
            await asyncio.sleep(0.05)
            raise Refusal(409, TERMINATED)
        while True:
            updates, left = self.world.fetch(offset, limit), until - loop.time()
            if updates or left <= 0:
                return updates
            arrived = asyncio.ensure_future(self.world.arrived.wait())
            try:
                await asyncio.wait({mine, arrived}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                arrived.cancel()
            if mine.done():
                raise Refusal(409, mine.result())

    def end_poll(self, reason):
        if self.polling and not self.polling.done():
            self.polling.set_result(reason)

    def take_allowed(self, given):
        """Remembered until it is given again; an empty list asks for the usual kinds."""
        allowed = structured(given, "allowed_updates")
        if "allowed_updates" in given:
            self.world.allowed = set(allowed) if allowed else None

    async def do_setwebhook(self, given):
        url, secret = given.get("url", ""), given.get("secret_token") or None
        if not url:
            return await self.do_deletewebhook(given)
        parsed = urllib.parse.urlparse(url)
        if parsed.scheme != "https" and parsed.hostname not in ("127.0.0.1", "localhost"):
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        if secret and not re.fullmatch(r"[A-Za-z0-9_-]+", secret):
            raise bad("secret token contains unallowed characters")
        if secret and len(secret) > 256:
            raise bad("secret token is too long")
        connections = integer(given, "max_connections", 40)
        if not 1 <= connections <= 100:
            raise bad("max_connections must be between 1 and 100")
        self.take_allowed(given)
        self.drop_pending(given)
        self.end_poll("Conflict: terminated by setWebhook request")
        self.webhook.start(url, secret, connections)
        return True

    async def do_deletewebhook(self, given):
        self.drop_pending(given)
        self.webhook.stop()
        return True

    def drop_pending(self, given):
        if boolean(given, "drop_pending_updates"):
            self.world.updates.clear()

    async def do_getwebhookinfo(self, _given):
        return self.webhook.info()

    # --- messages ---

    async def do_sendmessage(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        self.limits.spend(chat.id, chat.private)
        words, entities, sent = self.words(given)
        thread, content = self.thread(chat, given)
        reply_to = self.reply_target(chat, given)
        content |= {"text": words} | ({"entities": entities} if entities else {}) | self.keyboard(given)
        preview = structured(given, "link_preview_options")
        if preview and any(entity["type"] in ("url", "text_link") for entity in entities):
            content["link_preview_options"] = preview
        raw = self.world.build(chat, self.world.bot, content, thread=thread, reply_to=reply_to)
        self.world.keep(chat, raw, by_bot=True, sent_entities=sent)
        return raw

    async def send_file(self, given, kind):
        chat = self.world.reachable(given.get("chat_id"))
        self.limits.spend(chat.id, chat.private)
        sent = structured(given, "caption_entities") or []
        thread, content = self.thread(chat, given)
        reply_to = self.reply_target(chat, given)
        file = uploads.uploaded(self.world, given.get(kind), kind)
        content |= {kind: file} | uploads.caption(given, sent)
        if kind == "animation":
            content["document"] = {key: value for key, value in file.items() if key not in ("width", "height", "duration")}
        raw = self.world.build(chat, self.world.bot, content, thread=thread, reply_to=reply_to)
        self.world.keep(chat, raw, by_bot=True, sent_entities=sent)
        return raw

    async def do_sendphoto(self, given):
        return await self.send_file(given, "photo")

    async def do_sendvoice(self, given):
        return await self.send_file(given, "voice")

    async def do_sendaudio(self, given):
        return await self.send_file(given, "audio")

    async def do_sendvideo(self, given):
        return await self.send_file(given, "video")

    async def do_sendanimation(self, given):
        return await self.send_file(given, "animation")

    async def do_senddocument(self, given):
        return await self.send_file(given, "document")

    def words(self, given):
        if given.get("parse_mode"):
            raise bad("this stand-in takes entities, not a parse_mode")
        sent = structured(given, "entities") or []
        return *text.prepared(given.get("text"), sent), sent

    def keyboard(self, given):
        return buttons.keyboard(structured(given, "reply_markup", "reply keyboard markup"))

    def thread(self, chat, given):
        """The topic a message goes to, or the chain of replies it joins."""
        thread = integer(given, "message_thread_id", 0)
        if not thread:
            return None, {}
        topic = chat.topics.get(thread)
        if topic:
            if topic["closed"] and chat.bot != "administrator":
                raise bad("TOPIC_CLOSED")
            return thread, {}
        if chat.type == "supergroup" and not chat.raw.get("is_forum") and chat.standing(thread):
            return None, {"message_thread_id": thread}
        # The General topic has no id: 1 is refused like any unknown one.
        raise bad("message thread not found")

    def reply_target(self, chat, given):
        reply = structured(given, "reply_parameters") or {}
        number = integer(reply, "message_id") or integer(given, "reply_to_message_id")
        if number is None:
            return None
        place = self.world.reachable(reply["chat_id"]) if reply.get("chat_id") else chat
        target = place.standing(number)
        lenient = boolean(reply, "allow_sending_without_reply") or boolean(given, "allow_sending_without_reply")
        if target is None and not lenient:
            raise bad("message to be replied not found")
        return target

    async def do_editmessagetext(self, given):
        stored = self.editable(given)
        words, entities, sent = self.words(given)
        content = {"text": words} | ({"entities": entities} if entities else {}) | self.keyboard(given)
        # Without a keyboard in it, an edit takes the old one away.
        raw = self.edit(stored, ("text", "entities", "reply_markup"), content)
        stored.sent_entities = sent
        return raw

    async def do_editmessagereplymarkup(self, given):
        return self.edit(self.editable(given), ("reply_markup",), self.keyboard(given))

    def editable(self, given):
        """The bot's message that an edit is about."""
        chat = self.world.reachable(given.get("chat_id"))
        self.limits.spend(chat.id, chat.private)
        stored = chat.standing(integer(given, "message_id", 0))
        if stored is None:
            raise bad("message to edit not found")
        if not stored.by_bot:
            raise bad("message can't be edited")
        return stored

    def edit(self, stored, fields, content):
        """Puts something in the place of these fields, which has to be something else."""
        if content == {name: stored.raw[name] for name in fields if name in stored.raw}:
            raise bad(NOT_MODIFIED)
        kept = {name: value for name, value in stored.raw.items() if name not in fields}
        stored.raw = {**kept, **content, "edit_date": self.world.now()}
        stored.edits += 1
        return stored.raw

    async def do_sendmessagedraft(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        if not chat.private:
            raise bad("method is available only in private chats")
        if not integer(given, "draft_id", 0):
            raise bad("DRAFT_ID_INVALID")
        self.thread(chat, given)
        words, entities, _ = self.words(given) if given.get("text") else ("", [], [])
        chat.drafts.append({"draft_id": integer(given, "draft_id"), "text": words, "entities": entities})
        return True

    async def do_answercallbackquery(self, given):
        if given.get("url"):
            raise bad("this stand-in has no games, whose buttons alone open addresses")
        number, words = str(given.get("callback_query_id", "")), str(given.get("text", ""))
        self.presses.answer(number, words, boolean(given, "show_alert"))
        return True

    async def do_deletemessage(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        stored = chat.standing(integer(given, "message_id", 0))
        if stored is None:
            raise bad("message to delete not found")
        if not (stored.by_bot or chat.private or chat.bot == "administrator"):
            raise bad("message can't be deleted")
        stored.deleted = True
        return True

    async def do_sendchataction(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        if given.get("action") not in ACTIONS:
            raise bad("wrong parameter action in request")
        # Here, and only here, General has the id 1.
        if not (chat.raw.get("is_forum") and integer(given, "message_thread_id") == 1):
            self.thread(chat, given)
        chat.actions.append({"action": given["action"], "thread": integer(given, "message_thread_id")})
        return True

    async def do_setmessagereaction(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        stored = chat.standing(integer(given, "message_id", 0))
        if stored is None:
            raise bad("message to react not found")
        reactions = structured(given, "reaction") or []
        if len(reactions) > 1:
            raise bad("REACTIONS_TOO_MANY")
        for reaction in reactions:
            if reaction.get("type") != "emoji" or reaction.get("emoji") not in REACTIONS:
                raise bad("REACTION_INVALID")
        stored.reactions = [reaction["emoji"] for reaction in reactions]
        return True

    # --- topics ---

    async def do_createforumtopic(self, given):
        chat = self.forum(given, "create a topic")
        name = self.topic_name(given)
        self.limits.spend(chat.id, chat.private)
        thread = self.world.open_topic(chat, name)
        return {"message_thread_id": thread, "name": name, "icon_color": 7322096}

    async def do_editforumtopic(self, given):
        chat = self.forum(given, "manage topics")
        topic = chat.topics.get(integer(given, "message_thread_id", 0))
        if topic is None:
            raise bad("TOPIC_ID_INVALID")
        name = self.topic_name(given)
        if topic["name"] == name:
            raise bad("TOPIC_NOT_MODIFIED")
        self.limits.spend(chat.id, chat.private)
        self.world.name_topic(chat, integer(given, "message_thread_id", 0), name)
        return True

    def forum(self, given, what):
        chat = self.world.reachable(given.get("chat_id"))
        if not chat.raw.get("is_forum"):
            raise bad("the chat is not a forum")
        if chat.bot != "administrator":
            raise bad(f"not enough rights to {what}")
        return chat

    def topic_name(self, given):
        name = str(given.get("name", "")).strip()
        if not 1 <= len(name) <= 128:
            raise bad("TOPIC_TITLE_EMPTY" if not name else "invalid forum topic name length")
        return name

    # --- chats ---

    async def do_getchat(self, given):
        chat = self.world.find(given.get("chat_id"))
        if chat.private and not chat.started:
            raise bad("chat not found")
        if not chat.private:
            self.world.reachable(chat.id)
        gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
        full = {
            **chat.raw,
            "accent_color_id": 0,
            "max_reaction_count": 11,
            "accepted_gift_types": dict.fromkeys(gifts, False),
        }
        if chat.raw.get("username"):
            full["active_usernames"] = [chat.raw["username"]]
        return full

    async def do_getchatmember(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        user_id = integer(given, "user_id", 0)
        if user_id == self.world.bot["id"]:
            return self.world.member(self.world.bot, chat.bot)
        if user_id not in self.world.users:
            raise bad("invalid user_id specified" if user_id <= 0 else "member not found")
        return self.world.member(self.world.users[user_id], chat.members.get(user_id, "left"))

    async def do_getchatadministrators(self, given):
        chat = self.world.reachable(given.get("chat_id"))
        if chat.private:
            raise bad("there are no administrators in the private chat")
        found = [
            self.world.member(self.world.users[user_id], status)
            for user_id, status in chat.members.items()
            if status in ("creator", "administrator")
        ]
        if chat.bot == "administrator":
            found.append(self.world.member(self.world.bot, chat.bot))
        return found

    async def do_getchatmembercount(self, given):
        return len(self.world.reachable(given.get("chat_id")).members) + 1

    # --- files ---

    async def do_getfile(self, given):
        file = self.world.files.get(given.get("file_id"))
        if file is None:
            raise bad("wrong file_id or the file is temporarily unavailable")
        if file["raw"]["file_size"] > BIGGEST_FILE:
            raise bad("file is too big")
        return {**file["raw"], "file_path": file["path"]}
