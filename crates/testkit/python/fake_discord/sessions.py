"""Gateway sessions: what a client may still have replayed.

A session outlives its sockets. Its events are numbered and kept until the
client reports, in a heartbeat or a resume, that it has seen them; then they are
gone for good. So a client that reports more than it kept visibly loses.
"""

import collections
import copy
import json
import secrets
import time

import discord
from simcord import intents as intent_rules
from simcord.backend import serializers
from simcord.backend.access import channel_accessible

from . import payloads

#: Events kept for one session; a client that is behind by more starts again.
BUFFER_LIMIT = 50_000

#: Ended sessions that are still shown to tests.
ENDED_SHOWN = 100

#: Close codes of a client that end its session at once.
FINAL_CODES = (1000, 1001)

#: Events about a channel that only those who can see it get.
CHANNEL_EVENTS = ("MESSAGE_", "TYPING_START", "CHANNEL_PINS_UPDATE", "THREAD_CREATE", "THREAD_UPDATE")


def dump(value):
    return json.dumps(value, separators=(",", ":"))


def spoiled(payload, rule):
    """The payload as a test wants it: without the paths of `drop`, with those of `set`."""
    payload = copy.deepcopy(dict(payload))
    for path in rule.get("drop") or []:
        _reach(payload, path).pop(path.split(".")[-1], None)
    for path, value in (rule.get("set") or {}).items():
        _reach(payload, path)[path.split(".")[-1]] = value
    return payload


def _reach(payload, path):
    for name in path.split(".")[:-1]:
        payload = payload[name]
    return payload


class Session:
    def __init__(self, intents, shard):
        self.id = secrets.token_hex(16)
        self.intents = discord.Intents._from_value(intents)
        self.shard = shard
        self.seq = 0
        self.reported = 0
        self.kept = collections.deque()
        self.socket = None
        self.dies_at = None

    def push(self, event, data):
        """Numbers an event, keeps it, and sends it if somebody listens."""
        self.seq += 1
        frame = dump({"op": 0, "t": event, "s": self.seq, "d": data})
        self.kept.append((self.seq, frame))
        if self.socket is not None:
            self.socket.send(frame)

    def report(self, seq):
        """The client says what it has seen."""
        if isinstance(seq, int):
            self.reported = max(self.reported, min(seq, self.seq))
            while self.kept and self.kept[0][0] <= self.reported:
                self.kept.popleft()

    def detach(self, life):
        self.socket = None
        self.dies_at = time.monotonic() + life

    def is_dead(self):
        late = self.dies_at is not None and time.monotonic() > self.dies_at
        return late or len(self.kept) > BUFFER_LIMIT

    def shown(self):
        return {
            "id": self.id, "shard": list(self.shard), "seq": self.seq, "reported": self.reported,
            "kept": len(self.kept), "connected": self.socket is not None,
        }


class Sessions:
    """All sessions of the bot, and which event belongs to which."""

    def __init__(self, world):
        self.world = world
        self.backend = world.backend
        self.live = {}
        self.ended = collections.deque(maxlen=ENDED_SHOWN)
        self.mangles = []
        self.backend.subscribers.append(self.on_event)

    def open(self, intents, shard, resume_url):
        """A new session: READY, then its guilds, before anything else."""
        session = Session(intents, shard or (0, 1))
        self.live[session.id] = session
        guilds = [guild for guild in self.backend.guilds.values() if self._is_on(session, guild.id)]
        guilds = [guild for guild in guilds if self.world.is_in(guild.id)]
        ready = {
            "v": 10, "user": payloads.me(self.world.bot), "session_id": session.id, "session_type": "normal",
            "resume_gateway_url": resume_url, "private_channels": [], "relationships": [], "user_settings": {},
            "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
            "application": {"id": str(self.backend.application_id), "flags": self.world.application_flags()},
        }
        if shard is not None:
            ready["shard"] = list(shard)
        # The frames wait in the session until its socket is attached.
        session.push("READY", ready)
        for guild in guilds:
            payload = serializers.guild_create_payload(self.backend, guild)
            self._offer(session, "GUILD_CREATE", payload, self._spoiler("GUILD_CREATE"))
        return session

    def find(self, session_id):
        self._bury()
        return self.live.get(session_id)

    def alive(self):
        self._bury()
        return list(self.live.values())

    def end(self, session):
        if self.live.pop(session.id, None) is not None:
            self.ended.append(session.shown())

    def expire(self):
        """Ends every session that has no socket."""
        for session in list(self.live.values()):
            if session.socket is None:
                self.end(session)

    def _bury(self):
        for session in list(self.live.values()):
            if session.is_dead():
                self.end(session)

    # ------------------------------------------------------------- events

    def on_event(self, event, payload):
        """Hands one of simcord's events to the sessions that get it."""
        payload, guild_id = self._placed(event, payload)
        if guild_id is not None and event != "GUILD_DELETE" and not self.world.is_in(guild_id):
            return
        if event.startswith(CHANNEL_EVENTS):
            channel_id = int(payload.get("channel_id") or payload["id"])
            if not channel_accessible(self.backend, channel_id, self.world.bot.id):
                return
        self.emit(event, payload, guild_id)

    def emit(self, event, payload, guild_id):
        spoiler = self._spoiler(event)
        for session in self.alive():
            if self._is_on(session, guild_id):
                self._offer(session, event, payload, spoiler)

    def _placed(self, event, payload):
        """The event with the guild it belongs to, if any."""
        if event in ("GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE"):
            return payload, int(payload["id"])
        guild_id = payload.get("guild_id")
        if guild_id is None and "channel_id" in payload:
            channel = self.backend.channels.get(int(payload["channel_id"]))
            guild_id = channel.guild_id if channel is not None else None
            if guild_id is not None:
                payload = {**payload, "guild_id": str(guild_id)}
        return payload, None if guild_id is None else int(guild_id)

    def _is_on(self, session, guild_id):
        """Guilds are spread over the shards; everything else is the first one's."""
        number, count = session.shard
        return number == (0 if guild_id is None else (guild_id >> 22) % count)

    def _offer(self, session, event, payload, spoiler):
        needed = intent_rules.required_intent(event, payload)
        if needed is not None and not getattr(session.intents, needed):
            return
        bot_id = self.world.bot.id
        if event == "GUILD_CREATE":
            payload = dict(payload)
            intent_rules.prune_guild_create(payload, session.intents, bot_id)
        elif event in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and not session.intents.message_content:
            payload = copy.deepcopy(payload)
            intent_rules.censor_message(payload, bot_id, backend=self.backend)
        if spoiler is not None:
            payload = spoiled(payload, spoiler)
        session.push(event, payload)

    def _spoiler(self, event):
        """How a test wants this event spoiled, if it does."""
        for rule in self.mangles:
            if rule["event"] == event:
                rule["count"] -= 1
                if rule["count"] == 0:
                    self.mangles.remove(rule)
                return rule
        return None
