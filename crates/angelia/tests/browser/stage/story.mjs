// How a story is told: it gets a stage, and what it put there is cleared away.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { Agent } from './agent.mjs';
import { profile } from './browser.mjs';
import { Chat } from './chat.mjs';
import { Person } from './person.mjs';
import { Demo, Server } from './server.mjs';

export const stories = [];

/** Registers a story; `run.mjs` has it told. */
export function story(name, tell) {
  stories.push({ name, tell });
}

let everybodys;
let rooms = 0;

/** The server that stories share, each in rooms of its own. */
export function sharedServer() {
  everybodys ??= Server.start();
  return everybodys;
}

export async function clearShared() {
  await (await everybodys)?.stop();
}

class Stage {
  #clearing = [];
  #chats = [];
  /** Faults a story means to provoke. */
  expected = [];

  async demo(...args) {
    const demo = await Demo.start(args);
    this.#clearing.push(() => demo.stop());
    return demo;
  }

  /** A server of the story's own, to be killed or configured. */
  async server(configuration) {
    const server = await Server.start(configuration);
    this.#clearing.push(() => server.stop());
    return server;
  }

  /** A room nobody else uses, with an agent that has yet to dial in. */
  async room({ user = 'ann', server, direct = false } = {}) {
    // Taken before anything is awaited: stories are told at the same time.
    const number = (rooms += 1);
    server ??= await sharedServer();
    const gateway = await server.gateway(`gw-${number}`);
    const person = direct ? `${user}${number}` : user;
    const invitation = await server.invite(person, gateway.id, direct ? undefined : `room-${number}`);
    return { ...invitation, server, gateway, api: new Person(server.url, invitation.room, invitation.key) };
  }

  async agent(gateway, commands) {
    const agent = await Agent.dial(gateway, commands);
    this.#clearing.push(() => agent.hangUp());
    return agent;
  }

  /** A tab with a profile of its own. */
  async open(link, options) {
    const context = await profile(options);
    this.#clearing.push(() => context.close());
    return this.tab(context, link);
  }

  /** One more tab of a profile. */
  async tab(context, link) {
    const chat = await Chat.open(context, link);
    this.#chats.push(chat);
    return chat;
  }

  /** Something else to be cleared away. */
  clear(act) {
    this.#clearing.push(act);
  }

  async #picture(name) {
    const folder = process.env.ANGELIA_FAILURES;
    mkdirSync(folder, { recursive: true });
    for (const [n, chat] of this.#chats.entries()) {
      const file = path.join(folder, `${name.replaceAll(/\W+/g, '-')}-${n}.png`);
      await chat.page.screenshot({ path: file }).catch(() => {});
    }
  }

  async tell({ name, tell }) {
    try {
      await tell(this);
      for (const chat of this.#chats) assert.deepEqual(await chat.faultsBut(this.expected), []);
    } catch (error) {
      await this.#picture(name);
      const faults = this.#chats.flatMap((chat) => chat.faults);
      throw faults.length
        ? new Error(`${error.message}\nthe page said:\n${faults.join('\n')}`, { cause: error })
        : error;
    } finally {
      for (const clear of this.#clearing.reverse()) await clear();
    }
  }
}

export const perform = (told) => new Stage().tell(told);
