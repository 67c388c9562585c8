"""Orders about interactions: JSON under /_fake/, as in control.py.

Doing (POST); each answers with the interaction as /_fake/interactions shows it
  /_fake/slash         {channel, user, name: "word" or "group word", options?: {name: value}, …}
                       a value is plain, or {"user"|"channel"|"role": id}, or {"attachment": {filename, …}}
  /_fake/press         {channel, user, message, custom_id | label, values?, …}
  /_fake/modal         {channel, user, custom_id, fields: {custom_id: text}, message?, …}
  /_fake/autocomplete  {channel, user, name, option, value?, options?, …}
  each also takes      via?: http|gateway  (http where there is an endpoint, as on Discord)
                       url?, locale?, set?: {path: value}, drop?: [path] (spoils the payload)
                       http waits for the answer, gateway does not
  /_fake/ping          {url?}  what Discord does before it takes an endpoint: one PING that must be answered
                       with PONG and one with a wrong signature that must be refused with 401;
                       {accepted, status, answer, forged_status, took_ms}
  /_fake/repost        {interaction, tamper?: body|signature|timestamp, age?: seconds, url?}
                       the same bytes once more, or changed, or signed anew as if they were older;
                       {status, body, took_ms}; the interaction stays as it was
  /_fake/slash_many    {count, within_ms?, channels, users, name?, options?, url?}   `{n}` in an option is the number
                       {ids, states, types, texts, statuses, p50_ms, p99_ms, max_ms, fired_ms, lag_ms, errors}:
                       fired_ms is how long sending took, lag_ms how far it fell behind

Reading (GET)
  /_fake/interactions?since=&id=  [{id, token, type, via, user, channel, name, state, error, status, took_ms, answer,
                       ephemeral, message, content, edits, choices, modal,
                       followups: [{id, content, ephemeral, edits}]}]
                       state: waiting, deferred, answered, failed; completing a deferred answer is its first edit
"""

import secrets

from simcord.enums import InteractionType

from .volley import Volley


def changed(text):
    """Another text of the same shape."""
    return ("1" if text[0] != "1" else "2") + text[1:]


class InteractionOrders:
    def __init__(self, world, interactions):
        self.world, self.interactions = world, interactions

    async def post_slash(self, ask):
        return await self.interactions.send(InteractionType.APPLICATION_COMMAND, ask)

    async def post_press(self, ask):
        return await self.interactions.send(InteractionType.MESSAGE_COMPONENT, {**ask, "message": ask["message"]})

    async def post_modal(self, ask):
        return await self.interactions.send(InteractionType.MODAL_SUBMIT, ask)

    async def post_autocomplete(self, ask):
        return await self.interactions.send(InteractionType.APPLICATION_COMMAND_AUTOCOMPLETE, ask)

    async def post_slash_many(self, ask):
        return await Volley(self.interactions, ask).run()

    async def post_ping(self, ask):
        url = ask.get("url") or self.interactions.options.interactions_url
        body = self.interactions.ping()
        forged = {**self.interactions.sign(body), "X-Signature-Ed25519": secrets.token_hex(64)}
        status, media, answer, took = await self.interactions.post(url, body, self.interactions.sign(body))
        forged_status, *_ = await self.interactions.post(url, body, forged)
        answered = status == 200 and media == "application/json" and self.interactions.is_pong(answer)
        return {
            "accepted": answered and forged_status == 401, "status": status,
            "answer": answer.decode("utf-8", "replace"), "forged_status": forged_status, "took_ms": took,
        }

    async def post_repost(self, ask):
        told = self.interactions.told[int(ask["interaction"])]
        body, headers, tamper = told.body, dict(told.headers), ask.get("tamper")
        if ask.get("age"):
            headers = self.interactions.sign(body, float(ask["age"]))
        if tamper == "body":
            body += b" "
        elif tamper is not None:
            name = {"signature": "X-Signature-Ed25519", "timestamp": "X-Signature-Timestamp"}[tamper]
            headers[name] = changed(headers[name])
        status, _, answer, took = await self.interactions.post(ask.get("url") or told.url, body, headers)
        return {"status": status, "body": answer.decode("utf-8", "replace"), "took_ms": took}

    def get_interactions(self, query):
        if "id" in query:
            return self.interactions.all_shown([int(query["id"])])
        since = int(query.get("since", 0))
        return self.interactions.all_shown([number for number in self.interactions.told if number > since])
