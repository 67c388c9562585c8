"""discord.py reads the commands of an application: python discord_commands.py URL TOKEN [JSON]

Prints them as one JSON list. With JSON, a list of commands, it registers these in their place first,
as another program that uses the bot may do.
"""

import asyncio
import json
import sys

import discord

URL, TOKEN = sys.argv[1:3]

discord.http.Route.BASE = f"{URL}/api/v10"


def told(command):
    return {
        "name": command.name,
        "type": command.type.value,
        "description": command.description,
        "options": [
            {
                "name": option.name,
                "type": option.type.value,
                "required": getattr(option, "required", False),
                "choices": [choice.name for choice in getattr(option, "choices", [])],
            }
            for option in command.options
        ],
    }


async def main():
    async with discord.Client(intents=discord.Intents.default()) as client:
        await client.login(TOKEN)
        if len(sys.argv) > 3:
            await client.http.bulk_upsert_global_commands(client.application_id, json.loads(sys.argv[3]))
        commands = await discord.app_commands.CommandTree(client).fetch_commands()
        print(json.dumps([told(command) for command in commands]), flush=True)


asyncio.run(main())
