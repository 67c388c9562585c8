"""discord.py as a bot: python discord_client.py URL GATEWAY_URL TOKEN [GATEWAY_TOKEN]

Prints every event it sees as one JSON line, and does what people tell it:

  reply TEXT      replies to the message
  send TEXT       sends into the channel
  edit A|B        sends A, then makes it B
  type            shows that it types
  wide TEXT       sends into every text channel of the guild at once, and tells how long that took
  history         reads the channel back from its beginning
  open NAME       opens a thread from the message, and renames it
  threads         tells of the guild's threads, as Discord lists them
  sync            registers its slash commands
  button          sends a message with a button, which defers, then changes the message

Its slash commands: /echo TEXT defers, answers in the same place and adds a
message; /late is answered too late; /form shows a form and thanks for it.
"""

import asyncio
import json
import sys
import time

import discord
import yarl

URL, GATEWAY_URL, TOKEN = sys.argv[1:4]

discord.http.Route.BASE = f"{URL}/api/v10"
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(GATEWAY_URL)


#: Longer than the stand-in is told to wait.
LATE = 0.6


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


class Form(discord.ui.Modal, title="Cargo"):
    what = discord.ui.TextInput(label="What", custom_id="what")

    async def on_submit(self, interaction):
        await interaction.response.send_message(f"thanks for {self.what.value}", ephemeral=True)


class Pressed(discord.ui.View):
    @discord.ui.button(label="Press", custom_id="press")
    async def press(self, interaction, _button):
        await interaction.response.defer()
        await interaction.edit_original_response(content=f"pressed by {interaction.user.name}", view=None)


def commands(client):
    tree = discord.app_commands.CommandTree(client)

    @tree.command(description="Says it again")
    async def echo(interaction: discord.Interaction, text: str):
        tell(
            "echo", id=str(interaction.id), user=interaction.user.name, locale=interaction.locale.value,
            channel=interaction.channel.name if interaction.guild else None,
            may_write=interaction.permissions.send_messages,
        )
        await interaction.response.defer()
        await interaction.edit_original_response(content=f"echo {text}")
        sent = await interaction.followup.send("and more", wait=True)
        await sent.edit(content="and much more")

    @echo.autocomplete("text")
    async def suggest(_interaction: discord.Interaction, typed: str):
        return [discord.app_commands.Choice(name=f"{typed}!", value=typed)]

    @tree.command(description="Comes too late")
    async def late(interaction: discord.Interaction):
        await asyncio.sleep(LATE)
        try:
            await interaction.response.defer()
        except discord.NotFound as error:
            tell("too_late", code=error.code)

    @tree.command(description="Shows a form")
    async def form(interaction: discord.Interaction):
        await interaction.response.send_modal(Form(custom_id="form"))

    return tree


class Bot(discord.Client):
    async def setup_hook(self):
        self.tree = commands(self)

    async def on_ready(self):
        tell("ready", user=str(self.user.id), guilds=[guild.name for guild in self.guilds])

    async def on_resumed(self):
        tell("resumed")

    async def on_disconnect(self):
        tell("disconnected")

    async def on_message(self, message):
        if message.author == self.user:
            return
        channel = message.channel
        tell(
            "message", id=str(message.id), content=message.content, author=message.author.name,
            channel=str(channel.id), kind=type(channel).__name__,
            guild=message.guild.name if message.guild else None,
            parent=channel.parent.name if isinstance(channel, discord.Thread) else None,
            mentioned=self.user in message.mentions,
            reply_to=str(message.reference.message_id) if message.reference else None,
            attachments=[item.filename for item in message.attachments],
        )
        try:
            await self.obey(message)
        except discord.HTTPException as error:
            tell("refused", status=error.status, code=error.code)

    async def obey(self, message):
        order, _, text = message.content.partition(" ")
        if order == "reply":
            await message.reply(text, allowed_mentions=discord.AllowedMentions.none())
        elif order == "send":
            await message.channel.send(text)
        elif order == "edit":
            before, after = text.split("|")
            sent = await message.channel.send(before)
            await sent.edit(content=after)
        elif order == "type":
            await message.channel.typing()
        elif order == "wide":
            begun = time.monotonic()
            await asyncio.gather(*(channel.send(text) for channel in message.guild.text_channels))
            tell("wide", seconds=time.monotonic() - begun)
        elif order == "history":
            start = discord.Object(message.channel.id)
            read = [past.content async for past in message.channel.history(after=start, limit=None)]
            tell("history", contents=read)
        elif order == "sync":
            synced = await self.tree.sync()
            tell("synced", names=[command.name for command in synced])
        elif order == "threads":
            found = await message.guild.active_threads()
            tell("threads", found=[[thread.name, thread.parent.name, str(thread.id)] for thread in found])
        elif order == "open":
            thread = await message.create_thread(name=text)
            await thread.edit(name=f"{text} again")
            tell("opened", id=str(thread.id), parent=thread.parent.name)
        elif order == "button":
            await message.channel.send("here", view=Pressed())


async def main():
    intents = discord.Intents.default()
    intents.message_content = True
    async with Bot(intents=intents) as bot:
        try:
            await bot.login(TOKEN)
            if len(sys.argv) > 4:
                bot.http.token = sys.argv[4]
            await bot.connect()
        except discord.LoginFailure:
            tell("login_failed")
        except discord.ConnectionClosed as error:
            tell("closed", code=error.code)


discord.utils.setup_logging()
asyncio.run(main())
