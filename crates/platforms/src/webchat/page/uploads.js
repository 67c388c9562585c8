// Files of lines that wait. Each is sent from its beginning until it is whole, then its line names it.

import { Refused, inRoom, upload } from "./api.js";
import { sentAs } from "./blobs.js";
import { bytesOf } from "./filestore.js";
import { safeName } from "./kinds.js";
import { Turns } from "./turns.js";

/** So long after a file arrived the other tabs know it, too. */
const KNOWN_ELSEWHERE = 250;

/** Two at a time fill most lines, and leave some for what is read. */
const turns = new Turns(2);

export class Uploads {
  #under = new Map();

  /** `onProgress(key, part)` hears how much of a file has gone; null when none of it is on its way. */
  constructor({ key, room, onProgress }) {
    Object.assign(this, { key, room, onProgress });
  }

  /** Sends those that have no id yet. `isMissing(key)` asks again when it is their turn, `onSent(key, id)`
   * hears of each that arrived. */
  async send(files, isMissing, onSent) {
    const abort = new AbortController();
    const missing = files.filter(({ id }) => !id);
    for (const { key } of missing) this.#under.set(key, abort);
    try {
      await Promise.all(missing.map((file) => this.#once(file, abort.signal, isMissing, onSent)));
    } finally {
      // One that is refused fails the line; the others need not go on.
      abort.abort();
      for (const { key } of missing) {
        this.#under.delete(key);
        this.onProgress(key, null);
      }
    }
  }

  /** Stops what is under way of a line. */
  stop({ files }) {
    for (const { key } of files ?? []) this.#under.get(key)?.abort();
  }

  /** Of several tabs one sends a file. The others find by its line that it is there, or that it is gone. */
  async #once(file, signal, isMissing, onSent) {
    const sending = () => isMissing(file.key) && this.#send(file, signal, onSent);
    // Without https there are no locks, and a file may be sent by two tabs: still one line names it.
    if (!navigator.locks) return sending();
    return new Promise((done, failed) => {
      const turn = async () => {
        await sending();
        done();
        await new Promise((go) => setTimeout(go, KNOWN_ELSEWHERE));
      };
      navigator.locks.request(`angelia.upload.${file.key}`, { signal }, turn).catch(failed);
    });
  }

  async #send(file, signal, onSent) {
    const { key, name, type } = file;
    const done = await turns.take(signal);
    try {
      const blob = key && (await bytesOf(key));
      if (!blob || !(await isReadable(blob)))
        throw new Refused(410, `${safeName(name)} is not in this browser any more; attach it again`);
      const sent = await upload(inRoom(this.room(), "files"), {
        key: this.key,
        blob,
        name,
        type,
        signal,
        onProgress: (part) => this.onProgress(key, part),
      });
      sentAs(sent.id, key);
      onSent(key, sent.id);
    } catch (error) {
      if (!(error instanceof Refused) || error.passes || error.status === 401 || error.status === 410) throw error;
      throw new Refused(error.status, `${safeName(name)}: ${error.message}`);
    } finally {
      done();
    }
  }
}

/** A file that was changed or moved since it was chosen cannot be read. */
const isReadable = (blob) =>
  blob
    .slice(0, 1)
    .arrayBuffer()
    .then(() => blob.size > 0, () => false);

