"""Starts the stand-in: python -m fake_discord ['{"option": value}']

Prints one line when it is ready, {"url", "gateway_url", "token", "bot_id",
"public_key"}, and ends when the process that started it does.
"""

import asyncio
import json
import os
import socket
import sys

from aiohttp import web

from .control import Control
from .gateway import Gateway
from .interactions import Interactions
from .options import Options
from .rest import Rest
from .world import World

#: Seconds between looks at whether the owner still lives.
OWNER_CHECK = 0.5

#: Bytes of a request; Discord's own limit.
REQUEST_LIMIT = 25 << 20


def application(world, gateway, rest, control):
    app = web.Application(client_max_size=REQUEST_LIMIT)
    app.router.add_get("/", gateway.handle)
    app.router.add_route("*", "/api/v10/{tail:.*}", rest.handle)
    app.router.add_route("*", "/_fake/{tail:.*}", control.handle)

    async def attachment(request):
        data = world.backend.cdn.get(f"http://{gateway.address}{request.path}")
        if data is None or world.has_ended(request.query):
            return web.Response(status=404, text="This content is no longer available.")
        return await rest.spoil_file(request, data) or web.Response(body=data)

    app.router.add_get("/attachments/{tail:.*}", attachment)
    app.router.add_get("/stickers/{tail:.*}", attachment)
    return app


async def serve():
    owner = os.getppid()
    options = Options()
    options.change(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    world = World(options, address)
    gateway = Gateway(world, options, address)
    interactions = Interactions(world, gateway, options)
    rest = Rest(world, gateway, interactions, options)
    app = application(world, gateway, rest, Control(world, gateway, rest, interactions, options))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    ready = {
        "url": f"http://{address}", "gateway_url": gateway.url,
        "token": options.token, "bot_id": str(world.bot.id),
        "public_key": interactions.public_key,
    }
    print(json.dumps(ready), flush=True)
    while os.getppid() == owner:
        await asyncio.sleep(OWNER_CHECK)


if __name__ == "__main__":
    asyncio.run(serve())
