"""An interactions endpoint on the judges' own parts: python interactions_endpoint.py API_URL TOKEN PUBLIC_KEY

Signatures are discord-interactions' affair, payloads discord.py's. Prints
{"url"} when it listens, then one JSON line for each interaction it accepted or
refused. What it answers is the command's name:

  /defer       deferred, then the original is edited and a follow-up sent
  /whisper     deferred for one person's eyes, completed by a follow-up
  /now         a message at once
  /slow        nothing for longer than Discord waits
  /raw         the option `answer` as it stands (JSON), with the option `status` and `media`
A component gets a deferred update and an edit of its message; a field that is
filled in gets two suggestions.
"""

import asyncio
import contextlib
import io
import json
import sys

import aiohttp
import discord
from aiohttp import web
from discord_interactions import verify_key

API_URL, TOKEN, PUBLIC_KEY = sys.argv[1:4]

discord.http.Route.BASE = f"{API_URL}/api/v10"

#: Discord waits three seconds.
TOO_LONG = 3.5

USER_AGENT = {"User-Agent": "DiscordBot (https://example.test, 1)"}


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


def is_genuine(request, body):
    signature = request.headers.get("X-Signature-Ed25519", "")
    timestamp = request.headers.get("X-Signature-Timestamp", "")
    # It prints its complaints.
    with contextlib.redirect_stdout(io.StringIO()):
        return verify_key(body, signature, timestamp, PUBLIC_KEY)


class Endpoint:
    def __init__(self):
        # Never connected; it lends discord.py's reading of a payload.
        self.client = discord.Client(intents=discord.Intents.none())
        self.tasks = set()

    async def handle(self, request):
        body = await request.read()
        if not is_genuine(request, body):
            tell("refused")
            return web.Response(status=401, text="invalid request signature")
        payload = json.loads(body)
        if payload["type"] == 1:
            return web.json_response({"type": 1})
        seen = discord.Interaction(data=payload, state=self.client._connection)
        tell(
            "interaction", id=str(seen.id), kind=seen.type.name, user=seen.user.name, channel=str(seen.channel_id),
            guild=str(seen.guild_id) if seen.guild_id else None, locale=seen.locale.value,
            permissions=seen.permissions.value, app_permissions=seen.app_permissions.value,
            context=seen.context.dm_channel, limit=seen.filesize_limit, expired=seen.is_expired(),
            options={option["name"]: option["value"] for option in payload["data"].get("options", [])},
        )
        return await self.answer(payload)

    async def answer(self, payload):
        if payload["type"] == 4:
            return web.json_response({"type": 8, "data": {"choices": [{"name": "one", "value": "1"}]}})
        if payload["type"] == 3:
            self.later(self.edit(payload, "pressed"))
            return web.json_response({"type": 6})
        name = payload["data"].get("name")
        if name == "slow":
            await asyncio.sleep(TOO_LONG)
        if name == "now":
            return web.json_response({"type": 4, "data": {"content": "at once"}})
        if name == "raw":
            given = {option["name"]: option["value"] for option in payload["data"]["options"]}
            media = given.get("media", "application/json")
            return web.Response(status=given.get("status", 200), text=given["answer"], content_type=media)
        if name == "whisper":
            self.later(self.follow(payload, "for you"))
            return web.json_response({"type": 5, "data": {"flags": 64}})
        if name == "defer":
            self.later(self.edit(payload, "done", "and more"))
        return web.json_response({"type": 5})

    def later(self, work):
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def edit(self, payload, content, *more):
        async with aiohttp.ClientSession(headers=USER_AGENT) as http:
            base = f"{API_URL}/api/v10/webhooks/{payload['application_id']}/{payload['token']}"
            while True:
                async with http.patch(f"{base}/messages/@original", json={"content": content}) as answer:
                    # The answer may still be on its way.
                    if answer.status != 404:
                        break
                await asyncio.sleep(0.05)
            for text in more:
                await http.post(base, json={"content": text})

    async def follow(self, payload, content):
        async with aiohttp.ClientSession(headers=USER_AGENT) as http:
            url = f"{API_URL}/api/v10/webhooks/{payload['application_id']}/{payload['token']}"
            while (await http.post(url, json={"content": content})).status == 404:
                await asyncio.sleep(0.05)


async def main():
    endpoint = Endpoint()
    await endpoint.client.login(TOKEN)
    app = web.Application()
    app.router.add_post("/", endpoint.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    tell("ready", url=f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/")
    await asyncio.Event().wait()


asyncio.run(main())
