"""HTTP: what an app calls, which fault stands in its way, what is written down."""

import asyncio
import json
import time

from aiohttp import web

from .world import File, Refused

# A fault that hangs does so until the client leaves, or this long.
LONGEST_HANG = 3600


class Front:
    def __init__(self, world, control):
        self.world, self.control = world, control
        control.front = self
        self.log, self.faults = [], []

    async def open(self):
        loop = asyncio.get_running_loop()
        handler = web.Server(self.handle, handler_cancellation=True, access_log=None)
        listener = await loop.create_server(handler, "127.0.0.1", 0, backlog=1024)
        return listener.sockets[0].getsockname()[1]

    async def handle(self, request):
        if request.path.startswith("/_fake/"):
            return await self.control.handle(request)
        method = request.path.removeprefix("/cgi-bin/")
        entry = {"method": method, "at": time.time(), "errcode": None}
        self.log.append(entry)
        fault = self.fault(method)
        if fault and fault["action"] == "answer":
            entry["errcode"] = fault.get("errcode")
            return self.faulty(fault)
        if fault and fault["action"] in ("hang", "drop"):
            return await self.leave(request, fault)
        try:
            answer = await self.perform(request, method, entry)
        except Refused as refused:
            answer = refused.body()
        if isinstance(answer, File):
            entry["errcode"] = 0
            # A header is one line.
            name = "".join(letter if letter.isprintable() else "_" for letter in answer.name)
            named = {"Content-Disposition": f'attachment; filename="{name}"'}
            if fault:
                return await self.cut(request, answer, named)
            return web.Response(body=answer.content, content_type=answer.media_type, headers=named)
        entry["errcode"] = answer["errcode"]
        if fault:
            return await self.leave(request, fault)
        return web.json_response(answer)

    async def perform(self, request, method, entry):
        query = request.query
        calls = {("GET", "gettoken"), ("GET", "agent/get"), ("GET", "media/get"), ("POST", "media/upload"), ("POST", "message/send")}
        if (request.method, method) not in calls:
            raise Refused(43001 if ("GET", method) in calls else 43002, "require another method")
        if method == "gettoken":
            return self.world.fetch_token(query.get("corpid"), query.get("corpsecret"))
        self.world.check_token(query.get("access_token"))
        if method == "agent/get":
            return self.world.describe(query.get("agentid"))
        if method == "media/upload":
            media = (await request.post()).get("media")
            if not hasattr(media, "file"):
                raise Refused(41005, "media data missing")
            return self.world.upload(query.get("type"), File(media.filename, media.content_type, media.file.read()))
        if method == "media/get":
            return self.world.file(query.get("media_id"))
        try:
            given = json.loads(await request.read())
        except ValueError:
            raise Refused(47001, "data format error") from None
        entry["user"] = given.get("touser")
        entry["content"] = (given.get("text") or {}).get("content")
        return self.world.send(given)

    def fault(self, method):
        for fault in self.faults:
            if fault["method"] in ("*", method):
                fault["times"] -= 1
                if fault["times"] <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def faulty(self, fault):
        if "errcode" in fault:
            return web.json_response(Refused(fault["errcode"], fault.get("body") or "fault").body())
        return web.Response(status=fault["status"], text=fault.get("body") or "", content_type="text/html")

    async def cut(self, request, file, headers):
        """A file that ends in its middle."""
        answer = web.StreamResponse(headers=headers | {"Content-Length": str(2 * len(file.content))})
        await answer.prepare(request)
        await answer.write(file.content)
        request.transport.abort()
        return answer

    async def leave(self, request, fault):
        if fault["action"] == "hang":
            await asyncio.sleep(LONGEST_HANG)
        if request.transport:
            request.transport.abort()
        return web.Response()
