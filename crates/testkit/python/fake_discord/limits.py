"""Rate limits as Discord gives them: a window per route and channel, one for all.

A window opens with its first request. The headers tell the truth, rounded so
that who waits exactly as told is let in.
"""

import collections
import hashlib
import math
import re
import time

#: Seconds and number base of the edge's ban on refused requests.
INVALID_WINDOW = 600.0

#: Path parts whose id has windows of its own.
MAJOR = ("channels", "guilds", "webhooks")

#: Path parts whose id is followed by a token.
TOKENED = ("webhooks", "interactions")

#: Routes that the limit over all routes does not count.
UNCOUNTED = re.compile(r"^/(interactions|webhooks)/")


class Window:
    def __init__(self, size, seconds):
        self.size, self.seconds = size, seconds
        self.opened = -math.inf
        self.used = 0

    def left(self):
        return max(0.0, self.opened + self.seconds - time.monotonic())

    def take(self):
        """Whether one more request fits."""
        if self.left() == 0:
            self.opened, self.used = time.monotonic(), 0
        if self.used >= self.size:
            return False
        self.used += 1
        return True


class Limits:
    def __init__(self, options):
        self.options = options
        self.windows = {}
        self.all = Window(options.limit_global, 1.0)
        self.invalid = collections.deque()
        self.given = collections.Counter()

    def check(self, method, path):
        """(refusal or None, headers of the answer)."""
        if not self.options.limits:
            return None, {}
        self.all.size = self.options.limit_global
        if not UNCOUNTED.match(path) and not self.all.take():
            return self._refusal(self.all, "global"), {"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global"}
        template, major = shape(path)
        window = self._window(method, template, major)
        fits = window.take()
        headers = {
            "X-RateLimit-Limit": str(int(window.size)),
            "X-RateLimit-Remaining": str(int(window.size - window.used)),
            "X-RateLimit-Reset": f"{time.time() + window.left() + 0.001:.3f}",
            "X-RateLimit-Reset-After": f"{window.left() + 0.001:.3f}",
            "X-RateLimit-Bucket": hashlib.md5(f"{method} {template}".encode()).hexdigest(),
        }
        if fits:
            return None, headers
        return self._refusal(window, "user"), {**headers, "X-RateLimit-Scope": "user"}

    def _window(self, method, template, major):
        size, seconds = self.options.limit_other
        if (method, template) == ("POST", "/channels/:id/messages"):
            size, seconds = self.options.limit_post
        elif (method, template) == ("PATCH", "/channels/:id/messages/:id"):
            size, seconds = self.options.limit_patch
        elif template.endswith("/reactions/:emoji/@me"):
            size, seconds = self.options.limit_reaction
        elif template.startswith("/webhooks/"):
            size, seconds = self.options.limit_webhook
        key = (method, template, major)
        window = self.windows.get(key)
        if window is None or (window.size, window.seconds) != (size, seconds):
            window = self.windows[key] = Window(size, seconds)
        return window

    def _refusal(self, window, scope):
        self.given[scope] += 1
        wait = math.ceil((window.left() + 0.001) * 1000) / 1000
        return {"message": "You are being rate limited.", "retry_after": wait, "global": scope == "global"}

    def note(self, status):
        """Counts the answers that lead to a ban."""
        if status in (401, 403, 429):
            self.invalid.append(time.monotonic())

    def is_banned(self):
        while self.invalid and self.invalid[0] < time.monotonic() - INVALID_WINDOW:
            self.invalid.popleft()
        return len(self.invalid) > self.options.limit_invalid


def shape(path):
    """The path's pattern, and the id that has windows of its own."""
    parts = path.strip("/").split("/")
    major = parts[1] if len(parts) > 1 and parts[0] in MAJOR else None
    if parts[0] in TOKENED and len(parts) > 2:
        # The token is as good as an id, and no part of the pattern.
        major = "/".join(parts[1:3])
        parts[2] = ":token"
    if parts[4:5] == ["reactions"] and len(parts) > 5:
        parts[5] = ":emoji"
    pattern = [":id" if re.fullmatch(r"\d{5,}", part) else part for part in parts]
    return "/" + "/".join(pattern), major
