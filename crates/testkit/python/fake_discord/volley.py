"""Many signed interactions at once, and how fast they were answered.

Everything is built, signed and connected before the clock starts, and answers
are judged when it has stopped or when somebody uses a token: what is measured
is the endpoint. The client is a bare one because Python's own would be the
slowest part of the measurement.
"""

import asyncio
import collections
import time
import urllib.parse

from simcord.enums import InteractionType

#: Connections opened before the clock starts; more are opened when all are busy.
CONNECTIONS = 256

#: Interactions judged before others get a turn.
BATCH = 50


class Wire(asyncio.Protocol):
    """One kept-alive connection: one request, one answer, the next."""

    def __init__(self):
        self.transport = None
        self.buffer = bytearray()
        self.answer = None
        self.free = None

    def connection_made(self, transport):
        self.transport = transport

    def ask(self, request, free):
        """Sends a request; the answer is (status, media type, body, when it came)."""
        self.answer = asyncio.get_running_loop().create_future()
        self.free = free
        self.transport.write(request)
        return self.answer

    def data_received(self, data):
        came = time.monotonic()
        self.buffer += data
        head, mark, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        if not mark:
            return
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if len(rest) < int(headers.get("content-length", 0)):
            return
        self.buffer.clear()
        media = headers.get("content-type", "").partition(";")[0].strip()
        self._settle((int(status.split()[1]), media, rest, came))
        if headers.get("connection", "").lower() == "close":
            self.transport.close()
        elif self.free is not None:
            self.free.append(self)

    def connection_lost(self, _error):
        self.free = None
        self._settle((None, None, b"", time.monotonic()))

    def _settle(self, answer):
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(answer)


class Volley:
    def __init__(self, interactions, ask):
        self.interactions, self.ask = interactions, ask
        self.count, self.within = int(ask["count"]), float(ask.get("within_ms", 0)) / 1000
        url = urllib.parse.urlsplit(ask.get("url") or interactions.options.interactions_url)
        self.host, self.port = url.hostname, url.port or 80
        self.place = url.netloc
        self.path = url.path + (f"?{url.query}" if url.query else "")
        self.free = collections.deque()
        self.lags = []

    async def run(self):
        shots = self._build()
        await asyncio.gather(*(self._open() for _ in range(min(self.count, CONNECTIONS))))
        begun = time.monotonic()
        asked = []
        for number, (record, request) in enumerate(shots):
            due = begun + number * self.within / self.count
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            elif number % BATCH == 0:
                await asyncio.sleep(0)
            self.lags.append(time.monotonic() - due)
            asked.append(asyncio.create_task(self._shoot(record, request)))
        fired = time.monotonic() - begun
        await asyncio.gather(*asked)
        for wire in self.free:
            wire.transport.close()
        return await self._report([record for record, _ in shots], fired)

    def _build(self):
        channels, users = self.ask["channels"], self.ask["users"]
        shots = []
        for number in range(self.count):
            options = {
                name: value.replace("{n}", str(number)) if isinstance(value, str) else value
                for name, value in (self.ask.get("options") or {}).items()
            }
            order = {
                **self.ask, "via": "http", "options": options, "name": self.ask.get("name", "ask"),
                "channel": channels[number % len(channels)], "user": users[number % len(users)],
            }
            record = self.interactions.make(InteractionType.APPLICATION_COMMAND, order)
            shots.append((record, self._request(self.interactions.write(record))))
        return shots

    def _request(self, told):
        headers = {"Host": self.place, "Content-Length": str(len(told.body)), **told.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST {self.path} HTTP/1.1\r\n{lines}\r\n".encode() + told.body

    async def _open(self):
        _, wire = await asyncio.get_running_loop().create_connection(Wire, self.host, self.port)
        self.free.append(wire)

    async def _shoot(self, record, request):
        """One interaction, from the moment it is sent to the whole answer."""
        interactions = self.interactions
        told = interactions.told[record.id]
        interactions.start_clock(record)
        limit = interactions.options.interaction_deadline
        sent = time.monotonic()
        wire = None
        try:
            async with asyncio.timeout(limit):
                if not self.free:
                    await self._open()
                wire = self.free.popleft()
                status, media, body, came = await wire.ask(request, self.free)
        except (TimeoutError, OSError):
            status, media, body, came = None, None, b"", time.monotonic()
            if wire is not None:
                wire.transport.abort()
        told.took_ms = (came - sent) * 1000
        told.status, told.unread = status, (status, media, body)

    async def _report(self, records, fired):
        told, states, answers, texts = [], collections.Counter(), collections.Counter(), collections.Counter()
        for number, record in enumerate(records):
            shown = self.interactions.shown(record)
            told.append(shown)
            states[shown["state"]] += 1
            answer = shown["answer"] or {}
            answers[str(answer.get("type"))] += 1
            if (answer.get("data") or {}).get("content"):
                texts[answer["data"]["content"]] += 1
            if number % BATCH == 0:
                await asyncio.sleep(0)
        took = sorted(shown["took_ms"] for shown in told)
        return {
            "ids": [shown["id"] for shown in told], "states": states, "types": answers, "texts": texts,
            "statuses": collections.Counter(str(shown["status"]) for shown in told),
            "p50_ms": quantile(took, 0.5), "p99_ms": quantile(took, 0.99), "max_ms": took[-1] if took else 0.0,
            "fired_ms": fired * 1000, "lag_ms": max(self.lags, default=0.0) * 1000,
            "errors": sorted({shown["error"] for shown in told if shown["error"]})[:10],
        }


def quantile(values, part):
    """The value that this part of them does not exceed."""
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0
