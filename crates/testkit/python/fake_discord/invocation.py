"""What a person does to a bot, as Discord tells it: the `data` of an interaction.

simcord's own builders want its Python handles; tests here speak JSON. Checks
are simcord's wherever a command is registered. A command that nobody registered
can be used all the same, with an id made up for its name.
"""

import re

from simcord import interactions as wire
from simcord.actors import _find_component
from simcord.backend import serializers
from simcord.backend.errors import BackendError, SetupError
from simcord.enums import SELECT_TYPES, AppCommandType, ComponentType, OptionType

from .forms import form_error

#: A command's name; the letters of a chat command are small ones.
NAME = re.compile(r"^[-_'\w]{1,32}$")

#: Commands of an application, characters of a description, options of a command.
COMMAND_LIMIT, DESCRIPTION_LIMIT, OPTION_LIMIT = 100, 100, 25

#: Options that are commands below a command, and groups of such.
BELOW, GROUP = OptionType.SUBCOMMAND, OptionType.SUBCOMMAND_GROUP

#: What a double holds exactly.
LARGEST_NUMBER = 2**53

#: Option types that name something of Discord's, by the word a test uses.
NAMED = {
    "user": OptionType.USER, "channel": OptionType.CHANNEL, "role": OptionType.ROLE,
    "attachment": OptionType.ATTACHMENT,
}


def check_commands(commands):
    """Refuses what Discord refuses when commands are registered."""
    if not isinstance(commands, list) or len(commands) > COMMAND_LIMIT:
        raise form_error("_errors", "BASE_TYPE_MAX_LENGTH", f"Must be {COMMAND_LIMIT} or fewer in length.")
    names = [(command.get("name"), command.get("type", AppCommandType.CHAT_INPUT)) for command in commands]
    if len(set(names)) != len(names):
        raise form_error("name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
    for command in commands:
        if command.get("type", AppCommandType.CHAT_INPUT) == AppCommandType.CHAT_INPUT:
            _check_named(command)


def _check_named(thing):
    """A chat command or one of its options."""
    name, description = thing.get("name"), thing.get("description")
    if not isinstance(name, str) or not NAME.match(name) or name != name.lower():
        raise form_error("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if not isinstance(description, str) or not 1 <= len(description) <= DESCRIPTION_LIMIT:
        message = f"Must be between 1 and {DESCRIPTION_LIMIT} in length."
        raise form_error("description", "BASE_TYPE_BAD_LENGTH", message)
    options = thing.get("options") or []
    if len(options) > OPTION_LIMIT:
        raise form_error("options", "BASE_TYPE_MAX_LENGTH", f"Must be {OPTION_LIMIT} or fewer in length.")
    needed = [bool(option.get("required")) for option in options]
    if needed != sorted(needed, reverse=True):
        message = "Required options must be placed before non-required options"
        raise form_error("options", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
    for option in options:
        _check_kind(option, beside=options)
        _check_choices(option)
        _check_named(option)


def _check_kind(option, beside):
    """Groups hold commands, and some; commands stand beside nothing but groups and commands."""
    below = (BELOW, GROUP)
    kinds = [it.get("type") for it in option.get("options") or []]
    is_group = option.get("type") == GROUP
    wrong = is_group and (not kinds or any(kind != BELOW for kind in kinds))
    mixed = len({it.get("type") in below for it in beside}) > 1
    if wrong or mixed:
        message = "Sub-command and sub-command group option types are mutually exclusive to all other types"
        raise form_error("options", "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", message)


def _check_choices(option):
    choices = option.get("choices") or []
    for key in ("name", "value"):
        if len({it.get(key) for it in choices}) != len(choices):
            message = f"Option choice {key}s must be unique"
            raise form_error("choices", f"APPLICATION_COMMAND_OPTIONS_CHOICE_{key.upper()}_ALREADY_EXISTS", message)
    numbers = [it["value"] for it in choices if isinstance(it.get("value"), int | float)]
    if any(abs(number) > LARGEST_NUMBER for number in numbers):
        raise form_error("choices", "NUMBER_TYPE_MAX", f"{LARGEST_NUMBER} is the largest number either way.")


class Invocations:
    def __init__(self, world):
        self.world = world
        self.backend = world.backend
        self.made_up = {}

    def slash(self, ask, channel, user_id):
        root, names = self._command(ask["name"], channel, user_id)
        return self._data(root, names, ask, channel, user_id)

    def autocomplete(self, ask, channel, user_id):
        """The person types in one option."""
        root, names = self._command(ask["name"], channel, user_id)
        leaf = wire.walk_to_subcommand(root, names)[0] if "options" in root else {}
        declared = {option["name"]: option for option in leaf.get("options") or []}.get(ask["option"])
        if declared is not None and not declared.get("autocomplete"):
            raise SetupError(f"option {ask['option']!r} has no autocomplete")
        kind = declared["type"] if declared else OptionType.STRING
        typed = {"name": ask["option"], "type": kind, "value": ask.get("value", ""), "focused": True}
        return self._data(root, names, ask, channel, user_id, typed)

    def press(self, ask, message):
        """A button, or the entries of a string select, of a message that has it."""
        values = ask.get("values")
        kinds = (ComponentType.BUTTON,) if values is None else SELECT_TYPES
        found = _find_component(message.components, types=kinds, custom_id=ask.get("custom_id"), label=ask.get("label"))
        data = {"custom_id": found["custom_id"], "component_type": found["type"], "id": found.get("id", 1)}
        if values is not None:
            offered = {option["value"] for option in found.get("options") or []}
            if not set(values) <= offered:
                raise SetupError(f"{values} are not among {sorted(offered)}")
            data["values"] = values
        return data

    @staticmethod
    def modal(ask):
        """A form that is sent, with what the person wrote in its fields."""
        rows = [
            {"type": 1, "id": 2 * n + 1, "components": [{"type": 4, "id": 2 * n + 2, "custom_id": name, "value": text}]}
            for n, (name, text) in enumerate((ask.get("fields") or {}).items())
        ]
        return {"custom_id": ask["custom_id"], "components": rows}

    # ------------------------------------------------------------- commands

    def _command(self, words, channel, user_id):
        """The command a person can see by this name, and its subcommands named."""
        name, *names = words.split()
        visible = self.backend.visible_commands(user_id=user_id, channel_id=channel.id)
        for command in visible:
            if command["name"] == name:
                return command, names
        if self.backend.find_command(name, channel.guild_id):
            raise SetupError(f"{user_id} does not see the command {name!r} in {channel.id}")
        made_up = self.made_up.setdefault(name, {"id": str(self.backend.snowflake()), "name": name, "type": 1})
        return made_up, names

    def _data(self, root, names, ask, channel, user_id, typed=None):
        values, resolved = ask.get("options") or {}, {}
        registered = "options" in root
        if registered:
            leaf = wire.walk_to_subcommand(root, names)[0]
            self._check(root["name"], leaf, values, partial=typed is not None)
            order = [option["name"] for option in leaf.get("options") or []]
            values = {name: values[name] for name in sorted(values, key=order.index)}
        options = [self._option(name, value, resolved, channel, user_id) for name, value in values.items()]
        if typed is not None:
            options.append(typed)
        if registered:
            options = wire.nest_options(root, names, options)
        else:
            for name in reversed(names):
                options = [{"name": name, "type": OptionType.SUBCOMMAND, "options": options}]
        data = {"id": root["id"], "name": root["name"], "type": root["type"]}
        if options:
            data["options"] = options
        if resolved:
            data["resolved"] = resolved
        if root.get("guild_id"):
            data["guild_id"] = root["guild_id"]
        return data

    @staticmethod
    def _check(name, leaf, values, *, partial):
        """simcord's checks of the plain values, and that nothing is missing or unknown."""
        plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
        named = set(values) - set(plain)
        declared = [option for option in leaf.get("options") or [] if option["name"] not in named]
        wire.check_options(name, {**leaf, "options": declared}, plain, partial=partial)

    def _option(self, name, value, resolved, channel, user_id):
        """One option on the wire: a plain value, or {"user"|"channel"|"role": id}, or {"attachment": file}."""
        if isinstance(value, dict):
            (word, named), = value.items()
            return {"name": name, "type": NAMED[word], "value": self._resolve(word, named, resolved, channel, user_id)}
        kinds = {bool: OptionType.BOOLEAN, int: OptionType.INTEGER, float: OptionType.NUMBER, str: OptionType.STRING}
        return {"name": name, "type": kinds[type(value)], "value": value}

    def _resolve(self, word, named, resolved, channel, user_id):
        """Adds what the option names to `resolved`; returns its id."""
        backend = self.backend
        if word == "attachment":
            stored = self.world.store_attachment(channel.id, named)
            resolved.setdefault("attachments", {})[stored["id"]] = {**stored, "ephemeral": True}
            return stored["id"]
        number = int(named)
        guild = backend.guilds.get(channel.guild_id)
        if word == "role":
            payload = serializers.role_payload(guild.roles[number])
        elif word == "channel":
            payload = dict(serializers.channel_payload(backend, backend.get_channel(number)))
            payload["permissions"] = str(backend.compute_permissions(guild.id, user_id, number))
        else:
            payload = serializers.user_payload(backend.get_user(number))
            if guild is not None and number in guild.members:
                member = serializers.member_payload(backend, guild, guild.members[number], with_user=False)
                permissions = str(backend.compute_permissions(guild.id, number, channel.id))
                resolved.setdefault("members", {})[named] = {**member, "permissions": permissions}
        resolved.setdefault(f"{word}s", {})[named] = payload
        return named


def component_message(backend, channel_id, message_id, user_id):
    """The message whose component somebody uses, if they can see it."""
    message = backend.get_message(channel_id, message_id)
    if not message.visible_to(user_id):
        raise BackendError(404, 10008, "Unknown Message")
    return message

