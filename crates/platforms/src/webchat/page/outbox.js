// Lines that were written and not yet taken by the server. Each is kept under an
// id of its own until it is: the server knows an id again for as long as it keeps
// the line (the newest 2,000 of a room), so that tries, tabs and reloads do not say
// a thing twice.

import { Refused, ask, inRoom } from "./api.js";
import { unshelve } from "./filestore.js";
import { handle } from "./keys.js";
import { drop, keep, names, recall } from "./memory.js";
import { Uploads } from "./uploads.js";

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;

/** An id nobody else has. `randomUUID` is only there on https and localhost. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join(
    "",
  );
}

/** The outbox of one key. `onChange(item)` hears of every step of an item, `onProgress(item)` of its files. */
export class Outbox {
  #items = new Map();
  #running = false;
  #pause = FIRST_PAUSE;
  #timer = 0;
  #closed = false;

  /** `room()` is the room's name once it is known, `stillOpen()` asks whether the key opens it. */
  constructor({ key, room, onChange, onProgress, onTaken, stillOpen }) {
    Object.assign(this, { key, room, onChange, onTaken, stillOpen });
    this.prefix = `outbox.${handle(key)}.`;
    this.uploads = new Uploads({ key, room, onProgress });
    this.reread();
  }

  /** What waits, in the order it was written. */
  get items() {
    return [...this.#items.values()].sort((a, b) => a.at - b.at);
  }

  /** The room is forgotten: nothing more is sent or kept. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const item of this.items) this.uploads.stop(item);
  }

  /** Looks at what the tabs keep together: another one may have added or sent some. */
  reread() {
    const kept = new Set(names(this.prefix));
    for (const name of kept) {
      const item = recall(name);
      const known = item && this.#items.get(item.client_id);
      if (!item || (known && known.why === item.why)) continue;
      this.#items.set(item.client_id, { ...item, state: item.why ? "failed" : "kept" });
      if (known && item.why) this.uploads.stop(item);
      this.onChange(this.#items.get(item.client_id));
    }
    for (const [id, item] of this.#items) {
      if (kept.has(this.prefix + id)) continue;
      this.uploads.stop(item);
      this.#items.delete(id);
      this.onChange({ ...item, state: "gone" });
    }
  }

  /** Keeps a line, and sends it as soon as it can be sent. */
  add({ text, reply_to, files, thread }) {
    // Two lines of one millisecond, or a clock put back, must not change the order.
    const at = Math.max(Date.now(), (this.items.at(-1)?.at ?? 0) + 1);
    const item = { client_id: newId(), text, reply_to, files, thread, at };
    this.#set({ ...item, state: navigator.onLine ? "sending" : "kept" });
    this.send();
    return item;
  }

  /** Takes over a line from another outbox of the same person, under the same id. */
  adopt({ state, ...item }) {
    this.#set({ ...item, state: item.why ? "failed" : "kept" });
    this.send();
  }

  /** Tries a line again that was refused. */
  retry(id) {
    const item = this.#items.get(id);
    if (!item) return;
    this.#set({ ...item, why: undefined, stopped: undefined, state: "sending" });
    this.send();
  }

  /** Gives a line up. */
  discard(id) {
    const item = this.#items.get(id);
    if (!item) return;
    this.uploads.stop(item);
    this.#remove(item);
    this.onChange({ ...item, state: "gone" });
  }

  /** Stops sending a line whose files are on their way. It stays, to be sent after all or discarded. */
  cancel(id) {
    const item = this.#items.get(id);
    if (!item || item.why || !lacksFiles(item)) return;
    this.#set({ ...item, state: "failed", why: "you stopped it", stopped: true });
    this.uploads.stop(item);
  }

  /** The line came back with the stream, whatever became of the answer. */
  arrived(id) {
    const item = this.#items.get(id);
    if (item) this.#remove(item);
  }

  /** Posts what waits, one after the other: the order is part of what was said. */
  async send() {
    clearTimeout(this.#timer);
    // Before it is known which room the key opens, a line has nowhere to go.
    if (this.#running || this.#closed || !this.room()) return;
    this.#running = true;
    try {
      for (let next; !this.#closed && (next = this.items.find((item) => !item.why));)
        if (!(await this.#post(next))) break;
    } finally {
      this.#running = false;
    }
  }

  /** The network is back: nothing waits for its turn any longer. */
  hurry() {
    this.#pause = FIRST_PAUSE;
    this.send();
  }

  async #post(item) {
    try {
      if (lacksFiles(item)) item = await this.#sendFiles(item);
      // Another tab said it, or its writer changed their mind.
      if (!item || item.why) return true;
      const { client_id, text, reply_to, files, thread } = item;
      const body = { text, client_id };
      if (reply_to) body.reply_to = reply_to;
      if (files?.length) body.files = files.map(({ id, alt, voice }) => ({ id, alt: alt || undefined, voice }));
      if (thread) body.thread = thread;
      const answer = await ask(inRoom(this.room(), "messages"), { key: this.key, method: "POST", body });
      if (this.#closed) return false;
      this.#pause = FIRST_PAUSE;
      // Discarded in between: it is said all the same, and comes with the stream.
      this.#remove(item);
      this.onTaken(item, answer);
      return true;
    } catch (error) {
      return this.#refused(item, error);
    }
  }

  /** Sends the files that a line lacks, each once: what is up stays up over reloads and other faults. */
  async #sendFiles({ client_id }) {
    const sent = (key, id) => {
      const item = this.#items.get(client_id);
      if (!item) return;
      const files = item.files.map((file) => (file.key === key ? { ...file, id, up: Date.now() } : file));
      this.#set({ ...item, files, state: item.why ? "failed" : "sending" });
    };
    const { files } = this.#items.get(client_id);
    const isMissing = (key) => {
      const elsewhere = recall(this.prefix + client_id)?.files?.find((file) => file.key === key)?.id;
      if (elsewhere) sent(key, elsewhere);
      return !elsewhere;
    };
    await this.uploads.send(files, isMissing, sent);
    return this.#items.get(client_id);
  }

  async #refused(item, error) {
    if (this.#closed) return false;
    item = this.#items.get(item.client_id);
    // Discarded, or stopped: what stands behind it goes on.
    if (!item || item.why) return true;
    if (error.status === 404 && item.files?.some(({ id }) => id) && !item.again) {
      // What nothing was said with goes after a day. The bytes are still here.
      this.#set({ ...item, files: item.files.map(({ id, ...file }) => file), again: true });
      return true;
    }
    if (error instanceof Refused && !error.passes && error.status !== 401) {
      this.#set({ ...item, state: "failed", why: error.message });
      return true;
    }
    // A server that answers says itself why it waits.
    const note = error instanceof Refused && error.status !== 401 ? error.message : undefined;
    if (item.state !== "kept" || item.note !== note) this.#set({ ...item, state: "kept", note });
    // What stands behind it waits as well.
    for (const other of this.items)
      if (!other.why && other.state !== "kept") this.#set({ ...other, state: "kept" });
    if (error.status === 401 && !(await this.stillOpen())) return false;
    if (this.#closed) return false;
    this.#timer = setTimeout(() => this.send(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
    return false;
  }

  #set(item) {
    if (this.#closed) return;
    this.#items.set(item.client_id, item);
    const { state, ...kept } = item;
    keep(this.prefix + item.client_id, kept);
    this.onChange(item);
  }

  #remove(item) {
    this.#items.delete(item.client_id);
    unshelve((item.files ?? []).flatMap(({ key }) => key ?? []));
    drop(this.prefix + item.client_id);
  }
}

/** Whether there are files of a line that the server has not got. */
export const lacksFiles = ({ files }) => !!files?.some(({ id }) => !id);
