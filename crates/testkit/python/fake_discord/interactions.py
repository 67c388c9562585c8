"""The life of an interaction, from what a person did to what they saw of it.

It goes out signed to the application's endpoint, or over the gateway where
there is none, and must be answered within three seconds; its token then acts
for the bot for a quarter of an hour. simcord keeps the state; here are the
payload in full, the signature, the deadlines and the judgement of answers.
"""

import asyncio
import dataclasses
import json
import secrets
import time

import aiohttp
from nacl.signing import SigningKey
from simcord import interactions as wire
from simcord.backend import serializers
from simcord.backend.errors import BackendError
from simcord.enums import InteractionType

from .forms import check_content, form_error
from .invocation import Invocations, component_message
from .sessions import spoiled
from .world import new_token

#: What a person reads when nothing usable came in time.
NO_RESPONSE = "The application did not respond"

EPHEMERAL = 1 << 6

#: Which answers fit which interaction.
FITTING = {
    InteractionType.PING: (1,),
    InteractionType.APPLICATION_COMMAND: (4, 5, 9),
    InteractionType.MESSAGE_COMPONENT: (4, 5, 6, 7, 9),
    InteractionType.APPLICATION_COMMAND_AUTOCOMPLETE: (8,),
    InteractionType.MODAL_SUBMIT: (4, 5, 6, 7),
}

#: Answers that concern the message a component is in.
OF_A_MESSAGE = (6, 7)

#: Suggestions that fit one list, characters of each.
CHOICES, CHOICE_LENGTH = 25, 100

#: Bytes a person may attach, of a guild without boosts.
ATTACHMENT_LIMIT = 10_485_760

#: What the bot may do in a direct message.
DM_PERMISSIONS = "442368"


def check_answer(record, answer):
    """Refuses an answer that Discord refuses; simcord checks the message in it."""
    kind = answer.get("type") if isinstance(answer, dict) else None
    fitting = FITTING[record.type]
    if record.source_message_id is None:
        fitting = tuple(number for number in fitting if number not in OF_A_MESSAGE)
    if type(kind) is not int or kind not in fitting:
        raise form_error("type", "BASE_TYPE_CHOICES", f"Value must be one of {list(fitting)}.")
    data = answer.get("data") or {}
    if not isinstance(data, dict):
        raise form_error("data", "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
    if kind == 5 and (set(data) - {"flags"} or (data.get("flags") or 0) & ~EPHEMERAL):
        raise form_error("data", "BASE_TYPE_CHOICES", "A deferred answer takes the EPHEMERAL flag and nothing else.")
    if kind == 6 and data:
        raise form_error("data", "BASE_TYPE_CHOICES", "A deferred update takes no data.")
    if kind in (4, 7):
        check_content(data)
    if kind == 8:
        _check_choices(data.get("choices"))


def _check_choices(choices):
    fits = isinstance(choices, list) and len(choices) <= CHOICES and all(
        1 <= len(choice.get("name", "")) <= CHOICE_LENGTH and len(str(choice.get("value", ""))) <= CHOICE_LENGTH
        for choice in choices
    )
    if not fits:
        raise form_error("choices", "BASE_TYPE_BAD_LENGTH", f"At most {CHOICES} choices of 1 to {CHOICE_LENGTH}.")


@dataclasses.dataclass
class Told:
    """What is remembered of an interaction beside simcord's own record."""

    via: str
    payload: dict
    url: str | None = None
    body: bytes = b""
    headers: dict = dataclasses.field(default_factory=dict)
    #: Milliseconds until the first answer.
    took_ms: float | None = None
    status: int | None = None
    answer: dict | None = None
    error: str | None = None
    #: Calls with its token that changed something.
    uses: int = 0
    #: An answer that is judged when somebody looks.
    unread: tuple | None = None


class Interactions:
    def __init__(self, world, gateway, options):
        self.world, self.gateway, self.options = world, gateway, options
        self.backend = world.backend
        self.invocations = Invocations(world)
        self.told = {}
        self.http = None
        seed = bytes.fromhex(options.signing_seed) if options.signing_seed else secrets.token_bytes(32)
        self.key = SigningKey(seed)

    @property
    def public_key(self):
        return self.key.verify_key.encode().hex()

    # -------------------------------------------------------------- making

    def make(self, kind, ask):
        """A record and its payload; nobody has heard of it yet."""
        channel = self.backend.get_channel(int(ask["channel"]))
        user_id = int(ask["user"])
        self.world.join(channel.id, user_id)
        source = None
        if ask.get("message"):
            source = component_message(self.backend, channel.id, int(ask["message"]), user_id)
        data = self._data(kind, ask, channel, user_id, source)
        record, payload = wire.base_payload(
            self.backend, type=kind, channel_id=channel.id, guild_id=channel.guild_id, user_id=user_id, data=data
        )
        if source is not None:
            record.source_message_id = source.id
            payload["message"] = dict(serializers.message_payload(self.backend, source))
        self._complete(payload, channel, user_id, ask)
        if ask.get("set") or ask.get("drop"):
            payload = spoiled(payload, ask)
        url = ask.get("url") or self.options.interactions_url
        via = ask.get("via") or ("http" if url else "gateway")
        self.told[record.id] = Told(via=via, payload=payload, url=url)
        return record

    def _data(self, kind, ask, channel, user_id, source):
        if kind == InteractionType.MESSAGE_COMPONENT:
            return self.invocations.press(ask, source)
        if kind == InteractionType.MODAL_SUBMIT:
            return self.invocations.modal(ask)
        if kind == InteractionType.APPLICATION_COMMAND_AUTOCOMPLETE:
            return self.invocations.autocomplete(ask, channel, user_id)
        return self.invocations.slash(ask, channel, user_id)

    def _complete(self, payload, channel, user_id, ask):
        """What Discord says and simcord leaves out."""
        locale = ask.get("locale", "en-US")
        payload.update(locale=locale, entitlement_sku_ids=[], attachment_size_limit=ATTACHMENT_LIMIT)
        if channel.guild_id is None:
            payload.update(authorizing_integration_owners={"0": "0"}, app_permissions=DM_PERMISSIONS)
            return
        payload["authorizing_integration_owners"] = {"0": str(channel.guild_id)}
        payload["guild"] = {"id": str(channel.guild_id), "locale": "en-US", "features": []}
        permissions = self.backend.compute_permissions(channel.guild_id, user_id, channel.id)
        payload["channel"]["permissions"] = str(permissions)

    # ------------------------------------------------------------- sending

    def start_clock(self, record):
        """The three seconds and the quarter of an hour run from now."""
        record.initial_response_deadline = self.backend.iso_after(self.options.interaction_deadline)
        record.expires_at = self.backend.iso_after(self.options.interaction_life)

    def sign(self, body, age=0):
        timestamp = str(int(time.time() - age))
        signature = self.key.sign(timestamp.encode() + body).signature.hex()
        return {
            "Content-Type": "application/json",
            "User-Agent": "Discord-Interactions/1.0 (+https://discord.com)",
            "X-Signature-Ed25519": signature,
            "X-Signature-Timestamp": timestamp,
        }

    def write(self, record):
        """The signed request, ready to go."""
        told = self.told[record.id]
        told.body = json.dumps(told.payload, separators=(",", ":"), ensure_ascii=False).encode()
        told.headers = self.sign(told.body)
        return told

    async def send(self, kind, ask):
        """Somebody does something; returns what came of it."""
        record = self.make(kind, ask)
        told = self.told[record.id]
        self.start_clock(record)
        if told.via == "gateway":
            self.backend.emit("INTERACTION_CREATE", told.payload)
        else:
            self.write(record)
            status, media, body, told.took_ms = await self.post(told.url, told.body, told.headers)
            self.judge(record, status, media, body)
        return self.shown(record)

    async def post(self, url, body, headers):
        """(status, media type, body, milliseconds); no status when it took too long or nobody was there."""
        if self.http is None:
            self.http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        begun = time.monotonic()
        try:
            limit = aiohttp.ClientTimeout(total=self.options.interaction_deadline)
            async with self.http.post(url, data=body, headers=headers, timeout=limit) as answer:
                status, media, body = answer.status, answer.content_type, await answer.read()
        except (aiohttp.ClientError, asyncio.TimeoutError):
            status, media, body = None, None, b""
        return status, media, body, (time.monotonic() - begun) * 1000

    def ping(self):
        """What Discord sends before it takes an endpoint."""
        number = self.backend.snowflake()
        payload = {
            "app_permissions": DM_PERMISSIONS, "application_id": str(self.backend.application_id),
            "authorizing_integration_owners": {}, "entitlements": [], "id": str(number), "token": new_token(number),
            "type": 1, "user": serializers.user_payload(self.world.bot), "version": 1,
        }
        return json.dumps(payload, separators=(",", ":")).encode()

    @staticmethod
    def is_pong(body):
        try:
            return json.loads(body).get("type") == 1
        except (ValueError, AttributeError):
            return False

    # ------------------------------------------------------------- judging

    def judge(self, record, status, media, body):
        """Takes the endpoint's answer for what it is; a bad one leaves the person with nothing."""
        told = self.told[record.id]
        told.status = status
        if status == 202 and not body:
            return
        try:
            if status != 200:
                raise ValueError(f"status {status}" if status else "no answer in time")
            if media != "application/json":
                raise ValueError(f"content type {media!r}")
            told.answer = json.loads(body)
            check_answer(record, told.answer)
            # It came in time, however late it is looked at.
            record.initial_response_deadline = None
            self.world.call_back(record, told.answer)
        except BackendError as error:
            told.error = f"{NO_RESPONSE} ({error} {error.errors or ''})"
        except ValueError as error:
            told.error = f"{NO_RESPONSE} ({error})"

    def settle(self, record):
        """Judges what a volley left for later."""
        told = self.told.get(record.id)
        if told is not None and told.unread is not None:
            unread, told.unread = told.unread, None
            self.judge(record, *unread)

    # ------------------------------------------------------------- showing

    def shown(self, record):
        """What the person sees of it, and how it came about."""
        self.settle(record)
        told = self.told[record.id]
        data = told.payload.get("data") or {}
        message = self.backend.messages.get(record.channel_id, {}).get(record.message_id)
        return {
            "id": str(record.id), "token": record.token, "type": int(record.type), "via": told.via,
            "user": str(record.user_id), "channel": str(record.channel_id),
            "name": data.get("name") or data.get("custom_id"),
            "state": self._state(record, told), "error": told.error or self._lateness(record),
            "status": told.status, "took_ms": told.took_ms, "answer": told.answer,
            "ephemeral": record.ephemeral,
            "message": str(record.message_id) if record.message_id else None,
            "content": message.content if message is not None else None,
            "edits": self.world.note(record.message_id).edits,
            "choices": record.autocomplete_choices, "modal": record.modal,
            "followups": [self._followup(record, number) for number in record.followup_ids],
        }

    def _followup(self, record, number):
        message = self.backend.messages[record.channel_id].get(number)
        content, flags = (message.content, message.flags) if message is not None else (None, 0)
        return {
            "id": str(number), "content": content, "ephemeral": bool(flags & EPHEMERAL),
            "edits": self.world.note(number).edits,
        }

    def _state(self, record, told):
        if told.error or (not record.responded and self._lateness(record)):
            return "failed"
        if not record.responded:
            return "waiting"
        # A deferred update shows nothing; it is done when something came of it.
        return "deferred" if record.loading or (record.deferred and not told.uses) else "answered"

    def _lateness(self, record):
        deadline = record.initial_response_deadline
        late = not record.responded and deadline is not None and self.backend.now_iso() >= deadline
        return NO_RESPONSE if late else None

    def all_shown(self, numbers):
        return [self.shown(self.backend.interactions[number]) for number in numbers if number in self.told]

