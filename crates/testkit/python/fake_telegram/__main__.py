"""A stand-in for the Telegram Bot API that real clients accept.

Prints one line of JSON when it is ready ({"api", "control", "token", "bot_id", "username"}), then
serves until it is killed or its parent is gone. Clients speak to `<api>/bot<token>/<method>` and
`<api>/file/bot<token>/<path>`. Everything it emits is held to aiogram's models, and every parameter
it is given; what they do not know is a 500 that begins with "Internal Server Error".

The control side is JSON without authentication, at `<control>/_fake/…` (and at `<api>/_fake/…`, but
not while that is down). POST unless said otherwise; what is refused is a 400 with the reason:

  user           {first_name?, last_name?, username?, language_code?, is_bot?, id?}
  private        {user, started?}: a private chat; not started means the bot may not write first
  group          {title?, members?, id?, admin?, quiet?}; quiet leaves out "the bot was added"
  supergroup     the same and {forum?, username?}
  channel        the same and {username?}
  topic          {chat, from, name?} → {thread, update_id}; close_topic {chat, thread, closed?}
  rename_topic   {chat, thread, from, name} → {update_id}; topics {chat} → {topics: [{thread, name}]}
  member         {chat, user, status}: what a person or the bot is there
  say            {chat, from?, text?, entities?, thread?, reply_to?, sender_chat?, bot_author?, forward?,
                 photo/voice/document/video/audio/animation/video_note/sticker/location/contact/venue/dice?,
                 caption?, more?, count?} → {update_id, message_id, update_ids, message_ids}; "{n}" in the
                 text is the number within the count; a file's bytes are {content: base64}; update_id is
                 null where the bot may not see it; in a channel it is a post
  edit           {chat, message, text, entities?}: a person edits; delete {chat, message}: deletes
  press          {chat, message, from, label or data} → {id, update_id}: a person presses a button of the
                 bot's; data need not be on any button; after a delete the bot gets an InaccessibleMessage
  migrate        {chat, id?, new_first?, member_updates?} → {chat, update_ids}
  block, kick    {chat, from?}: the bot is out; welcome {chat, from?}: it is back
  update         {update}: any update, also an unreadable one; gets an id unless it has one
  privacy        {on}; limits {enabled?, bot_per_second?, chat_per_second?, chat_burst?, group_per_minute?}
  token          {token}: the old one is void; clock {advance}: seconds
  fault          {method or "*", times?, chat?, action?, status?, body?, seconds?}; actions: answer (body is
                 JSON, or a text sent as HTML), hang, drop, perform_and_drop, perform_and_hang; the way to a file
                 is the method "download", with answer, hang, drop, and cut: it ends in its middle
  faults/clear   forgets them
  outage         {seconds}: accepts nothing and breaks what is open
  foreign_poller {on}: somebody else polls, every getUpdates is a 409
  GET state      confirmed offset, pending, polls, counts by method and status, 429s, 409s, violations
  GET messages?chat=[&all=1]   as they stand: id, text, entities, edits, reactions, reply_to, thread, raw
  GET actions?chat=            what "typing…" was shown
  GET drafts?chat=             every draft that was shown: draft_id, text, entities
  GET press_answer?id=         {text, show_alert} that the bot answered to a press; null until then
  GET log[?after=]             every API request: method, chat_id, chats (all it names), thread, status
"""

import argparse
import asyncio
import json
import os
import sys

from .calls import Calls
from .control import Control
from .front import Front
from .limits import Limits
from .world import World

# How often it is checked whether the parent is still there.
PARENT_CHECK = 0.5


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--token", default="7654321:AAFakeTokenForTestsOnly_0123456789abcdef")
    parser.add_argument("--name", default="Angelia")
    parser.add_argument("--username", default="angelia_test_bot")
    parser.add_argument("--first-update", type=int, default=812_340_001)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--privacy", action="store_true")
    parser.add_argument("--private-topics", action="store_true")
    parser.add_argument("--limits", type=json.loads, default={})
    parser.add_argument("--strict", action=argparse.BooleanOptionalAction, default=True)
    return parser.parse_args()


async def main():
    parent = os.getppid()
    chosen = options()
    world = World(chosen.token, chosen)
    calls = Calls(world, Limits(chosen.limits))
    front = Front(world, calls, Control(world, calls))
    api = await front.open(chosen.port, "api")
    control = await front.open(0, "control")
    ready = {
        "api": f"http://127.0.0.1:{api}",
        "control": f"http://127.0.0.1:{control}",
        "token": world.token,
        "bot_id": world.bot["id"],
        "username": world.bot["username"],
    }
    print(json.dumps(ready), flush=True)
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_CHECK)
    sys.exit(0)


asyncio.run(main())
