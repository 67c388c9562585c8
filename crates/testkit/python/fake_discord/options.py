"""What a test may choose. Every default is Discord's own figure."""

import dataclasses


@dataclasses.dataclass
class Options:
    #: The bot's token; made up from its id when not given.
    token: str | None = None
    bot_name: str = "Angelia"
    #: Privileged intents the portal granted: message_content, members, presences.
    privileged: list[str] = dataclasses.field(default_factory=lambda: ["message_content"])
    #: Shards that `GET /gateway/bot` recommends.
    shards: int = 1
    #: Milliseconds between heartbeats, told in HELLO.
    heartbeat_interval: int = 41_250
    #: Seconds a session without a socket can be resumed.
    session_life: float = 120.0
    #: How many shards may identify in each `identify_seconds`.
    max_concurrency: int = 1
    identify_seconds: float = 5.0
    #: Identifies a day; one more and the token is reset.
    identify_total: int = 1000
    #: Frames a client may send on one connection in each 60 s; 0 is no limit.
    gateway_sends: int = 120
    #: Seconds during which an enforced nonce answers with its first message.
    nonce_life: float = 180.0
    #: Where interactions are posted; without it they go over the gateway.
    interactions_url: str | None = None
    #: Seed of the key that signs them, 64 hex digits; made up when not given.
    signing_seed: str | None = None
    #: Seconds for the first answer, and seconds that a token is good for.
    interaction_deadline: float = 3.0
    interaction_life: float = 900.0
    #: False switches every REST limit and its headers off.
    limits: bool = True
    #: Requests per second over all routes.
    limit_global: int = 50
    #: [requests, seconds] per channel.
    limit_post: list[float] = dataclasses.field(default_factory=lambda: [5, 5])
    limit_patch: list[float] = dataclasses.field(default_factory=lambda: [5, 5])
    limit_reaction: list[float] = dataclasses.field(default_factory=lambda: [1, 0.25])
    #: [new names, seconds] per channel or thread.
    limit_rename: list[float] = dataclasses.field(default_factory=lambda: [2, 600])
    #: [requests, seconds] per method and interaction.
    limit_webhook: list[float] = dataclasses.field(default_factory=lambda: [5, 2])
    #: [requests, seconds] of each other route.
    limit_other: list[float] = dataclasses.field(default_factory=lambda: [100, 1])
    #: 401, 403 and 429 answers in ten minutes before the edge bans the address.
    limit_invalid: int = 10_000

    def change(self, wishes):
        """Takes the values of a JSON object; an unknown name is an error."""
        known = {field.name for field in dataclasses.fields(self)}
        for name, value in wishes.items():
            if name not in known:
                raise KeyError(f"no option {name!r}; there are {', '.join(sorted(known))}")
            setattr(self, name, value)
