// Following a room. Browsers' own EventSource cannot send the key in a header,
// so the stream is read here.

import { Refused, request } from "./api.js";

/** The server sends something every 15 s. Twice nothing, and the line is dead. */
const SILENCE = 40_000;
/** After so long without a byte a reader who comes back does not wait for the rest of it. */
const DOUBT = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
/** Browsers allow six connections to a server: a tab nobody sees gives its own back. */
const HIDDEN_FOR = 60_000;

/** Turns the text of an event stream, cut anywhere, into its events. */
export class Parser {
  #rest = "";
  #event = "";
  #data = [];

  *read(text) {
    this.#rest += text;
    for (;;) {
      const end = this.#rest.search(/[\r\n]/);
      // A \r at the very end may be half of a \r\n.
      if (end < 0 || (this.#rest[end] === "\r" && end + 1 === this.#rest.length)) return;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest.startsWith("\r\n", end) ? 2 : 1));
      const event = this.#line(line);
      if (event) yield event;
    }
  }

  #line(line) {
    if (line === "") {
      const event = { event: this.#event || "message", data: this.#data.join("\n") };
      const complete = this.#data.length > 0;
      this.#event = "";
      this.#data = [];
      return complete ? event : null;
    }
    const [, field, value = ""] = line.match(/^([^:]*)(?:: ?(.*))?$/s);
    if (field === "event") this.#event = value;
    if (field === "data") this.#data.push(value);
    return null;
  }
}

/**
 * Follows a room until it is closed. `prepare()` reads what was before, `where()`
 * gives the path to continue with, `onEvent(name, data)` gets what happens,
 * `onState` one of "connecting", "connected", "reconnecting", "crowded", "refused".
 */
export class Stream {
  #abort = null;
  #timer = 0;
  #pause = FIRST_PAUSE;
  #closed = false;
  #dozing = 0;
  #asleep = false;
  #heard = 0;

  constructor({ key, prepare, where, onEvent, onState }) {
    Object.assign(this, { key, prepare, where, onEvent, onState });
    this.hurry = () => this.#hurry();
    this.watch = () => (document.hidden ? this.#doze() : this.#hurry());
    this.lost = () => this.#lost();
    addEventListener("online", this.hurry);
    addEventListener("offline", this.lost);
    document.addEventListener("visibilitychange", this.watch);
    this.onState("connecting");
    this.#connect();
  }

  close() {
    this.#closed = true;
    removeEventListener("online", this.hurry);
    removeEventListener("offline", this.lost);
    document.removeEventListener("visibilitychange", this.watch);
    clearTimeout(this.#dozing);
    this.#stop();
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
  }

  /** Somebody looks, or the network is back: no reason to wait any longer. */
  #hurry() {
    // Nobody looks yet at a tab that sleeps.
    if (this.#asleep && document.hidden) return;
    clearTimeout(this.#dozing);
    this.#asleep = false;
    if (this.#closed || (this.#abort && Date.now() - this.#heard < DOUBT)) return;
    this.#pause = FIRST_PAUSE;
    this.#stop();
    this.#connect();
  }

  /** A connection without a network tells nothing any more, not even that it ended. */
  #lost() {
    this.#stop();
    this.onState("reconnecting");
    this.#later();
  }

  /** Jitter, so that a room does not come back all at once. */
  #later() {
    if (this.#asleep) return;
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.5 + Math.random()));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  #doze() {
    clearTimeout(this.#dozing);
    this.#dozing = setTimeout(() => {
      this.#asleep = true;
      this.#stop();
    }, HIDDEN_FOR);
  }

  async #connect() {
    const abort = (this.#abort = new AbortController());
    let refused = null;
    try {
      await this.prepare();
      if (this.#abort !== abort) return;
      await this.#read(abort);
    } catch (error) {
      refused = error instanceof Refused ? error : null;
    }
    // Whoever aborted it has decided what comes next.
    if (this.#abort !== abort) return;
    this.#abort = null;
    abort.abort();
    if (this.#closed) return;
    if (refused && !refused.passes) return this.onState("refused", refused);
    this.onState(refused?.status === 429 ? "crowded" : "reconnecting");
    this.#later();
  }

  async #read(abort) {
    let dog = 0;
    const awake = () => {
      this.#heard = Date.now();
      clearTimeout(dog);
      dog = setTimeout(() => abort.abort(), SILENCE);
    };
    try {
      awake();
      // A watchdog that bites ends the fetch, but it is still ours to reconnect.
      const response = await request(this.where(), { key: this.key, signal: abort.signal });
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      const parser = new Parser();
      this.onState("connected");
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        awake();
        this.#pause = FIRST_PAUSE;
        for (const { event, data } of parser.read(decoder.decode(value, { stream: true }))) {
          if (this.#abort !== abort) return;
          this.onEvent(event, JSON.parse(data));
        }
      }
    } finally {
      clearTimeout(dog);
    }
  }
}
