"""What simcord's payloads lack or have too much, set right.

simcord serves discord.py, which forgives. Typed clients do not, and a stand-in
that gives more than Discord gives hides bugs. The serializers call each other
by name, so replacing them in their module changes every answer and event.
"""

from simcord.backend import serializers
from simcord.backend.access import channel_accessible
from simcord.enums import ChannelType

#: Fields that only the account itself sees.
PRIVATE = ("verified", "mfa_enabled", "locale", "flags")

#: Fields of a message that Discord leaves out when there is nothing in them.
OMITTED_WHEN_EMPTY = ("sticker_items", "reactions")

#: Fields that a guild has in GUILD_CREATE only.
GATEWAY_ONLY = (
    "joined_at", "large", "unavailable", "member_count", "voice_states", "members", "channels", "threads",
    "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds",
)

_user = serializers.user_payload
_role = serializers.role_payload
_channel = serializers.channel_payload
_message = serializers.message_payload
_guild = serializers.guild_create_payload


def me(user):
    """The bot's own account, as READY and `GET /users/@me` show it."""
    return {**_user(user), **_appearance(), "email": None}


def _appearance():
    return {"primary_guild": None, "avatar_decoration_data": None, "collectibles": None}


def user_payload(user):
    payload = {**_user(user), **_appearance(), "global_name": user.global_name}
    for name in PRIVATE:
        payload.pop(name, None)
    for name in ("bot", "system"):
        if not payload[name]:
            del payload[name]
    return payload


def channel_payload(backend, channel):
    payload = dict(_channel(backend, channel))
    payload["flags"] = 0
    if channel.type == ChannelType.DM:
        for name in ("parent_id", "topic", "rate_limit_per_user"):
            payload.pop(name, None)
    elif not channel.is_thread:
        payload["nsfw"] = False
    return payload


def guild_create_payload(backend, guild):
    payload = dict(_guild(backend, guild))
    payload.update(
        nsfw_level=0, nsfw=False, hub_type=None, safety_alerts_channel_id=None, widget_enabled=False,
        max_video_channel_users=25, max_stage_video_channel_users=50, incidents_data=None, lazy=True,
    )
    # Discord lists a guild's channels without repeating the guild in each.
    payload["channels"] = [
        {name: value for name, value in channel.items() if name != "guild_id"}
        for channel in payload["channels"]
    ]
    # Archived threads are not synced, private ones only to their members.
    payload["threads"] = [
        thread for thread in payload["threads"]
        if not thread["thread_metadata"]["archived"]
        and channel_accessible(backend, int(thread["id"]), backend.bot_user.id)
    ]
    return payload


def rest_guild(backend, guild, *, counts=False):
    """A guild as `GET /guilds/{id}` shows it."""
    payload = guild_create_payload(backend, guild)
    for name in GATEWAY_ONLY:
        payload.pop(name, None)
    if counts:
        payload.update(approximate_member_count=len(guild.members), approximate_presence_count=1)
    return payload


def partial_guild(backend, guild):
    """A guild as `GET /users/@me/guilds` shows it."""
    permissions = backend.compute_permissions(guild.id, backend.bot_user.id)
    return {
        "id": str(guild.id), "name": guild.name, "icon": None, "banner": None, "features": [],
        "owner": guild.owner_id == backend.bot_user.id, "permissions": str(permissions),
    }


def install(world):
    """Replaces simcord's serializers; there is one world in a process."""

    def role_payload(role):
        payload = dict(_role(role))
        bot = world.role_bots.get(role.id)
        if bot is not None:
            payload["tags"] = {"bot_id": str(bot)}
        return payload

    def message_payload(backend, message, *, for_user=None):
        payload = dict(_message(backend, message, for_user=for_user))
        # Only events name the guild; the gateway adds it.
        payload.pop("guild_id", None)
        for name in OMITTED_WHEN_EMPTY:
            if not payload[name]:
                del payload[name]
        nonce = world.note(message.id).nonce
        if nonce is None:
            del payload["nonce"]
        else:
            payload["nonce"] = nonce
        if message.interaction_metadata is not None:
            # The answer to an interaction is a message of the application's webhook.
            payload["application_id"] = payload["webhook_id"] = str(backend.application_id)
        if "message_reference" in payload:
            payload["message_reference"].pop("fail_if_not_exists", None)
            guild_id = backend.channels[message.channel_id].guild_id
            if guild_id is not None:
                payload["message_reference"].setdefault("guild_id", str(guild_id))
            # A reply to a message that is gone says so.
            payload.setdefault("referenced_message", None)
        return payload

    serializers.user_payload = user_payload
    serializers.role_payload = role_payload
    serializers.channel_payload = channel_payload
    serializers.message_payload = message_payload
    serializers.guild_create_payload = guild_create_payload
