"""How tests drive the stand-in: JSON under /_fake/, no credential. Ids are strings.

Making (POST; the answer has the new `id`)
  /_fake/user      {name, global_name?, bot?}
  /_fake/guild     {name, shard?: [number, count], bot?: false}    also `role`: the bot's managed role
                   (bot: false is a guild the bot is not in)
  /_fake/channel   {guild, name, topic?, parent?, kind?: text|voice|category|news|forum, hidden?}
  /_fake/thread    {parent, name, owner, message?, private?, invite_bot?}
  /_fake/dm        {user}
  /_fake/role      {guild, name, bot?: a bot's user id, whose managed role it is}
  /_fake/say       {channel, author, content, mention_bot?, mention_role?, reply_to?, ping?: false, webhook?,
                    attachments?: [{filename, text?|size?|content?, content_type?, duration?,
                    ended?: its link is good no more}],
                    count?, start?, every_ms?}
                   with count, `{n}` in the content is the number and the answer has `ids`

Changing (POST)
  /_fake/member    {guild, user, nick?}      makes somebody a member
  /_fake/edit      {channel, message, content}
  /_fake/delete    {channel, message}
  /_fake/archive   {thread, archived?, locked?}
  /_fake/rename    {channel, name?, topic?, parent?}
  /_fake/remove    {channel}
  /_fake/hide      {channel, hidden}         takes a channel out of the bot's sight
  /_fake/forbid    {channel, what}           takes a permission of the bot away, by discord.py's name; null
                   gives all back
  /_fake/kick      {guild}                   the bot is thrown out
  /_fake/options   any of options.py         while it runs

Interactions: the head of orders.py

Faults (POST)
  /_fake/gateway/close           {code?}     without a code the connections are cut
  /_fake/gateway/reconnect       {}          op 7
  /_fake/gateway/invalidate      {resumable} op 9
  /_fake/gateway/heartbeat       {}          op 1, which a client answers at once
  /_fake/gateway/zombie          {mute?}     no more acknowledgements on the sockets of now; mute: nothing at all
  /_fake/gateway/refuse          {seconds, rest?}  new connections (and REST calls) are cut
  /_fake/gateway/refuse_resumes  {count, code?}    op 9 false, or a close code
  /_fake/gateway/refuse_greetings {count, code?}   closed, or without a word, before the greeting
  /_fake/gateway/end_early       {count}     closed with 4000 right after READY or RESUMED
  /_fake/gateway/expire          {}          sessions without a socket end now
  /_fake/emit      {event, payload, guild?}  an event as it is given
  /_fake/mangle    {event, drop?: [path], set?: {path: value}, count?}  spoils the next such events
  /_fake/fault     {path: regex, method?, count?, skip?, delay?, perform?: do the request first,
                    how?: status|hang|drop|delay, status?, json? | html?, headers?, seconds?}
                   also of /attachments/…, where it may be `cut` as well
  /_fake/fault/clear {}

Reading (GET)
  /_fake/messages?channel=   [{id, author, own, type, content, edits, reactions: the bot's, nonce, allowed_mentions,
                               reference, attachments, loading, ephemeral, interaction}]
  /_fake/threads?channel=    [{id, name, owner, own}]: the threads below a channel, oldest first
  /_fake/log?since=          [{n, at, method, path, query, status, fault, channel, parent, guild, person, ids,
                               content, user_agent}]: every request, the places it names in `ids`
  /_fake/state               counters of the gateway and the API, sessions with their highest reported sequence
"""

import asyncio
import sys
import time
import traceback

from aiohttp import web
from simcord.backend.errors import BackendError, SetupError

from .orders import InteractionOrders

#: Messages written before others get a turn, when many are asked for.
BURST = 50


def created(thing, **more):
    return {"id": str(thing.id), **more}


class Control:
    def __init__(self, world, gateway, rest, interactions, options):
        self.world, self.gateway, self.rest, self.options = world, gateway, rest, options
        self.backend = world.backend
        self.orders = InteractionOrders(world, interactions)

    async def handle(self, request):
        name = request.match_info["tail"].replace("/", "_")
        name = f"{request.method.lower()}_{name}"
        handler = getattr(self, name, None) or getattr(self.orders, name, None)
        if handler is None:
            return web.json_response({"error": f"no {request.method} {request.path}"}, status=404)
        try:
            asked = await request.json() if request.method == "POST" and request.can_read_body else {}
            answer = handler(dict(request.query) if request.method == "GET" else asked)
            if asyncio.iscoroutine(answer):
                answer = await answer
        except (BackendError, SetupError, KeyError, ValueError, TypeError, AttributeError) as error:
            traceback.print_exc(file=sys.stderr)
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({} if answer is None else answer)

    # ------------------------------------------------------------- making

    def post_user(self, ask):
        return created(self.world.make_user(ask))

    def post_guild(self, ask):
        guild, role = self.world.make_guild(ask)
        return created(guild, role=str(role.id), owner=str(guild.owner_id))

    def post_channel(self, ask):
        return created(self.world.make_channel(ask))

    def post_thread(self, ask):
        return created(self.world.make_thread(ask))

    def post_dm(self, ask):
        return created(self.backend.get_dm_channel(int(ask["user"])))

    def post_role(self, ask):
        return created(self.world.make_role(ask))

    async def post_say(self, ask):
        if "count" not in ask:
            return created(self.world.say(ask))
        ids, start = [], int(ask.get("start", 0))
        for number in range(start, start + int(ask["count"])):
            ids.append(str(self.world.say(ask, number).id))
            if ask.get("every_ms"):
                await asyncio.sleep(ask["every_ms"] / 1000)
            elif number % BURST == 0:
                await asyncio.sleep(0)
        return {"ids": ids}

    # ----------------------------------------------------------- changing

    def post_member(self, ask):
        self.backend.add_member(int(ask["guild"]), int(ask["user"]), nick=ask.get("nick"), announce=True)

    def post_edit(self, ask):
        self.backend.edit_message(int(ask["channel"]), int(ask["message"]), {"content": ask["content"]})

    def post_delete(self, ask):
        self.backend.delete_message(int(ask["channel"]), int(ask["message"]))

    def post_archive(self, ask):
        self.world.archive(ask)

    def post_rename(self, ask):
        changes = {name: ask[name] for name in ("name", "topic") if name in ask}
        if "parent" in ask:
            changes["parent_id"] = int(ask["parent"]) if ask["parent"] else None
        self.backend.edit_channel(int(ask["channel"]), changes)

    def post_remove(self, ask):
        self.backend.delete_channel(int(ask["channel"]))

    def post_hide(self, ask):
        self.world.hide(int(ask["channel"]), ask["hidden"])

    def post_forbid(self, ask):
        self.world.forbid(int(ask["channel"]), ask["what"])

    def post_kick(self, ask):
        self.world.leave(self.backend.get_guild(int(ask["guild"])))

    def post_options(self, ask):
        self.options.change(ask)

    # ------------------------------------------------------------- faults

    def post_gateway_close(self, ask):
        self.gateway.close_all(ask.get("code"))

    def post_gateway_reconnect(self, _ask):
        self.gateway.ask_reconnect()

    def post_gateway_invalidate(self, ask):
        self.gateway.invalidate(bool(ask["resumable"]))

    def post_gateway_heartbeat(self, _ask):
        self.gateway.ask_heartbeat()

    def post_gateway_zombie(self, ask):
        self.gateway.zombify(bool(ask.get("mute")))

    def post_gateway_refuse(self, ask):
        self.gateway.refused_until = time.monotonic() + float(ask["seconds"])
        self.gateway.refuses_rest = bool(ask.get("rest"))

    def post_gateway_refuse_resumes(self, ask):
        self.gateway.resume_refusals = [ask.get("code")] * int(ask["count"])

    def post_gateway_refuse_greetings(self, ask):
        self.gateway.greeting_refusals = [ask.get("code")] * int(ask["count"])

    def post_gateway_end_early(self, ask):
        self.gateway.short_lives = int(ask["count"])

    def post_gateway_expire(self, _ask):
        self.gateway.sessions.expire()

    def post_emit(self, ask):
        guild = ask.get("guild")
        self.gateway.sessions.emit(ask["event"], ask["payload"], int(guild) if guild else None)

    def post_mangle(self, ask):
        self.gateway.sessions.mangles.append({**ask, "count": int(ask.get("count", 1))})

    def post_fault(self, ask):
        self.rest.faults.append(dict(ask))

    def post_fault_clear(self, _ask):
        self.rest.faults.clear()
        self.gateway.sessions.mangles.clear()
        self.gateway.resume_refusals.clear()
        self.gateway.greeting_refusals.clear()
        self.gateway.short_lives = 0
        self.gateway.refused_until = 0.0

    # ------------------------------------------------------------ reading

    def get_messages(self, query):
        return self.world.messages(int(query["channel"]))

    def get_threads(self, query):
        return self.world.threads(int(query["channel"]))

    def get_log(self, query):
        since = int(query.get("since", 0))
        return [entry for entry in self.rest.log if entry["n"] > since]

    def get_state(self, _query):
        return {"gateway": self.gateway.shown(), "rest": self.rest.shown()}
