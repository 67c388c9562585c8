"""A stand-in for WeCom: its API for apps, and callbacks that wechatpy signs and encrypts.

Prints one line of JSON when it is ready ({"api", "control", "corp_id", "agent_id", "secret", "token",
"aes_key"}), then serves until it is killed or its parent is gone. Apps call `<api>/cgi-bin/<method>`.

The control side is JSON without authentication, at `<control>/_fake/…`. POST unless said otherwise; what
is refused is a 400 with the reason:

  callback   {url}: where the app's callbacks go; tried with an echo first, as the console does when one
             saves → {status, body, expected, content_type}
  person     {id, visible?, licensed?}: a member of the company
  say        {from, text?, type?, fields?, id?, agent?, count?} → [{id, attempts: [{status, ms, body}]}];
             posted again up to three times unless the answer is a 200; "{n}" in the text counts
  event      {from, event, key?, fields?, agent?, at?} → the same
  post       {plain, timestamp?, nonce?, signature?, token?, key?, corp_id?, body?, times?}: anything,
             also what WeCom would not post → {attempts}; body replaces the whole request body
  expire     the access token ends now; revoke the same, and it is said to be no token at all
  fault      {method, times?, action?, errcode?, status?, body?}; actions: answer, hang, drop, cut (a file),
             perform_and_drop
  limits     {per_minute?, per_hour?}
  GET messages?user=   what a member has in the app: {msgid, content, at}
  GET state            tokens fetched, and which, calls by method and errcode, messages dropped for a limit
  GET log              every call: {method, errcode, at, user, content}
"""

import argparse
import asyncio
import json
import os
import sys

from .control import Control
from .front import Front
from .world import World

# How often it is checked whether the parent is still there.
PARENT_CHECK = 0.5


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corp-id", default="wwfa4ec0mpany00001")
    parser.add_argument("--agent-id", type=int, default=1000002)
    parser.add_argument("--secret", default="fake-secret-of-the-app-0123456789")
    parser.add_argument("--token", default="FakeCallbackToken")
    parser.add_argument("--aes-key", default="")
    parser.add_argument("--token-life", type=int, default=7200)
    return parser.parse_args()


async def main():
    parent = os.getppid()
    world = World(options())
    front = Front(world, Control(world))
    api, control = await front.open(), await front.open()
    ready = {
        "api": f"http://127.0.0.1:{api}",
        "control": f"http://127.0.0.1:{control}",
        "corp_id": world.corp_id,
        "agent_id": world.agent_id,
        "secret": world.secret,
        "token": world.token,
        "aes_key": world.aes_key,
    }
    print(json.dumps(ready), flush=True)
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_CHECK)
    sys.exit(0)


asyncio.run(main())
