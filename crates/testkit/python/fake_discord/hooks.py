"""The routes whose path is the credential: answers to interactions, and what follows them.

simcord does the work. Here is what it is too kind about: a token that is used
before the interaction was answered, or after its quarter of an hour.
"""

import re

from simcord.backend import errors
from simcord.backend.errors import BackendError

from .forms import check_edit, check_content, empty_message
from .interactions import check_answer
from .invocation import check_commands
from .world import Note

CALLBACK = re.compile(r"/interactions/(\d+)/([^/]+)/callback")
WEBHOOK = re.compile(r"/webhooks/(\d+)/([^/]+)(?:/messages/(@original|\d+))?")
COMMANDS = re.compile(r"/applications/(\d+)(?:/guilds/\d+)?/commands")

#: What a message may consist of.
SUBSTANCE = ("content", "embeds", "components", "poll")


class Hooks:
    """Tried before the other routes; `simcord` answers a call as simcord does."""

    def __init__(self, world, interactions, simcord):
        self.world, self.interactions, self.simcord = world, interactions, simcord
        self.backend = world.backend

    def find(self, method, path):
        """Who answers this call, or None."""
        if method == "POST" and CALLBACK.fullmatch(path):
            return self.callback
        if COMMANDS.fullmatch(path):
            return self.commands
        webhook = WEBHOOK.fullmatch(path)
        if webhook and webhook[2] not in self.backend.webhook_tokens:
            return self.follow_up
        return None

    def callback(self, call):
        """The answer to an interaction that came over the gateway, or was taken with 202."""
        _method, path, body, query, files = call
        number, token = CALLBACK.fullmatch(path).groups()
        record = self.backend.interactions.get(int(number))
        if record is None or record.token != token or self._is_past(record.expires_at):
            raise errors.unknown_interaction()
        if record.responded:
            raise errors.already_acknowledged()
        if self._is_past(record.initial_response_deadline):
            raise errors.unknown_interaction()
        check_answer(record, body)
        answer = self.world.call_back(record, body, files)
        self.interactions.told[record.id].answer = body
        return answer if query.get("with_response") in ("1", "true", "True") else None

    def follow_up(self, call):
        """Anything done with an interaction's token after the answer."""
        method, path, body, _query, files = call
        application, token, message = WEBHOOK.fullmatch(path).groups()
        record = self.backend.interactions.get(self.backend.interaction_tokens.get(token))
        if record is None or int(application) != self.backend.application_id:
            raise errors.unknown_webhook()
        self.interactions.settle(record)
        if self._is_past(record.expires_at):
            raise BackendError(401, 50027, "Invalid Webhook Token")
        if not record.responded:
            raise errors.unknown_webhook()
        body = body if isinstance(body, dict) else {}
        if method == "POST":
            check_content(body)
            if not files and not any(body.get(name) for name in SUBSTANCE):
                raise empty_message()
        elif method == "PATCH":
            check_edit(body)
        return self._do(call, record, body)

    def _do(self, call, record, body):
        method = call[0]
        policy = body.get("allowed_mentions")
        self.world.next_note = Note(allowed_mentions=policy)
        try:
            answer = self.simcord(call)
        finally:
            self.world.next_note = None
        if method != "GET":
            self.interactions.told[record.id].uses += 1
        if method in ("POST", "PATCH"):
            # An edit has no note of its own yet.
            self.world.notes.setdefault(int(answer["id"]), Note()).allowed_mentions = policy
        return answer

    @staticmethod
    def _applies(call):
        return int(COMMANDS.fullmatch(call[1])[1])

    def commands(self, call):
        """Registers all commands of an application or of a guild, or tells them."""
        if self._applies(call) != self.backend.application_id:
            raise BackendError(403, 20012, "You are not authorized to perform this action on this application")
        if call[0] == "PUT":
            check_commands(call[2])
        answer = self.simcord(call)
        return [self._command(command) for command in answer] if isinstance(answer, list) else answer

    def _command(self, command):
        """A command as Discord tells it."""
        told = {**command, "nsfw": False, "version": command["id"], "default_permission": True}
        told.setdefault("contexts", None)
        told.setdefault("integration_types", [0])
        for name in ("name_localizations", "description_localizations"):
            told.setdefault(name, None)
        if not told["options"]:
            del told["options"]
        return told

    def _is_past(self, moment):
        return moment is not None and self.backend.now_iso() >= moment
