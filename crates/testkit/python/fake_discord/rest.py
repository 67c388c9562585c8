"""The HTTP API: simcord's routes behind what a server has to do itself.

Every request is written down before anything else happens to it, so the log
proves what a client ever asked for.
"""

import asyncio
import collections
import io
import json
import re
import sys
import time
import traceback

from aiohttp import web
from simcord.backend.errors import BackendError
from simcord.http import router

from .limits import TOKENED, Limits
from .routes import Routes

#: Requests kept in the log.
LOG_LIMIT = 200_000

#: How long a hanging answer hangs when the fault does not say.
HANG = 600.0

#: What the edge shows instead of an answer of Discord.
EDGE_PAGE = (
    "<!DOCTYPE html><html><head><title>Access denied | discord.com used Cloudflare to restrict access"
    "</title></head><body><h1>Error 1015</h1><p>You are being rate limited</p></body></html>"
)

#: Routes whose path carries the credential.
OPEN = re.compile(r"^/(gateway$|interactions/|webhooks/\d+/[^/]+)")

#: Places named in a body that a request can reach.
BODY_IDS = ("recipient_id", "webhook_channel_id", "channel_id", "guild_id")


class Upload:
    """A file as simcord takes it."""

    def __init__(self, filename, data):
        self.filename, self.fp, self.description = filename, io.BytesIO(data), None


class Rest:
    def __init__(self, world, gateway, interactions, options):
        self.world = world
        self.options = options
        self.limits = Limits(options)
        self.routes = Routes(world, gateway, interactions, options)
        self.faults = []
        self.log = collections.deque(maxlen=LOG_LIMIT)
        self.logged = 0
        self.counts = collections.Counter()
        self.gateway = gateway

    async def handle(self, request):
        path = "/" + request.match_info["tail"]
        if time.monotonic() < self.gateway.refused_until and self.gateway.refuses_rest:
            request.transport.abort()
            return web.Response(status=503)
        body, files, broken = await self._body(request)
        entry = self._write_down(request, path, body)
        fault = self._next_fault(request.method, path)
        if fault is None or fault.get("perform"):
            response = self._answer(request, path, body, files, broken, entry)
        else:
            response = None
        if fault is not None:
            response = await self._spoil(request, fault, response, entry)
        entry["status"] = response.status
        self.limits.note(response.status)
        return response

    async def _body(self, request):
        """(JSON, files, whether it could not be read)."""
        if request.content_type == "multipart/form-data":
            payload, files = None, []
            async for part in await request.multipart():
                data = await part.read()
                if part.name == "payload_json":
                    payload = data
                elif part.filename:
                    files.append(Upload(part.filename, bytes(data)))
        else:
            payload, files = await request.read(), []
        if not payload:
            return None, files, False
        try:
            return json.loads(payload), files, False
        except ValueError:
            return None, files, True

    def _write_down(self, request, path, body):
        """The log's line: which places a request names, whatever comes of it."""
        parts = path.strip("/").split("/")
        channel_id = int(parts[1]) if parts[0] == "channels" and parts[1:] and parts[1].isdecimal() else None
        if parts[0] in TOKENED and len(parts) > 2:
            # Who holds an interaction's token writes where the interaction was.
            record = self.world.backend.interactions.get(self.world.backend.interaction_tokens.get(parts[2]))
            channel_id = record.channel_id if record else None
        channel = self.world.backend.channels.get(channel_id)
        guild_id = channel.guild_id if channel else None
        if parts[0] == "guilds" and parts[1:]:
            guild_id = parts[1]
        body = body if isinstance(body, dict) else {}
        named = [part for part in parts if part.isdecimal()]
        for source in (body, body.get("message_reference")):
            if isinstance(source, dict):
                named += [str(source[name]) for name in BODY_IDS if source.get(name)]
        self.logged += 1
        entry = {
            "n": self.logged, "at": time.time(), "method": request.method, "path": path, "from": request.remote,
            "query": dict(request.query), "status": None, "fault": None,
            "channel": None if channel_id is None else str(channel_id),
            "parent": str(channel.parent_id) if channel and channel.parent_id else None,
            "guild": None if guild_id is None else str(guild_id),
            "person": str(channel.recipient_ids[0]) if channel and channel.recipient_ids else None,
            "ids": named, "content": body.get("content"), "user_agent": request.headers.get("User-Agent"),
        }
        self.log.append(entry)
        return entry

    # -------------------------------------------------------------- answers

    def _answer(self, request, path, body, files, broken, entry):
        """What Discord would say."""
        if self.limits.is_banned():
            entry["fault"] = "banned"
            return web.Response(status=429, text=EDGE_PAGE, content_type="text/html")
        # Only where the path is the credential does Discord take any name: discord.py gives none of a bot there.
        agent = request.headers.get("User-Agent") or ""
        if not agent.startswith("DiscordBot (") and not (agent and OPEN.match(path)):
            return self._json(403, {"message": "internal network error", "code": 40333})
        if not OPEN.match(path) and request.headers.get("Authorization") != f"Bot {self.options.token}":
            return self._json(401, {"message": "401: Unauthorized", "code": 0})
        refusal, headers = self.limits.check(request.method, path)
        if refusal is not None:
            headers["Retry-After"] = str(max(1, int(refusal["retry_after"] + 0.999)))
            return self._json(429, refusal, headers)
        if broken:
            return self._json(400, {"message": "The request body contains invalid JSON.", "code": 50109}, headers)
        status, answer = self._dispatch(request, path, body, files)
        return self._json(status, answer, headers)

    def _dispatch(self, request, path, body, files):
        try:
            answer = self.routes.answer(request.method, path, body, dict(request.query), files)
        except (router.RouteNotImplemented, router.UnsupportedField) as gap:
            print(f"not built: {gap}", file=sys.stderr, flush=True)
            self.counts["not_built"] += 1
            return (404, {"message": "404: Not Found", "code": 0}) if isinstance(
                gap, router.RouteNotImplemented
            ) else (400, {"message": "Invalid Form Body", "code": 50035, "errors": {"_errors": [str(gap)]}})
        except BackendError as error:
            return error.status, error.to_json()
        except (ValueError, TypeError, AttributeError, KeyError):
            traceback.print_exc()
            self.counts["unreadable"] += 1
            return 400, {"message": "Invalid Form Body", "code": 50035, "errors": {}}
        return (204, None) if answer is None else (200, answer)

    def _json(self, status, answer, headers=None):
        # Clients take an answer for Discord's, and not the edge's, by this header.
        headers = {"Via": "1.1 google", **(headers or {})}
        if answer is None:
            return web.Response(status=status, headers=headers)
        text = json.dumps(answer).encode()
        return web.Response(status=status, body=text, content_type="application/json", headers=headers)

    # --------------------------------------------------------------- faults

    def _next_fault(self, method, path):
        for fault in self.faults:
            if fault.get("method") not in (None, method) or not re.search(fault["path"], path):
                continue
            if fault.get("skip", 0) > 0:
                fault["skip"] -= 1
                continue
            fault["count"] = fault.get("count", 1) - 1
            if fault["count"] <= 0:
                self.faults.remove(fault)
            return fault
        return None

    async def _spoil(self, request, fault, response, entry):
        """Does to the answer what the test ordered."""
        entry["fault"] = how = fault.get("how", "status")
        if fault.get("perform"):
            entry["performed"] = response.status
        if fault.get("delay"):
            await asyncio.sleep(fault["delay"])
        if how == "hang":
            await asyncio.sleep(fault.get("seconds", HANG))
        if how in ("hang", "drop"):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=499)
        if how == "delay" and response is not None:
            return response
        status, headers = fault.get("status", 500), fault.get("headers")
        if "html" in fault:
            page = fault["html"] or EDGE_PAGE
            return web.Response(status=status, text=page, content_type="text/html", headers=headers)
        return self._json(status, fault.get("json", {"message": f"{status}: fault", "code": 0}), headers)

    async def spoil_file(self, request, data):
        """The answer to a question for a file that a fault meets; `cut` ends in its middle."""
        fault = self._next_fault("GET", request.path)
        if fault is None:
            return None
        if fault.get("how") != "cut":
            return await self._spoil(request, fault, None, {})
        answer = web.StreamResponse(headers={"Content-Length": str(2 * len(data))})
        await answer.prepare(request)
        await answer.write(data)
        request.transport.abort()
        return answer

    def shown(self):
        return {
            "requests": self.logged,
            "limited": sum(self.limits.given.values()),
            "limited_by": dict(self.limits.given),
            "invalid": len(self.limits.invalid),
            "typing": {str(channel): count for channel, count in self.routes.typing.items()},
            "nonces_repeated": self.routes.nonces_repeated,
            "not_built": self.counts["not_built"],
            "unreadable": self.counts["unreadable"],
        }
