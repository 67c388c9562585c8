"""The v10 gateway: sockets, heartbeats, identify, resume.

Strict on purpose. Whatever Discord closes a socket for is closed here with the
same code, and a fault that a test orders happens to real sockets.
"""

import asyncio
import collections
import json
import time
import zlib

import aiohttp
import discord
from aiohttp import web
from simcord import intents as intent_rules
from simcord.backend import serializers

from .sessions import FINAL_CODES, Sessions, dump

HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, MEMBERS = 1, 2, 3, 4, 6, 8
RECONNECT, INVALID, HELLO, ACK = 7, 9, 10, 11

UNKNOWN_OPCODE, DECODE, NOT_AUTHENTICATED, BAD_TOKEN, ALREADY_AUTHENTICATED = 4001, 4002, 4003, 4004, 4005
BAD_SEQUENCE, RATE_LIMITED, TIMED_OUT, BAD_SHARD = 4007, 4008, 4009, 4010
BAD_VERSION, BAD_INTENTS, DISALLOWED_INTENTS = 4012, 4013, 4014

#: Bytes of one frame a client may send.
FRAME_LIMIT = 4096

#: Seconds over which a client's frames are counted.
SEND_WINDOW = 60.0

#: Silence that ends a session: this many heartbeat intervals, but never less
#: than the seconds, because a loaded test machine is no dead client.
SILENT_BEATS, SILENT_SECONDS = 3, 15.0

#: Frames that may wait for a client that does not read.
OUTBOX_LIMIT = 100_000

#: Every intent there is.
ALL_INTENTS = discord.Intents.all().value | 1 << 24 | 1 << 25


class Socket:
    """One connection: frames out in order, optionally as one zlib stream."""

    def __init__(self, ws, transport, deflate):
        self.ws = ws
        self.transport = transport
        self.packer = zlib.compressobj() if deflate else None
        self.outbox = collections.deque()
        self.waiting = asyncio.Event()
        self.session = None
        self.sends = collections.deque()
        self.heard = time.monotonic()
        self.acks = True
        self.mute = False
        self.closed_by_us = False

    def send(self, frame):
        if self.mute or self.closed_by_us:
            return
        if len(self.outbox) > OUTBOX_LIMIT:
            self.abort()
        self.outbox.append(frame)
        self.waiting.set()

    def close(self, code):
        """Closes after what was sent before; the frame itself is the last."""
        if not self.closed_by_us:
            self.closed_by_us = True
            self.outbox.append(code)
            self.waiting.set()

    def abort(self):
        """Ends the connection without a word."""
        self.closed_by_us = True
        self.outbox.clear()
        if self.transport is not None:
            self.transport.abort()

    async def write(self):
        """Sends until the connection is gone."""
        while True:
            await self.waiting.wait()
            self.waiting.clear()
            while self.outbox:
                item = self.outbox.popleft()
                if isinstance(item, int):
                    await self.ws.close(code=item)
                    return
                if self.packer is None:
                    await self.ws.send_str(item)
                else:
                    packed = self.packer.compress(item.encode())
                    await self.ws.send_bytes(packed + self.packer.flush(zlib.Z_SYNC_FLUSH))


class Gateway:
    def __init__(self, world, options, address):
        self.world = world
        self.options = options
        self.address = address
        self.url = f"ws://{address}"
        self.sessions = Sessions(world)
        self.sockets = set()
        self.identified = {}
        self.refused_until = 0.0
        self.refuses_rest = False
        self.resume_refusals = []
        self.greeting_refusals = []
        self.short_lives = 0
        self.counts = collections.Counter()
        self.client_closes = []

    async def handle(self, request):
        """A client connects."""
        if time.monotonic() < self.refused_until:
            self.counts["connections_refused"] += 1
            request.transport.abort()
            return web.Response(status=503)
        ws = web.WebSocketResponse(max_msg_size=1 << 20)
        if not ws.can_prepare(request).ok:
            return web.Response(status=400, text="this is a WebSocket")
        await ws.prepare(request)
        self.counts["connections"] += 1
        socket = Socket(ws, request.transport, request.query.get("compress") == "zlib-stream")
        self.sockets.add(socket)
        writer = asyncio.create_task(socket.write())
        watcher = asyncio.create_task(self._watch(socket))
        try:
            if request.query.get("v", "10") != "10" or request.query.get("encoding", "json") != "json":
                socket.close(BAD_VERSION)
            elif self.greeting_refusals:
                code = self.greeting_refusals.pop(0)
                socket.close(code) if code is not None else request.transport.close()
            else:
                socket.send(dump({
                    "op": HELLO, "t": None, "s": None,
                    "d": {"heartbeat_interval": self.options.heartbeat_interval, "_trace": []},
                }))
            await self._read(socket)
        finally:
            self.sockets.discard(socket)
            watcher.cancel()
            self._part(socket)
            if socket.closed_by_us:
                # The writer may still be waiting for the client to agree.
                await asyncio.wait([writer], timeout=5)
            writer.cancel()
        return ws

    async def _read(self, socket):
        async for message in socket.ws:
            if socket.mute or socket.closed_by_us:
                continue
            if message.type is not aiohttp.WSMsgType.TEXT:
                socket.close(DECODE)
                continue
            if self._is_flooding(socket):
                socket.close(RATE_LIMITED)
                continue
            self._take(socket, message.data)

    def _part(self, socket):
        """The connection is gone; its session may live on."""
        code = None if socket.closed_by_us else socket.ws.close_code
        if not socket.closed_by_us:
            self.client_closes.append(code if code is not None else 1006)
        session = socket.session
        if session is not None and session.socket is socket:
            session.detach(self.options.session_life)
            if code in FINAL_CODES:
                self.sessions.end(session)

    async def _watch(self, socket):
        """Gives up on a client that stopped its heartbeats."""
        interval = self.options.heartbeat_interval / 1000
        patience = max(SILENT_BEATS * interval, SILENT_SECONDS)
        while True:
            await asyncio.sleep(interval)
            if time.monotonic() - socket.heard > patience and not socket.mute:
                self._fail(socket, TIMED_OUT)

    def _is_flooding(self, socket):
        now = time.monotonic()
        socket.sends.append(now)
        while socket.sends[0] < now - SEND_WINDOW:
            socket.sends.popleft()
        return 0 < self.options.gateway_sends < len(socket.sends)

    # --------------------------------------------------------------- frames

    def _take(self, socket, text):
        try:
            frame = json.loads(text) if len(text.encode()) <= FRAME_LIMIT else None
            op, data = frame["op"], frame.get("d")
        except (ValueError, KeyError, TypeError, AttributeError):
            return socket.close(DECODE)
        if op == HEARTBEAT:
            return self._beat(socket, data)
        if op in (IDENTIFY, RESUME):
            if socket.session is not None:
                return socket.close(ALREADY_AUTHENTICATED)
            if not isinstance(data, dict):
                return socket.close(DECODE)
            return self._identify(socket, data) if op == IDENTIFY else self._resume(socket, data)
        if socket.session is None:
            return socket.close(NOT_AUTHENTICATED)
        if op == MEMBERS:
            return self._members(socket.session, data)
        if op not in (PRESENCE, VOICE):
            return socket.close(UNKNOWN_OPCODE)
        return None

    def _beat(self, socket, seq):
        self.counts["heartbeats"] += 1
        socket.heard = time.monotonic()
        if socket.session is not None:
            socket.session.report(seq)
        if socket.acks:
            socket.send(dump({"op": ACK, "t": None, "s": None, "d": None}))

    def _identify(self, socket, data):
        self.counts["identifies"] += 1
        if self.counts["identifies"] > self.options.identify_total:
            # What Discord does to a bot that spends its day's identifies.
            self.options.token = "reset"
        if not self._is_token(data.get("token")):
            return socket.close(BAD_TOKEN)
        shard = data.get("shard")
        if shard is not None and not self._is_shard(shard):
            return socket.close(BAD_SHARD)
        intents = data.get("intents")
        if not isinstance(intents, int) or not isinstance(data.get("properties"), dict):
            return socket.close(DECODE)
        if intents & ~ALL_INTENTS or intents < 0:
            return socket.close(BAD_INTENTS)
        if intent_rules.missing_privileged_intents(discord.Intents._from_value(intents), self._granted()):
            return socket.close(DISALLOWED_INTENTS)
        if self._identifies_too_fast(shard):
            self.counts["identifies_refused"] += 1
            return self._invalid(socket, False)
        session = self.sessions.open(intents, tuple(shard) if shard else None, self.url)
        self._attach(session, socket)
        return None

    def _is_token(self, token):
        # Discord takes it with its scheme too, and twilight sends it so.
        return token in (self.options.token, f"Bot {self.options.token}")

    @staticmethod
    def _is_shard(shard):
        if not isinstance(shard, list) or len(shard) != 2 or not all(type(part) is int for part in shard):
            return False
        return 0 <= shard[0] < shard[1]

    def _granted(self):
        granted = discord.Intents.all()
        for name in intent_rules.PRIVILEGED_INTENTS:
            setattr(granted, name, name in self.options.privileged)
        return granted

    def _identifies_too_fast(self, shard):
        bucket = (shard or [0, 1])[0] % self.options.max_concurrency
        now = time.monotonic()
        last = self.identified.get(bucket)
        if last is not None and now - last < self.options.identify_seconds:
            return True
        self.identified[bucket] = now
        return False

    def _resume(self, socket, data):
        if not self._is_token(data.get("token")):
            return socket.close(BAD_TOKEN)
        if self.resume_refusals:
            self.counts["resume_failures"] += 1
            code = self.resume_refusals.pop(0)
            return self._invalid(socket, False) if code is None else socket.close(code)
        session, seq = self.sessions.find(data.get("session_id")), data.get("seq")
        if session is None or not isinstance(seq, int) or seq < session.reported:
            self.counts["resume_failures"] += 1
            return self._invalid(socket, False)
        if seq > session.seq:
            self.counts["resume_failures"] += 1
            self.sessions.end(session)
            return socket.close(BAD_SEQUENCE)
        self.counts["resumes"] += 1
        if session.socket is not None:
            session.socket.abort()
        session.report(seq)
        self._attach(session, socket)
        session.seq += 1
        socket.send(dump({"op": 0, "t": "RESUMED", "s": session.seq, "d": {"_trace": []}}))
        return None

    def _attach(self, session, socket):
        """What the session kept goes out first, then what comes."""
        session.socket, session.dies_at = socket, None
        socket.session = session
        for _, frame in session.kept:
            socket.send(frame)
        if self.short_lives:
            self.short_lives -= 1
            asyncio.get_running_loop().call_soon(socket.close, 4000)

    def _members(self, session, data):
        guild = self.world.backend.guilds.get(int(data["guild_id"]))
        if guild is None:
            return
        wanted = {int(user) for user in data.get("user_ids") or guild.members}
        members = [
            serializers.member_payload(self.world.backend, guild, member)
            for member in guild.members.values() if member.user_id in wanted
        ]
        chunk = {"guild_id": str(guild.id), "members": members, "chunk_index": 0, "chunk_count": 1}
        if data.get("nonce"):
            chunk["nonce"] = data["nonce"]
        session.push("GUILD_MEMBERS_CHUNK", chunk)

    # --------------------------------------------------------------- faults

    def _invalid(self, socket, resumable):
        socket.send(dump({"op": INVALID, "t": None, "s": None, "d": resumable}))

    def _fail(self, socket, code):
        """Closes a socket and ends its session."""
        if socket.session is not None:
            self.sessions.end(socket.session)
        socket.close(code)

    def close_all(self, code):
        """Closes every socket, or cuts it where there is no code."""
        for socket in list(self.sockets):
            if code is None:
                socket.abort()
            elif code in FINAL_CODES or code == TIMED_OUT:
                self._fail(socket, code)
            else:
                socket.close(code)

    def ask_reconnect(self):
        for socket in self.sockets:
            socket.send(dump({"op": RECONNECT, "t": None, "s": None, "d": None}))

    def ask_heartbeat(self):
        for socket in self.sockets:
            socket.send(dump({"op": HEARTBEAT, "t": None, "s": None, "d": None}))

    def invalidate(self, resumable):
        for socket in self.sockets:
            session, socket.session = socket.session, None
            if session is not None:
                session.detach(self.options.session_life)
                if not resumable:
                    self.sessions.end(session)
            self._invalid(socket, resumable)

    def zombify(self, mute):
        """The sockets of now no longer acknowledge; mute ones are dead in every way."""
        for socket in self.sockets:
            socket.acks = False
            socket.mute = mute

    def shown(self):
        names = ("connections", "connections_refused", "identifies", "identifies_refused", "resumes",
                 "resume_failures", "heartbeats")
        return {
            **{name: self.counts[name] for name in names},
            "sockets": len(self.sockets),
            "client_closes": self.client_closes,
            "sessions": [session.shown() for session in self.sessions.alive()],
            "ended_sessions": list(self.sessions.ended),
        }
