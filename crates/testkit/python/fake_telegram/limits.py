"""How much a bot may write: per bot, per chat, per group."""

import math
import time
from collections import deque

from .refusal import too_many

DEFAULTS = {
    "enabled": True,
    # Messages of one bot to everybody, in any second.
    "bot_per_second": 30,
    # A private chat takes one a second, and a few at once after a pause.
    "chat_per_second": 1.0,
    "chat_burst": 3,
    # A group or channel takes so many in any minute.
    "group_per_minute": 20,
}


class Limits:
    def __init__(self, settings):
        self.settings = {**DEFAULTS, **settings}
        self.clear()

    def change(self, settings):
        self.settings.update(settings)
        self.clear()

    def clear(self):
        self.bot = deque()
        self.groups = {}
        self.chats = {}

    def spend(self, chat_id, private):
        """Takes one message from the budgets, or refuses with the time to wait."""
        if not self.settings["enabled"]:
            return
        now = time.monotonic()
        wait = window_wait(self.bot, now, 1.0, self.settings["bot_per_second"])
        if private:
            tokens = self.tokens(chat_id, now)
            if tokens < 1.0:
                wait = max(wait, (1.0 - tokens) / self.settings["chat_per_second"])
        else:
            group = self.groups.setdefault(chat_id, deque())
            wait = max(wait, window_wait(group, now, 60.0, self.settings["group_per_minute"]))
        if wait > 0:
            raise too_many(max(1, math.ceil(wait)))
        self.bot.append(now)
        if private:
            self.chats[chat_id] = (self.tokens(chat_id, now) - 1.0, now)
        else:
            self.groups[chat_id].append(now)

    def tokens(self, chat_id, now):
        burst = float(self.settings["chat_burst"])
        left, at = self.chats.get(chat_id, (burst, now))
        return min(burst, left + (now - at) * self.settings["chat_per_second"])


def window_wait(times, now, span, most):
    """How long until a sliding window has room again."""
    while times and times[0] <= now - span:
        times.popleft()
    return times[0] + span - now if len(times) >= most else 0.0
