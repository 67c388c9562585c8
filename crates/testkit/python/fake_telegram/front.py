"""HTTP: whose request it is, what it asks, which fault stands in its way, what is written down."""

import asyncio
import json
import re
import time

from aiohttp import web

from . import judge
from .calls import structured
from .refusal import Refusal, Violation

METHOD = re.compile(r"/bot([^/]+)/([A-Za-z]+)/?")
FILE = re.compile(r"/file/bot([^/]+)/(.+)")
TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]+")
# What faults call the way to a file.
DOWNLOAD = "download"
# A fault that hangs does so until the client leaves, or this long.
LONGEST_HANG = 3600


class Front:
    def __init__(self, world, calls, control):
        self.world, self.calls, self.control = world, calls, control
        control.front = self
        self.log, self.counts, self.faults, self.violations = [], {}, [], []
        self.polls = 0
        self.servers = {}

    # --- the sockets ---

    async def open(self, port, name):
        loop = asyncio.get_running_loop()
        handler = web.Server(self.handle, handler_cancellation=True, access_log=None)
        listener = await loop.create_server(handler, "127.0.0.1", port, backlog=1024)
        self.servers[name] = (listener, handler)
        return listener.sockets[0].getsockname()[1]

    async def outage(self, seconds):
        """Nothing is accepted for a while and what was open breaks."""
        listener, handler = self.servers["api"]
        port = listener.sockets[0].getsockname()[1]
        listener.close()
        for connection in list(handler.connections):
            if connection.transport:
                connection.transport.abort()
        await asyncio.sleep(seconds)
        await self.open(port, "api")

    # --- one request ---

    async def handle(self, request):
        if request.path.startswith("/_fake/"):
            return await self.control.handle(request)
        if file := FILE.fullmatch(request.path):
            return await self.download(request, *file.groups())
        parsed = METHOD.fullmatch(request.path)
        if not parsed or not TOKEN.fullmatch(parsed[1]):
            return answer(Refusal(404, "Not Found"))
        entry = {"n": len(self.log), "at": time.time(), "method": parsed[2], "from": request.remote}
        entry |= {"chat_id": None, "chats": [], "thread": None, "status": None}
        self.log.append(entry)
        try:
            response = await self.serve(request, parsed[1], parsed[2], entry)
        except asyncio.CancelledError:
            # The client left before it had its answer.
            entry["status"] = 0
            raise
        entry["ms"] = round((time.time() - entry["at"]) * 1000)
        return response

    async def serve(self, request, token, method, entry):
        fault = None
        try:
            given = await arguments(request)
            note(entry, given)
            if token != self.world.token:
                raise Refusal(401, "Unauthorized")
            if not self.calls.knows(method):
                raise Refusal(404, "Not Found: method not found")
            fault = self.fault(method, entry)
            if fault and fault["action"] in ("answer", "hang", "drop"):
                return await self.fail(request, fault, entry)
            response = await self.perform(method, given, entry)
        except Refusal as refusal:
            entry |= {"status": refusal.status, "error": refusal.description}
            response = answer(refusal)
        except Violation as violation:
            self.violations.append(str(violation))
            entry |= {"status": 500, "error": str(violation)}
            response = answer(Refusal(500, f"Internal Server Error: {violation}"))
        self.count(method, entry["status"])
        if fault and fault["action"] == "perform_and_hang":
            await self.hang(request, fault, entry)
        elif fault:
            entry["dropped"] = True
            request.transport.abort()
        return response

    async def perform(self, method, given, entry):
        if method.lower() == "getupdates":
            self.polls += 1
        if self.world.strict:
            judge.judge_request(method, given)
        result = await self.calls.call(method, given)
        # Updates were judged one by one when they came, and injected ones are not meant to please.
        if self.world.strict and method.lower() != "getupdates":
            judge.judge_result(method, result)
        entry["status"] = 200
        if isinstance(result, dict) and "message_id" in result:
            entry["message_id"] = result["message_id"]
        return web.json_response({"ok": True, "result": result})

    def count(self, method, status):
        counts = self.counts.setdefault(method.lower(), {})
        counts[str(status)] = counts.get(str(status), 0) + 1

    # --- faults ---

    def fault(self, method, entry):
        for fault in self.faults:
            wanted = fault["method"].lower() in ("*" if method != DOWNLOAD else DOWNLOAD, method.lower())
            if wanted and fault.get("chat") in (None, entry["chat_id"]):
                fault["times"] -= 1
                if fault["times"] <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    async def fail(self, request, fault, entry):
        entry["fault"] = fault["action"]
        if fault["action"] != "answer":
            entry["status"] = 0
            await self.hang(request, fault, entry)
            return web.Response()
        entry["status"] = fault["status"]
        self.count(entry["method"], fault["status"])
        body = fault.get("body")
        if isinstance(body, str):
            return web.Response(status=fault["status"], text=body, content_type="text/html")
        return web.json_response(body, status=fault["status"])

    async def hang(self, request, fault, entry):
        if fault["action"] != "drop":
            await asyncio.sleep(fault.get("seconds") or LONGEST_HANG)
        entry["dropped"] = True
        if request.transport:
            request.transport.abort()

    # --- files ---

    async def download(self, request, token, path):
        if token != self.world.token:
            return answer(Refusal(401, "Unauthorized"))
        content = next((file["content"] for file in self.world.files.values() if file["path"] == path), None)
        entry = {"method": DOWNLOAD, "chat_id": None}
        fault = self.fault(DOWNLOAD, entry)
        if fault and fault["action"] == "cut":
            return await cut(request, content)
        if fault:
            return await self.fail(request, fault, entry)
        return answer(Refusal(404, "Not Found")) if content is None else web.Response(body=content)


async def cut(request, content):
    """An answer that ends in its middle."""
    response = web.StreamResponse(headers={"Content-Length": str(2 * len(content))})
    await response.prepare(request)
    await response.write(content)
    request.transport.abort()
    return response


async def arguments(request):
    """Telegram takes them from the query, from forms and from JSON."""
    given = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.read() or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Refusal(400, "Bad Request: can't parse JSON object")
        given |= {key: value for key, value in body.items() if value is not None}
    elif request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        given |= dict(await request.post())
    return given


def note(entry, given):
    """Writes down every chat a request names, wherever it names it, and its text."""
    reply = structured(given, "reply_parameters")
    named = [given.get("chat_id"), given.get("from_chat_id"), reply.get("chat_id") if isinstance(reply, dict) else None]
    named = [number(value) for value in named if value not in (None, "")]
    entry["chat_id"] = number(given.get("chat_id"))
    entry["chats"] = named
    entry["thread"] = number(given.get("message_thread_id"))
    for key in ("message_id", "offset", "limit"):
        if key in given:
            entry[key] = number(given[key])
    if "text" in given:
        entry["text"] = given["text"]


def number(value):
    try:
        return int(value)
    except (TypeError, ValueError):
        return value


def answer(refusal):
    return web.json_response(refusal.body(), status=refusal.status)
