// An agent whose every move a story decides. It dials the real socket with a
// real token, and says itself when to type, write and edit.

import { createHmac, randomUUID } from 'node:crypto';
import { until } from './patience.mjs';

const TOKEN_SECONDS = 300;
// Named like the Rust half, which acts on interrupts.
const USER_AGENT = 'angelia-gateway/0.1';

export class Agent {
  /** Dials in with `{ url, id, secret }`, and perhaps tells its commands. */
  static async dial(credentials, command_manifest) {
    const agent = new Agent();
    agent.credentials = credentials;
    agent.inbound = [];
    agent.interrupts = 0;
    agent.results = new Map();
    const headers = { authorization: `Bearer ${token(credentials)}`, 'user-agent': USER_AGENT };
    agent.socket = new WebSocket(`${credentials.url.replace('http', 'ws')}/relay`, { headers });
    agent.socket.binaryType = 'arraybuffer';
    agent.socket.onmessage = ({ data }) => agent.#hear(data);
    await new Promise((done, failed) => {
      agent.socket.onopen = done;
      agent.socket.onerror = (event) => failed(new Error(`the agent cannot dial in: ${event.message}`));
    });
    agent.#write({ type: 'hello', platform: 'webchat', botId: 'webchat', command_manifest });
    await until('the descriptor', () => agent.described);
    return agent;
  }

  #write(frame) {
    this.socket.send(`${JSON.stringify(frame)}\n`);
  }

  #hear(data) {
    const text = typeof data === 'string' ? data : new TextDecoder().decode(data);
    for (const line of text.split('\n').filter(Boolean)) {
      const frame = JSON.parse(line);
      if (frame.type === 'descriptor') this.described = true;
      if (frame.type === 'interrupt_inbound') this.interrupts += 1;
      if (frame.type === 'outbound_result') this.results.set(frame.requestId, frame.result);
      if (frame.type === 'inbound') {
        this.inbound.push(frame.event);
        this.#write({ type: 'inbound_ack', bufferId: frame.bufferId });
      }
    }
  }

  /** The next message that nobody took yet. */
  async next() {
    await until('a message for the agent', () => this.inbound.length > 0);
    return this.inbound.shift();
  }

  async #act(action) {
    const requestId = randomUUID();
    this.#write({ type: 'outbound', requestId, action, platform: 'webchat', botId: 'webchat' });
    await until(`the answer to ${action.op}`, () => this.results.has(requestId));
    const result = this.results.get(requestId);
    if (result.success === false) throw new Error(`${action.op} was refused: ${JSON.stringify(result)}`);
    return result;
  }

  /** Writes a line in the chat of `event`; answers it unless told otherwise. */
  async send(event, content, reply_to = event.message_id) {
    const { chat_id } = event.source;
    return (await this.#act({ op: 'send', chat_id, content, reply_to, metadata: within(event) })).message_id;
  }

  /** Shows what it has written so far of its next line. */
  draft(event, content) {
    const { chat_id } = event.source;
    return this.#act({ op: 'draft', chat_id, draft_id: 1, content, final: false, metadata: within(event) });
  }

  /** Opens a thread, on a message if one is named. */
  async openThread(event, thread_name, message_id = null) {
    const { chat_id } = event.source;
    return (await this.#act({ op: 'thread_create', chat_id, thread_name, message_id, metadata: {} })).thread_id;
  }

  rename(event, message_id, thread_name) {
    const { chat_id } = event.source;
    return this.#act({ op: 'thread_rename', chat_id, message_id, thread_name, metadata: {} });
  }

  /** Sends a file in the chat of `event`: uploaded with the token of the socket, then named. */
  async sendFile(event, media_kind, { name, type, bytes }, content = '') {
    const { url } = this.credentials;
    const headers = { authorization: `Bearer ${token(this.credentials)}`, 'content-type': type };
    const answer = await fetch(`${url}/relay/media`, {
      method: 'POST',
      // As bytes, and without what no header carries.
      headers: { ...headers, 'x-media-filename': Buffer.from(name.replaceAll(/[\0-\x1f\x7f]/g, '')).toString('latin1') },
      body: bytes,
    });
    if (!answer.ok) throw new Error(`the file was refused: ${answer.status} ${await answer.text()}`);
    const source_url = `${url}/relay/media/${(await answer.json()).id}`;
    const { chat_id } = event.source;
    const action = { op: 'send_media', chat_id, media_kind, source_url, content, reply_to: event.message_id };
    return (await this.#act({ ...action, metadata: within(event) })).message_id;
  }

  /** Fetches a file that came with a message. */
  async fetchFile(url) {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token(this.credentials)}` } });
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  }

  edit(event, message_id, content) {
    return this.#act({ op: 'edit', chat_id: event.source.chat_id, message_id, content, metadata: {} });
  }

  /** Takes a message back. */
  delete(event, message_id) {
    return this.#act({ op: 'delete', chat_id: event.source.chat_id, message_id, metadata: {} });
  }

  /** Asks something with buttons in the chat of `event`, which may be of any kind. */
  async ask(event, content, options, prompt_kind = 'approval') {
    const { chat_id, user_id } = event.source;
    const prompt_id = `${randomUUID().slice(0, 6)}.${randomUUID().slice(0, 8)}`;
    await this.#act({ op: 'prompt', chat_id, prompt_kind, prompt_id, content, options, metadata: { user_id } });
    return prompt_id;
  }

  /** Shows that it is at work, and perhaps at what. */
  type(event, content) {
    return this.#act({ op: 'typing', chat_id: event.source.chat_id, content, metadata: within(event) });
  }

  /** Marks the message of `event`: 👀 while it works on it, ✅ when it is done. */
  react(event, emoji, { remove = false, message_id = event.message_id } = {}) {
    const { chat_id } = event.source;
    return this.#act({ op: 'react', chat_id, message_id, emoji, remove, metadata: {} });
  }

  /** Takes the next message up, as gateways do that mark their turns. */
  async begin() {
    const event = await this.next();
    await this.react(event, '👀');
    await this.type(event);
    return event;
  }

  /** Answers a message, and is done with it. */
  async finish(event, content) {
    const id = await this.send(event, content);
    await this.react(event, '✅');
    return id;
  }

  hangUp() {
    this.socket.close();
  }
}

/** Where gateways say that a message belongs: in the thread of what it answers. */
const within = ({ source: { thread_id } }) => (thread_id ? { thread_id } : {});

function token({ id, secret }) {
  const signed = `${id}:${Math.floor(Date.now() / 1000) + TOKEN_SECONDS}`;
  const signature = createHmac('sha256', secret).update(signed).digest('hex');
  return Buffer.from(`${signed}:${signature}`).toString('base64url');
}
