"""The other side of the counter: what tests make people do, break and read."""

import asyncio
import json

from aiohttp import web

from . import buttons, media, text
from .calls import TERMINATED
from .front import DOWNLOAD
from .refusal import Refusal, Violation, bad
from .world import Stored


class Control:
    def __init__(self, world, calls):
        self.world, self.calls = world, calls
        self.front = None
        self.tasks = set()

    async def handle(self, request):
        name = "on_" + request.path.removeprefix("/_fake/").replace("/", "_")
        handler = getattr(self, name, None)
        if handler is None:
            return web.json_response({"error": f"no {request.path}"}, status=404)
        try:
            body = await request.read()
            ask = json.loads(body) if body else dict(request.query)
            return web.json_response(handler(ask))
        except Violation as violation:
            return web.json_response({"violation": str(violation)}, status=500)
        except Refusal as refusal:
            return web.json_response({"error": refusal.description}, status=400)
        except (KeyError, TypeError, ValueError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)

    # --- people and chats ---

    def on_user(self, ask):
        return self.world.make_user(ask)

    def on_private(self, ask):
        return self.world.make_private(ask["user"], ask.get("started", True)).raw

    def on_group(self, ask):
        return self.world.make_chat("group", ask).raw

    def on_supergroup(self, ask):
        return self.world.make_chat("supergroup", ask).raw

    def on_channel(self, ask):
        return self.world.make_chat("channel", ask).raw

    def on_topic(self, ask):
        chat = self.world.find(ask["chat"])
        if not chat.raw.get("is_forum") and not (chat.private and self.world.topics_enabled):
            raise bad("the chat is not a forum")
        thread, update = self.world.make_topic(chat, ask.get("name", "Topic"), self.world.user(ask["from"]))
        return {"thread": thread, "update_id": update}

    def on_rename_topic(self, ask):
        chat, by = self.world.find(ask["chat"]), self.world.user(ask["from"])
        return {"update_id": self.world.rename_topic(chat, ask["thread"], ask["name"], by)}

    def on_topics(self, ask):
        topics = self.world.find(int(ask["chat"])).topics
        return {"topics": [{"thread": number, "name": topic["name"]} for number, topic in topics.items()]}

    def on_close_topic(self, ask):
        self.world.find(ask["chat"]).topics[ask["thread"]]["closed"] = ask.get("closed", True)
        return {}

    def on_member(self, ask):
        """Changes what somebody, or the bot, is in a chat, without a word about it."""
        chat = self.world.find(ask["chat"])
        if ask["user"] == self.world.bot["id"]:
            chat.bot = ask["status"]
        else:
            chat.members[self.world.user(ask["user"])["id"]] = ask["status"]
        return {}

    def on_migrate(self, ask):
        new, updates = self.world.migrate(self.world.find(ask["chat"]), ask)
        return {"chat": new.id, "update_ids": updates}

    def on_block(self, ask):
        return self.bot_becomes(ask, "kicked")

    def on_kick(self, ask):
        return self.bot_becomes(ask, "kicked")

    def on_welcome(self, ask):
        """Unblocks the bot, or takes it back into a group."""
        return self.bot_becomes(ask, "member")

    def bot_becomes(self, ask, status):
        chat = self.world.find(ask["chat"])
        by = self.world.user(ask.get("from", chat.id if chat.private else next(iter(chat.members), None)))
        old, chat.bot = chat.bot, status
        return {"update_id": self.world.member_update(chat, by, old, status)}

    # --- what people say ---

    def on_say(self, ask):
        said = [self.say(ask, number) for number in range(ask.get("count", 1))]
        lists = {f"{name}s": [one[name] for one in said] for name in ("update_id", "message_id")}
        return {**said[-1], **lists}

    def say(self, ask, number):
        chat = self.world.find(ask["chat"])
        if chat.migrated_to:
            raise bad("nobody can write there any more")
        if chat.private:
            chat.started = True
        author = self.author(chat, ask)
        sender = self.world.find(ask["sender_chat"]) if ask.get("sender_chat") else None
        reply_to = chat.messages.get(ask["reply_to"]) if ask.get("reply_to") else None
        thread = ask.get("thread")
        if thread is not None and thread not in chat.topics:
            raise bad(f"there is no topic {thread}")
        content = self.content(ask, number)
        stored, update = self.world.post(chat, author, content, sender_chat=sender, thread=thread, reply_to=reply_to)
        return {"update_id": update, "message_id": stored.raw["message_id"]}

    def author(self, chat, ask):
        if chat.type == "channel":
            return None
        if ask.get("bot_author"):
            given = ask["bot_author"] if isinstance(ask["bot_author"], dict) else {}
            return self.world.make_user({"is_bot": True, "first_name": "Other", "username": "other_bot", **given})
        if ask.get("sender_chat") and "from" not in ask:
            return None
        user = self.world.user(ask.get("from", chat.id))
        chat.members.setdefault(user["id"], "member")
        return user

    def content(self, ask, number):
        content = media.content_of(self.world, ask)
        for words, marks in (("text", "entities"), ("caption", "caption_entities")):
            if ask.get(words):
                said = ask[words].replace("{n}", str(number))
                said, entities = text.prepared(said, ask.get(marks))
                content |= {words: said} | ({marks: entities} if entities else {})
        if ask.get("forward"):
            content |= self.forwarded(ask["forward"])
        # Anything else of a message, as Telegram writes it.
        return {**content, **ask.get("more", {})}

    def forwarded(self, given):
        date = self.world.now() - 60
        if "chat" in given:
            raw = self.world.find(given["chat"]).raw
            number = given.get("message_id", 1)
            origin = {"type": "channel", "chat": raw, "message_id": number}
            old = {"forward_from_chat": raw, "forward_from_message_id": number}
        elif "user" in given:
            user = self.world.user(given["user"])
            origin, old = {"type": "user", "sender_user": user}, {"forward_from": user}
        else:
            origin = {"type": "hidden_user", "sender_user_name": given["name"]}
            old = {"forward_sender_name": given["name"]}
        return {"forward_origin": {**origin, "date": date}, "forward_date": date, **old}

    def on_edit(self, ask):
        chat = self.world.find(ask["chat"])
        stored = chat.messages[ask["message"]]
        words = "text" if "text" in stored.raw else "caption"
        marks = "entities" if words == "text" else "caption_entities"
        said, entities = text.prepared(ask["text"], ask.get("entities"))
        stored.raw = {**stored.raw, words: said, "edit_date": self.world.now()}
        stored.raw.pop(marks, None)
        if entities:
            stored.raw[marks] = entities
        stored.edits += 1
        kind = "edited_channel_post" if chat.type == "channel" else "edited_message"
        seen = self.world.sees(chat, stored, False)
        return {"update_id": self.world.push(kind, stored.raw) if seen else None}

    def on_delete(self, ask):
        """A person deletes a message; bots are not told."""
        self.world.find(ask["chat"]).messages[ask["message"]].deleted = True
        return {}

    def on_press(self, ask):
        """A person presses a button, by its label or with any data: clients can be modified."""
        chat = self.world.find(ask["chat"])
        stored, user = chat.messages[ask["message"]], self.world.user(ask["from"])
        if not stored.by_bot or chat.migrated_to:
            raise bad("there are no buttons to press")
        if chat.private and user["id"] != chat.id:
            raise bad("nobody else is in a private chat")
        chat.members.setdefault(user["id"], "member")
        data = ask["data"] if "data" in ask else buttons.data_of(stored.raw, ask["label"])
        return self.calls.presses.press(chat, stored, user, data)

    def on_update(self, ask):
        """Any update at all, also one that nobody can read."""
        return {"update_id": self.world.queue({"update_id": self.world.next_update, **ask["update"]})}

    # --- settings and faults ---

    def on_privacy(self, ask):
        self.world.privacy = ask["on"]
        return {}

    def on_limits(self, ask):
        self.calls.limits.change(ask)
        return self.calls.limits.settings

    def on_token(self, ask):
        """The operator revoked the token and got another one."""
        self.world.token = ask["token"]
        return {}

    def on_clock(self, ask):
        self.world.clock += ask["advance"]
        return {}

    def on_fault(self, ask):
        fault = {"times": 1, "action": "answer", **ask}
        actions = ("answer", "hang", "drop", "perform_and_drop", "perform_and_hang")
        if fault["method"] == DOWNLOAD:
            actions = ("answer", "hang", "drop", "cut")
        if fault["action"] not in actions:
            raise ValueError(fault["action"])
        if fault["action"] == "answer" and ("status" not in fault or "body" not in fault):
            raise ValueError("an answer has a status and a body")
        if fault["method"] not in ("*", DOWNLOAD) and not self.calls.knows(fault["method"]):
            raise ValueError(fault["method"])
        self.front.faults.append(fault)
        return {}

    def on_faults_clear(self, _ask):
        self.front.faults.clear()
        return {}

    def on_outage(self, ask):
        task = asyncio.get_running_loop().create_task(self.front.outage(ask["seconds"]))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return {}

    def on_foreign_poller(self, ask):
        self.calls.foreign_poller = ask["on"]
        if ask["on"]:
            self.calls.end_poll(TERMINATED)
        return {}

    # --- what can be read ---

    def on_state(self, _ask):
        given = [status for counts in self.front.counts.values() for status in counts.items()]
        total = lambda wanted: sum(times for status, times in given if status == wanted)
        return {
            "confirmed": self.world.confirmed,
            "pending": len(self.world.updates),
            "next_update": self.world.next_update,
            "polls": self.front.polls,
            "polling": bool(self.calls.polling and not self.calls.polling.done()),
            "webhook": self.calls.webhook.info(),
            # What Telegram tells nobody; tests post as Telegram does.
            "webhook_secret": self.calls.webhook.secret,
            "counts": self.front.counts,
            "too_many": total("429"),
            "conflicts": total("409"),
            "faults": len(self.front.faults),
            "violations": self.front.violations,
        }

    def on_messages(self, ask):
        """The messages of a chat as they stand, the oldest first."""
        chat = self.world.find(int(ask["chat"]))
        everything = str(ask.get("all", "")) in ("1", "True", "true")
        return [shown(stored) for stored in chat.messages.values() if everything or not stored.deleted]

    def on_actions(self, ask):
        return self.world.find(int(ask["chat"])).actions

    def on_drafts(self, ask):
        return self.world.find(int(ask["chat"])).drafts

    def on_press_answer(self, ask):
        """What the bot answered to a press, nothing as long as it did not."""
        return self.calls.presses.made[ask["id"]]["answer"]

    def on_log(self, ask):
        return self.front.log[int(ask.get("after", 0)) :]


def shown(stored: Stored):
    raw = stored.raw
    return {
        "message_id": raw["message_id"],
        "reactions": stored.reactions,
        "by_bot": stored.by_bot,
        "text": raw.get("text", raw.get("caption")),
        "entities": raw.get("entities", raw.get("caption_entities", [])),
        "sent_entities": stored.sent_entities,
        "edits": stored.edits,
        "deleted": stored.deleted,
        "reply_to": raw.get("reply_to_message", {}).get("message_id"),
        "thread": raw.get("message_thread_id"),
        "raw": raw,
    }
