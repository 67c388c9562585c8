"""One company, one app, its members, and what they have in it."""

import secrets
import string
import time
from collections import deque
from typing import NamedTuple

# Bytes of text that a message holds; the rest is cut off without a word.
MAX_BYTES = 2048
# How long two messages that say the same count as one, if that is asked for.
DUPLICATES_FOR = 1800


# Bytes of a file, by its sort.
LARGEST = {"image": 10 << 20, "voice": 2 << 20, "video": 10 << 20, "file": 20 << 20}


class Refused(Exception):
    """What WeCom answers instead of doing something: a code, and words with a hint behind them."""

    def __init__(self, code, words):
        super().__init__(words)
        self.code, self.words = code, words

    def body(self):
        hint = f"hint: [{int(time.time())}_1_{secrets.token_hex(16)}], from ip: 127.0.0.1"
        more = f"more info at https://open.work.weixin.qq.com/devtool/query?e={self.code}"
        return {"errcode": self.code, "errmsg": f"{self.words}, {hint}, {more}"}


class File(NamedTuple):
    """Something that a person sent besides text."""

    name: str
    media_type: str
    content: bytes


class World:
    def __init__(self, options):
        self.corp_id, self.agent_id = options.corp_id, options.agent_id
        self.secret, self.token = options.secret, options.token
        letters = string.ascii_letters + string.digits
        self.aes_key = options.aes_key or "".join(secrets.choice(letters) for _ in range(43))
        self.token_life = options.token_life
        self.access = None
        self.fetched, self.tokens = 0, []
        self.people, self.messages, self.sent_at = {}, {}, {}
        self.dropped = 0
        self.per_minute, self.per_hour = 30, 1000
        self.callback = None
        self.files = {}

    # --- the access token ---

    def fetch_token(self, corp_id, secret):
        if not corp_id:
            raise Refused(41002, "corpid missing")
        if not secret:
            raise Refused(41004, "corpsecret missing")
        if corp_id != self.corp_id:
            raise Refused(40013, "invalid corpid")
        if secret != self.secret:
            raise Refused(40001, "invalid credential")
        self.fetched += 1
        # The same one is given out while it is good.
        if not self.access or self.access[1] <= time.time():
            self.access = (secrets.token_urlsafe(160), time.time() + self.token_life, 42001)
            self.tokens.append(self.access[0])
        token, until, _ = self.access
        left = max(1, int(until - time.time()))
        return {"errcode": 0, "errmsg": "ok", "access_token": token, "expires_in": left}

    def check_token(self, token):
        if not token:
            raise Refused(41001, "access_token missing")
        if not self.access or token != self.access[0]:
            raise Refused(40014, "invalid access_token")
        if self.access[1] <= time.time():
            raise Refused(self.access[2], "access_token expired")

    def end_token(self, code):
        if self.access:
            self.access = (self.access[0], 0, code)

    # --- files ---

    def keep(self, file):
        media_id = secrets.token_urlsafe(48)
        self.files[media_id] = file
        return media_id

    def upload(self, kind, file):
        if kind not in LARGEST:
            raise Refused(40004, "invalid media type")
        if not 5 < len(file.content) <= LARGEST[kind]:
            raise Refused(40006, "invalid media size")
        ok = {"errcode": 0, "errmsg": "ok", "type": kind, "created_at": str(int(time.time()))}
        return ok | {"media_id": self.keep(file)}

    def file(self, media_id):
        if not media_id:
            raise Refused(41006, "media_id missing")
        if media_id not in self.files:
            raise Refused(40007, "invalid media_id")
        return self.files[media_id]

    # --- messages ---

    def send(self, given):
        if str(given.get("agentid")) != str(self.agent_id):
            raise Refused(40056, "invalid agentid")
        kind = given.get("msgtype")
        if kind not in ("text", *LARGEST):
            raise Refused(40008, "invalid message type")
        content = (given.get(kind) or {}).get("content" if kind == "text" else "media_id")
        if not isinstance(content, str) or not content:
            raise Refused(44004, "empty content")
        if kind != "text":
            self.file(content)
        named = [name for name in str(given.get("touser") or "").split("|") if name]
        if not named:
            raise Refused(40031, "invalid userid list")
        everybody = named == ["@all"]
        known = {name.lower(): name for name in self.people}
        people = list(self.people) if everybody else [known[n.lower()] for n in named if n.lower() in known]
        visible = [name for name in people if self.people[name]["visible"]]
        invalid = [] if everybody else [n for n in named if known.get(n.lower()) not in visible]
        if not visible:
            raise Refused(81013, "user & party & tag all invalid")
        unlicensed = [name for name in visible if not self.people[name]["licensed"]]
        msgid = secrets.token_urlsafe(48)
        for name in visible:
            if name not in unlicensed:
                self.put(name, content, msgid, given)
        answer = {"errcode": 0, "errmsg": "ok", "invaliduser": "|".join(invalid), "msgid": msgid}
        if unlicensed:
            answer["unlicenseduser"] = "|".join(unlicensed)
        return answer

    def put(self, name, content, msgid, given):
        now = time.time()
        sent = self.sent_at.setdefault(name, deque())
        while sent and sent[0] <= now - 3600:
            sent.popleft()
        in_minute = sum(1 for at in sent if at > now - 60)
        if len(sent) >= self.per_hour or in_minute >= self.per_minute:
            # Nobody is told.
            self.dropped += 1
            return
        had = self.messages.setdefault(name, [])
        if given.get("enable_duplicate_check"):
            since = now - given.get("duplicate_check_interval", DUPLICATES_FOR)
            if any(message["content"] == content and message["at"] > since for message in had):
                return
        sent.append(now)
        cut = content.encode()[:MAX_BYTES].decode("utf-8", "ignore")
        had.append({"msgid": msgid, "content": cut, "cut": cut != content, "at": now, "type": given["msgtype"]})

    def describe(self, agent_id):
        if str(agent_id) != str(self.agent_id):
            raise Refused(301002, "not allow operate another agent with this accesstoken")
        people = [{"userid": name} for name, person in self.people.items() if person["visible"]]
        return {
            "errcode": 0,
            "errmsg": "ok",
            "agentid": self.agent_id,
            "name": "Angelia",
            "square_logo_url": "",
            "description": "",
            "allow_userinfos": {"user": people},
            "allow_partys": {"partyid": []},
            "allow_tags": {"tagid": []},
            "close": 0,
            "redirect_domain": "",
            "report_location_flag": 0,
            "isreportenter": 1,
            "home_url": "",
        }
