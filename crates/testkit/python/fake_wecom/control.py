"""What a test tells the stand-in to do, and the callbacks that follow from it."""

import asyncio
import base64
import secrets
import time
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from wechatpy.enterprise.crypto import PrpCrypto, WeChatCrypto
from xmltodict import parse, unparse

from .world import File

# How long WeCom waits for an answer, and how often it posts what got none.
PATIENCE = 5
ATTEMPTS = 3
# The pause between two attempts.
AGAIN = 0.1


class Control:
    def __init__(self, world):
        self.world = world
        self.front = None
        self.session = None
        self.last_id = 4561255354251345000

    async def handle(self, request):
        name = request.path.removeprefix("/_fake/").replace("/", "_")
        order = getattr(self, f"{request.method.lower()}_{name}", None)
        if not order:
            return web.json_response({"error": f"no {name}"}, status=404)
        try:
            given = dict(request.query) if request.method == "GET" else await request.json()
            return web.json_response(await order(given))
        except (KeyError, ValueError, TypeError) as wrong:
            return web.json_response({"error": repr(wrong)}, status=400)

    # --- what happens ---

    async def post_callback(self, given):
        self.world.callback = given["url"]
        echo = str(secrets.randbelow(10**19))
        crypto, stamp, nonce = self.crypto({}), str(int(time.time())), secrets.token_hex(5)
        encrypted = PrpCrypto(crypto.key).encrypt(echo, self.world.corp_id).decode()
        query = self.query(crypto, encrypted, stamp, nonce) | {"echostr": encrypted}
        async with self.http().get(f"{self.world.callback}?{urlencode(query)}") as answer:
            body = await answer.read()
            kind = answer.headers.get("Content-Type", "")
            return {"status": answer.status, "body": body.decode(), "expected": echo, "content_type": kind}

    async def post_person(self, given):
        self.world.people[given["id"]] = {
            "visible": given.get("visible", True),
            "licensed": given.get("licensed", True),
        }
        return {}

    async def post_say(self, given):
        said = []
        for number in range(given.get("count", 1)):
            self.last_id += 1
            message = {"MsgType": given.get("type", "text"), "MsgId": given.get("id") or str(self.last_id)}
            if "text" in given:
                message["Content"] = given["text"].replace("{n}", str(number))
            if file := given.get("file"):
                content = base64.b64decode(file["content"])
                message["MediaId"] = self.world.keep(File(file["name"], file["media_type"], content))
                if message["MsgType"] == "file":
                    message["FileName"] = file["name"]
            plain = self.message(given, message)
            attempts = await self.deliver({"plain": plain})
            said.append({"id": message["MsgId"], "media_id": message.get("MediaId"), "plain": plain, "attempts": attempts})
        return said

    async def post_event(self, given):
        event = {"MsgType": "event", "Event": given["event"], "EventKey": given.get("key", "")}
        return {"attempts": await self.deliver({"plain": self.message(given, event)})}

    async def post_post(self, given):
        attempts = []
        for _ in range(given.get("times", 1)):
            attempts += await self.deliver(given, 1)
        return {"attempts": attempts}

    # --- callbacks ---

    def message(self, given, fields):
        common = {
            "ToUserName": self.world.corp_id,
            "FromUserName": given["from"],
            "CreateTime": str(given.get("at") or int(time.time())),
            "AgentID": str(given.get("agent", self.world.agent_id)),
        }
        message = {"xml": common | fields | given.get("fields", {})}
        return unparse(message, full_document=False)

    def crypto(self, given):
        token, key = given.get("token", self.world.token), given.get("key", self.world.aes_key)
        return WeChatCrypto(token, key, given.get("corp_id", self.world.corp_id))

    def query(self, crypto, encrypted, stamp, nonce):
        from wechatpy.crypto import _get_signature

        signature = _get_signature(crypto.token, stamp, nonce, encrypted)
        return {"msg_signature": signature, "timestamp": stamp, "nonce": nonce}

    async def deliver(self, given, attempts=ATTEMPTS):
        """Posts a message as WeCom does: again, with the same signature, until it is taken."""
        crypto = self.crypto(given)
        stamp = str(given.get("timestamp") or int(time.time()))
        nonce = given.get("nonce") or secrets.token_hex(5)
        encrypted = parse(crypto.encrypt_message(given["plain"], nonce, stamp))["xml"]["Encrypt"]
        query = self.query(crypto, encrypted, stamp, nonce)
        if "signature" in given:
            query["msg_signature"] = given["signature"]
        envelope = {"ToUserName": self.world.corp_id, "AgentID": str(self.world.agent_id), "Encrypt": encrypted}
        body = given.get("body") or unparse({"xml": envelope}, full_document=False)
        made = []
        for _ in range(attempts):
            made.append(await self.offer(f"{self.world.callback}?{urlencode(query)}", body))
            if made[-1]["status"] == 200:
                break
            await asyncio.sleep(AGAIN)
        return made

    async def offer(self, url, body):
        begun = time.monotonic()
        try:
            async with self.http().post(url, data=body.encode(), headers={"Content-Type": "text/xml"}) as answer:
                text = (await answer.read()).decode()
                status = answer.status
        except (TimeoutError, aiohttp.ClientError):
            status, text = 0, ""
        return {"status": status, "body": text, "ms": round((time.monotonic() - begun) * 1000)}

    def http(self):
        if not self.session:
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE))
        return self.session

    # --- settings and faults ---

    async def post_expire(self, _given):
        self.world.end_token(42001)
        return {}

    async def post_revoke(self, _given):
        self.world.end_token(40014)
        return {}

    async def post_fault(self, given):
        self.front.faults.append({"times": 1, "action": "answer"} | given)
        return {}

    async def post_limits(self, given):
        self.world.per_minute = given.get("per_minute", self.world.per_minute)
        self.world.per_hour = given.get("per_hour", self.world.per_hour)
        return {}

    # --- what can be read ---

    async def get_messages(self, given):
        return self.world.messages.get(given["user"], [])

    async def get_file(self, given):
        file = self.world.file(given["id"])
        content = base64.b64encode(file.content).decode()
        return {"name": file.name, "media_type": file.media_type, "content": content}

    async def get_log(self, _given):
        return self.front.log

    async def get_state(self, _given):
        counts = {}
        for entry in self.front.log:
            codes = counts.setdefault(entry["method"], {})
            codes[str(entry["errcode"])] = codes.get(str(entry["errcode"]), 0) + 1
        return {"fetched": self.world.fetched, "calls": counts, "dropped": self.world.dropped, "tokens": self.world.tokens}
