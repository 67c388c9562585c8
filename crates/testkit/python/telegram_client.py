"""A bot on aiogram, as a client of the Bot API that nobody here wrote.

  telegram_client.py API_BASE TOKEN

Prints one line of JSON with its control address, then does what it is told by POST:

  /call     {"method", "arguments"}: a method of aiogram's Bot by its Python name → {"result"} or
            {"refused": {"class", "message", "retry_after"?, "migrate_to_chat_id"?}}
  /poll     starts the dispatcher's polling; /stop ends it
  /webhook  {"secret", "told"}: serves aiogram's webhook handler with one secret, sets it with another
  /seen     what the handlers were given: [{"kind", "event"}]

Whoever writes "echo …" gets it back as a reply, and whoever writes "ask …" with two buttons, "Yes" and
"No". The press of a button is answered with its data, which then stands below the message instead of them.
"""

import asyncio
import json
import os
import sys

from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import AiogramError
from aiogram.types import TelegramObject
from aiogram.utils.keyboard import InlineKeyboardBuilder
from aiogram.webhook.aiohttp_server import SimpleRequestHandler
from aiohttp import web

SEEN = []
TASKS = {}
KINDS = ("message", "edited_message", "channel_post", "edited_channel_post", "my_chat_member", "callback_query")


def plain(value):
    if isinstance(value, TelegramObject):
        return value.model_dump(mode="json", exclude_none=True, by_alias=True)
    return [plain(item) for item in value] if isinstance(value, list) else value


def yes_or_no():
    buttons = InlineKeyboardBuilder()
    buttons.button(text="Yes", callback_data="said yes")
    buttons.button(text="No", callback_data="said no")
    return buttons.as_markup()


def dispatcher():
    made = Dispatcher()

    def watch(kind):
        async def handler(event):
            SEEN.append({"kind": kind, "event": plain(event)})
            if kind == "message" and (event.text or "").startswith("echo "):
                await event.reply(event.text.removeprefix("echo "))
            if kind == "message" and (event.text or "").startswith("ask "):
                await event.answer(event.text.removeprefix("ask "), reply_markup=yes_or_no())
            if kind == "callback_query":
                await event.answer(event.data)
                await event.message.edit_text(f"{event.message.text}\n{event.data}")

        getattr(made, kind).register(handler)

    for kind in KINDS:
        watch(kind)
    return made


async def call(request):
    ask = await request.json()
    try:
        result = await getattr(request.app["bot"], ask["method"])(**ask["arguments"])
    except AiogramError as error:
        refused = {"class": type(error).__name__, "message": getattr(error, "message", None) or str(error)}
        for name in ("retry_after", "migrate_to_chat_id"):
            refused[name] = getattr(error, name, None)
        return web.json_response({"refused": refused})
    return web.json_response({"result": plain(result)})


async def poll(request):
    bot, chosen = request.app["bot"], request.app["dispatcher"]
    running = chosen.start_polling(bot, handle_signals=False, close_bot_session=False, polling_timeout=5)
    TASKS["poll"] = asyncio.create_task(running)
    return web.json_response({})


async def stop(request):
    await request.app["dispatcher"].stop_polling()
    await TASKS.pop("poll")
    return web.json_response({})


async def webhook(request):
    ask = await request.json()
    if runner := TASKS.pop("webhook", None):
        await runner.cleanup()
    app = web.Application()
    bot = Bot(request.app["bot"].token, session=AiohttpSession(api=request.app["server"]))
    handler = SimpleRequestHandler(request.app["dispatcher"], bot, secret_token=ask["secret"])
    handler.register(app, path="/hook")
    runner = TASKS["webhook"] = web.AppRunner(app)
    port = await listen(runner)
    await request.app["bot"].set_webhook(f"http://127.0.0.1:{port}/hook", secret_token=ask["told"])
    return web.json_response({})


async def seen(_request):
    return web.json_response(SEEN)


async def listen(runner):
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner.addresses[0][1]


async def main():
    parent = os.getppid()
    server = TelegramAPIServer.from_base(sys.argv[1])
    app = web.Application()
    app["server"] = server
    app["bot"] = Bot(sys.argv[2], session=AiohttpSession(api=server))
    app["dispatcher"] = dispatcher()
    for handler in (call, poll, stop, webhook, seen):
        app.router.add_post(f"/{handler.__name__}", handler)
    port = await listen(web.AppRunner(app))
    print(json.dumps({"control": f"http://127.0.0.1:{port}"}), flush=True)
    while os.getppid() == parent:
        await asyncio.sleep(0.5)
    sys.exit(0)


asyncio.run(main())
