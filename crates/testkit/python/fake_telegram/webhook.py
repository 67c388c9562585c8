"""Updates pushed to the bot's own address, one after the other."""

import asyncio
import json

import aiohttp

# How long the bot may take with one update.
PATIENCE = 10
# A refused update comes again after a growing pause; the real ones are longer.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Webhook:
    def __init__(self, world, call):
        self.world, self.call = world, call
        self.url, self.secret, self.connections = "", None, 40
        self.error = None
        self.task = None

    def start(self, url, secret, connections):
        self.stop()
        self.url, self.secret, self.connections, self.error = url, secret, connections, None
        self.task = asyncio.get_running_loop().create_task(self.deliver())

    def stop(self):
        if self.task:
            self.task.cancel()
        self.url, self.task = "", None

    def info(self):
        raw = {
            "url": self.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self.world.updates),
        }
        if self.url:
            raw |= {"max_connections": self.connections, "ip_address": "127.0.0.1"}
        if self.url and self.error:
            raw |= {"last_error_date": self.error[0], "last_error_message": self.error[1]}
        if self.world.allowed is not None:
            raw["allowed_updates"] = sorted(self.world.allowed)
        return raw

    async def deliver(self):
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        pause = FIRST_PAUSE
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                waiting = self.world.fetch(0, 1)
                if not waiting:
                    await self.world.arrived.wait()
                elif await self.offer(session, waiting[0]):
                    pause = FIRST_PAUSE
                else:
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)

    async def offer(self, session, update):
        """Posts one update; it is done with when the answer is a success."""
        headers = {"Content-Type": "application/json"}
        if self.secret:
            headers["X-Telegram-Bot-Api-Secret-Token"] = self.secret
        try:
            async with session.post(self.url, data=json.dumps(update), headers=headers) as answer:
                body = await answer.read()
                problem = f"Wrong response from the webhook: {answer.status} {answer.reason}"
                taken = 200 <= answer.status < 300
        except TimeoutError:
            taken, problem = False, "Read timeout expired"
        except aiohttp.ClientError:
            taken, problem = False, "Connection refused"
        if not taken:
            self.error = (self.world.now(), problem)
            return False
        self.world.fetch(update["update_id"] + 1, 1)
        await self.answer_in_place(body)
        return True

    async def answer_in_place(self, body):
        """A bot may answer with a call instead of making one; nobody hears what became of it."""
        try:
            given = json.loads(body)
            method = given.pop("method")
            await self.call(method, given)
        except Exception:  # noqa: BLE001
            return
