"""The routes that simcord lacks or answers differently from Discord."""

import collections
import re
import time

from simcord.backend import errors, serializers
from simcord.backend.access import channel_accessible
from simcord.backend.errors import BackendError
from simcord.http import router
from simcord.http._helpers import message_response

from . import payloads
from .forms import check_content, check_edit, empty_message, form_error
from .hooks import Hooks
from .world import Note

#: Characters of a nonce, messages of one page.
NONCE_LIMIT, PAGE_LIMIT = 25, 100

#: Message types one can reply to: plain, reply, command, context command.
ANSWERABLE = (0, 19, 20, 23)


#: Channel types that have threads: text and announcements. How long a thread may be without a word.
THREADED, ARCHIVED_AFTER = (0, 5), (60, 1440, 4320, 10080)


class RenamedTooOften(BackendError):
    def __init__(self, wait):
        super().__init__(429, 0, "You are being rate limited.")
        self.wait = wait

    def to_json(self):
        return {"message": "You are being rate limited.", "retry_after": round(self.wait, 3), "global": False}


def check_name(body):
    name = body.get("name")
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= 100:
        raise form_error("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")


class Routes:
    def __init__(self, world, gateway, interactions, options):
        self.world = world
        self.backend = world.backend
        self.gateway = gateway
        self.options = options
        self.interactions = interactions
        self.hooks = Hooks(world, interactions, self._simcord)
        self.typing = collections.Counter()
        self.renames = collections.defaultdict(list)
        self.nonces_repeated = 0
        self.own = [
            ("GET", r"/gateway", self.gateway_url),
            ("GET", r"/gateway/bot", self.gateway_bot),
            ("GET", r"/(?:oauth2/)?applications/@me", self.application),
            ("GET", r"/users/@me", self.me),
            ("GET", r"/users/@me/guilds", self.my_guilds),
            ("POST", r"/users/@me/channels", self.open_dm),
            ("GET", r"/guilds/(\d+)", self.guild),
            ("GET", r"/guilds/(\d+)/members", self.members),
            ("GET", r"/channels/(\d+)/messages", self.history),
            ("POST", r"/channels/(\d+)/messages", self.send),
            ("PATCH", r"/channels/(\d+)/messages/(\d+)", self.edit),
            ("POST", r"/channels/(\d+)/typing", self.type),
            ("POST", r"/channels/(\d+)/threads", self.open_thread),
            ("POST", r"/channels/(\d+)/messages/(\d+)/threads", self.open_thread),
            ("PATCH", r"/channels/(\d+)", self.rename),
            ("POST", r"/attachments/refresh-urls", self.refresh),
        ]

    def answer(self, method, path, body, query, files):
        """The JSON of the answer; None is an empty one."""
        call = (method, path, body, query, files)
        # A guild the bot is not in does not exist for it.
        guild = re.match(r"/guilds/(\d+)", path)
        if guild and not self.world.is_in(int(guild[1])):
            raise errors.unknown_guild()
        hook = self.hooks.find(method, path)
        if hook is not None:
            return hook(call)
        for own_method, pattern, handler in self.own:
            match = re.fullmatch(pattern, path) if own_method == method else None
            if match:
                return handler(call, *(int(part) for part in match.groups()))
        return self._simcord(call)

    def _simcord(self, call, body=None):
        method, path, sent, query, files = call
        return router.dispatch(
            self.backend, method, path, json=sent if body is None else body, params=query, files=files,
            message_content_access="message_content" in self.options.privileged,
        )

    def refresh(self, call):
        """New links in the place of those that have ended."""
        urls = call[2]["attachment_urls"]
        new = [{"original": url, "refreshed": url.split("?")[0] + self.world.signature(86_400)} for url in urls]
        return {"refreshed_urls": new}

    # ------------------------------------------------------------- the bot

    def gateway_url(self, _call):
        return {"url": self.gateway.url}

    def gateway_bot(self, _call):
        used = self.gateway.counts["identifies"]
        limit = {
            "total": self.options.identify_total, "remaining": max(0, self.options.identify_total - used),
            "reset_after": 86_400_000, "max_concurrency": self.options.max_concurrency,
        }
        return {"url": self.gateway.url, "shards": self.options.shards, "session_start_limit": limit}

    def application(self, _call):
        bot = serializers.user_payload(self.world.bot)
        return {
            "id": str(self.backend.application_id), "name": self.world.bot.name, "icon": None, "description": "",
            "summary": "", "bot_public": True, "bot_require_code_grant": False,
            "verify_key": self.interactions.public_key,
            "owner": bot, "team": None, "bot": bot, "flags": self.world.application_flags(),
            "approximate_guild_count": len(self.backend.guilds),
            "interactions_endpoint_url": self.options.interactions_url,
            "redirect_uris": [], "tags": [],
        }

    def me(self, _call):
        return payloads.me(self.world.bot)

    def my_guilds(self, call):
        query = call[3]
        guilds = sorted(guild for guild in self.backend.guilds if self.world.is_in(guild))
        guilds = [guild for guild in guilds if guild > int(query.get("after", 0))]
        if "before" in query:
            guilds = [guild for guild in guilds if guild < int(query["before"])]
        guilds = guilds[: int(query.get("limit", 200))]
        return [payloads.partial_guild(self.backend, self.backend.guilds[guild]) for guild in guilds]

    def guild(self, call, guild_id):
        counts = call[3].get("with_counts") == "true"
        return payloads.rest_guild(self.backend, self.backend.guilds[guild_id], counts=counts)

    def members(self, call, _guild_id):
        if "members" not in self.options.privileged:
            raise errors.missing_access()
        return self._simcord(call)

    def open_dm(self, call):
        person = int((call[2] or {}).get("recipient_id", 0))
        if person not in self.backend.users or person == self.world.bot.id:
            raise BackendError(400, 50033, "Invalid Recipient(s)")
        return serializers.channel_payload(self.backend, self.backend.get_dm_channel(person))

    # ----------------------------------------------------------- messages

    def history(self, call, channel_id):
        """simcord gives the newest messages after an id; Discord gives the next ones."""
        query = call[3]
        limit = int(query.get("limit", 50))
        if not 1 <= limit <= PAGE_LIMIT:
            raise form_error("limit", "NUMBER_TYPE_MAX", f"int value should be less than or equal to {PAGE_LIMIT}.")
        if "after" not in query:
            return self._simcord(call)
        channel = self.backend.get_channel(channel_id)
        self.backend.require_permissions(channel.guild_id, self.world.bot.id, channel_id)
        if not channel_accessible(self.backend, channel_id, self.world.bot.id, history=True):
            return []
        # What only one person sees is in no history.
        later = sorted(
            number for number, message in self.backend.messages[channel_id].items()
            if number > int(query["after"]) and not message.is_ephemeral
        )
        access = "message_content" in self.options.privileged
        context = router.RequestContext(self.backend, {}, message_content_access=access)
        page = [self.backend.messages[channel_id][number] for number in reversed(later[:limit])]
        return [message_response(context, message, for_user=self.world.bot.id) for message in page]

    def send(self, call, channel_id):
        body = dict(call[2] or {})
        check_content(body)
        channel = self.backend.get_channel(channel_id)
        state = channel.thread_metadata
        if state is not None and state.archived and state.locked:
            raise BackendError(400, 50083, "Thread is archived")
        nonce = self._nonce(body)
        if nonce is not None and body.get("enforce_nonce"):
            first = self._sent_before(nonce)
            if first is not None:
                self.nonces_repeated += 1
                return serializers.message_payload(self.backend, first)
        if not (body.get("content") or "").strip() and not any(
            body.get(name) for name in ("embeds", "components", "sticker_ids", "poll", "message_reference")
        ) and not call[4]:
            raise empty_message()
        self._settle_reference(channel_id, body)
        self.world.next_note = Note(nonce=nonce, allowed_mentions=body.get("allowed_mentions"))
        try:
            answer = self._simcord(call, body)
        finally:
            self.world.next_note = None
        self._describe(self.backend.messages[channel_id][int(answer["id"])], body)
        if nonce is not None:
            self.world.nonces[str(nonce)] = (time.monotonic(), channel_id, int(answer["id"]))
        return answer

    def _describe(self, message, body):
        """What the bot says of a recording stands on it."""
        for stored, given in zip(message.attachments, body.get("attachments") or [], strict=False):
            stored |= {key: given[key] for key in ("duration_secs", "waveform") if key in given}

    def _nonce(self, body):
        nonce = body.get("nonce")
        if nonce is None:
            return None
        if isinstance(nonce, bool) or not isinstance(nonce, (str, int)) or len(str(nonce)) > NONCE_LIMIT:
            raise form_error("nonce", "NONCE_TYPE_TOO_LONG", f"Nonce must be {NONCE_LIMIT} or fewer characters.")
        return nonce

    def _sent_before(self, nonce):
        """The bot's message with this nonce, wherever it went, while it is remembered."""
        sent = self.world.nonces.get(str(nonce))
        if sent is None or time.monotonic() - sent[0] > self.options.nonce_life:
            return None
        return self.backend.messages.get(sent[1], {}).get(sent[2])

    def _settle_reference(self, channel_id, body):
        """A reply needs its message, unless it says that it does not."""
        reference = body.get("message_reference")
        if not isinstance(reference, dict) or reference.get("type", 0) != 0:
            return
        target = self.backend.messages.get(channel_id, {}).get(int(reference.get("message_id") or 0))
        if target is None and not reference.get("fail_if_not_exists", True):
            del body["message_reference"]
        elif target is None:
            raise form_error("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        elif target.type not in ANSWERABLE:
            message = "Cannot reply to a system message"
            raise form_error("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", message)

    def edit(self, call, _channel_id, _message_id):
        check_edit(call[2] or {})
        return self._simcord(call)

    # ------------------------------------------------------------ threads

    def open_thread(self, call, channel_id, message_id=None):
        """A thread of the bot's; a message has one at the most, under its own id."""
        body = call[2] or {}
        channel = self.backend.get_channel(channel_id)
        self.backend.require_permissions(
            channel.guild_id, self.world.bot.id, channel_id, "view_channel", "create_public_threads"
        )
        if channel.type not in THREADED:
            raise BackendError(400, 50024, "Cannot execute action on this channel type")
        check_name(body)
        if body.get("auto_archive_duration", 1440) not in ARCHIVED_AFTER:
            raise form_error("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")
        if message_id is None and body.get("type") != 11:
            raise form_error("type", "BASE_TYPE_CHOICES", "this stand-in opens public threads")
        if message_id is not None:
            self.backend.get_message(channel_id, message_id)
            if message_id in self.backend.channels:
                raise BackendError(400, 160004, "A thread has already been created for this message")
        ask = {"parent": channel_id, "name": body["name"].strip(), "owner": self.world.bot.id, "message": message_id}
        return dict(serializers.thread_payload(self.backend, self.world.make_thread(ask)))

    def rename(self, call, channel_id):
        """Two names in ten minutes, of which no header tells."""
        body = call[2] or {}
        if "name" in body:
            check_name(body)
            now, times = time.monotonic(), self.renames[channel_id]
            many, seconds = self.options.limit_rename
            times[:] = [at for at in times if at > now - seconds]
            if self.options.limits and len(times) >= many:
                raise RenamedTooOften(times[0] + seconds - now)
            channel = self.backend.get_channel(channel_id)
            state = channel.thread_metadata
            if state is not None and state.archived:
                raise BackendError(400, 50083, "Thread is archived")
            if state is None or channel.owner_id != self.world.bot.id:
                needed = "manage_threads" if state is not None else "manage_channels"
                self.backend.require_permissions(channel.guild_id, self.world.bot.id, channel_id, needed)
            times.append(now)
        return self._simcord(call)

    def type(self, call, channel_id):
        self._simcord(call)
        self.typing[channel_id] += 1
