// A person without a browser: the room as its API tells it.

export class Person {
  constructor(url, room, key) {
    this.room = `${url}/chat/api/rooms/${encodeURIComponent(room)}`;
    this.headers = { authorization: `Bearer ${key}` };
  }

  async #ask(path, body) {
    const options = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const answer = await fetch(`${this.room}/${path}`, { ...options, headers: this.headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : {};
  }

  /** Every line of the room, in the order people see them. */
  async lines() {
    const lines = new Map();
    for (let after = 0; ;) {
      const { messages } = await this.#ask(`messages?html=1&after=${after}`);
      if (messages.length === 0) break;
      for (const line of messages) lines.set(line.message_id, line);
      after = messages.at(-1).id;
    }
    return [...lines.values()].filter(present).sort((one, other) => one.place - other.place);
  }

  say(text, more = {}) {
    return this.#ask('messages', { text, client_id: crypto.randomUUID(), ...more });
  }

  /** Sends a file; a message names what this answers. */
  async file({ name, type, bytes }) {
    const headers = { ...this.headers, 'content-type': type, 'x-file-name': encodeURIComponent(name.toWellFormed()) };
    const answer = await fetch(`${this.room}/files`, { method: 'POST', headers, body: bytes });
    if (!answer.ok) throw new Error(`the file: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  async commands() {
    return (await this.#ask('commands')).commands;
  }

  story(id) {
    return this.#ask(`messages/${id}/story`);
  }
}

// A line that was taken back is left as an empty one.
const present = (line) => line.text !== '' || line.files?.length > 0;
