// One room, as this browser knows it: its lines, what waits to be sent, and
// whether its agent is there. Shows nothing; whoever shows it listens.

import { ask, download, inRoom } from "./api.js";
import { handle, learn } from "./keys.js";
import { keep, recall } from "./memory.js";
import { Outbox } from "./outbox.js";
import { Stream } from "./stream.js";

/** So long a draft is shown that nobody writes on. */
const DRAFT = 30_000;
/** Threads of which it is kept how far they were read. */
const MOST_THREADS = 50;
/** Who the server itself is, among agents. */
const SERVER = "angelia";

export class Room extends EventTarget {
  #lines = new Map();
  #taken = new Map();
  #stream = null;
  #after = 0;
  /** The ids of lines that wait until the agent has finished, and whether this connection told of them. */
  #held = new Set();
  #heldTold = false;
  /** What is said in threads, by the line that opened them. */
  #threads = new Map();
  /** What the agent is writing, by thread; the room itself is "". */
  #drafts = new Map();
  met = false;
  loaded = false;
  revoked = false;
  connection = "idle";
  /** How people know its agent. */
  agentName = "agent";
  agent = undefined;
  awaited = false;
  guide = null;
  explain = null;

  constructor({ key, room, user, private: direct, guest }) {
    super();
    this.key = key;
    this.about({ room, user, private: direct, guest });
    this.seen = recall(`seen.${handle(key)}`, { id: 0, place: 0 });
    this.unread = 0;
    this.threadsSeen = recall(this.#seenName, {});
    this.outbox = new Outbox({
      key,
      room: () => this.name,
      onChange: (item) => queueMicrotask(() => this.#waits(item)),
      onProgress: (key, part) => this.#tell("progress", { key, part }),
      onTaken: (item, answer) => this.#wasTaken(item, answer),
      stillOpen: () => this.#stillOpen(),
    });
  }

  /** What people call it. */
  get title() {
    return this.private ? this.agentName : (this.name ?? (this.revoked ? "Unknown room" : "…"));
  }

  about({ room, user, private: direct, guest, alone }) {
    Object.assign(this, { name: room, user, guest, alone, private: direct ?? room?.startsWith("dm:") });
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Asks who we are here. */
  async meet() {
    let me;
    try {
      me = await ask("me", { key: this.key });
    } catch (error) {
      if (error.status === 401) this.#revoke();
      throw error;
    }
    const news = me.room !== this.name || me.user !== this.user || me.guest !== this.guest;
    this.about(me);
    this.guide = me.guide;
    this.agentName = me.agent?.name ?? "agent";
    this.explain = me.explain ?? null;
    this.met = true;
    this.revoked = false;
    if (news) learn(this.key, me);
    this.#agentIs(me.agent ?? { connected: null });
    this.#tell("about");
    this.outbox.send();
  }

  /** Whether the key opens the room, after a request said that it does not. */
  async #stillOpen() {
    try {
      await this.meet();
      return true;
    } catch (error) {
      return error.status !== 401;
    }
  }

  /** Reads all the room holds, then follows what happens. */
  follow() {
    this.#stream ??= new Stream({
      key: this.key,
      prepare: async () => {
        if (!this.met) await this.meet();
        if (!this.loaded) await this.#load();
      },
      where: () => `${inRoom(this.name, "events")}?after=${this.#after}&html=1`,
      onEvent: (event, data) => this.#happens(event, data),
      onState: (state, why) => this.#connectionIs(state, why),
    });
  }

  async #load() {
    for (;;) {
      const { messages, more } = await this.#read();
      for (const line of messages) this.#apply(line, false);
      if (!more) break;
    }
    this.loaded = true;
    this.#tell("loaded");
  }

  leave() {
    this.#stream?.close();
    this.#stream = null;
    this.connection = "idle";
  }

  #read(after = this.#after) {
    return ask(`${inRoom(this.name, "messages")}?after=${after}&html=1`, { key: this.key });
  }

  /** Looks for news of a room that is not open. */
  async poll() {
    try {
      await this.meet();
      this.reseen();
      const { messages } = await this.#read(this.loaded ? undefined : this.seen.id);
      if (this.loaded) for (const line of messages) this.#apply(line, false);
      const lines = this.loaded ? this.lines : messages;
      this.#count(lines.filter((line) => line.place > this.seen.place && line.author !== this.user).length);
    } catch {
      // The next look may tell.
    }
  }

  /** Everything up to here was looked at. */
  see() {
    const place = Math.max(this.seen.place, this.lines.at(-1)?.place ?? 0);
    if (this.#after === this.seen.id && place === this.seen.place) return this.#count(0);
    this.seen = { id: this.#after, place };
    keep(`seen.${handle(this.key)}`, this.seen);
    this.#count(0);
  }

  /** What was looked at may have been kept elsewhere meanwhile. */
  reseen() {
    const kept = recall(`seen.${handle(this.key)}`, this.seen);
    if (kept.place > this.seen.place) this.seen = kept;
  }

  /** One more line came while nobody looked. */
  miss() {
    this.#count(this.unread + 1);
  }

  #count(unread) {
    if (unread === this.unread) return;
    this.unread = unread;
    this.#tell("unread");
  }

  /** The lines, in their places. */
  get lines() {
    return [...this.#lines.values()].sort((a, b) => a.place - b.place);
  }

  /** What is shown: the lines, then what waits. */
  get shown() {
    const waiting = this.outbox.items.map((item) => this.#pending(item));
    // Taken, but not yet seen in the stream.
    const taken = [...this.#taken.values()]
      .filter((item) => !this.#lines.has(item.message_id))
      .map((item) => ({ ...item, held: this.#held.has(item.message_id) }));
    return [...this.lines.map((line) => this.#asShown(line)), ...taken, ...waiting];
  }

  opensThread(messageId) {
    return !!this.#lines.get(messageId)?.thread_name;
  }

  /** The thread of a line that opened one: its name, what was said in it, and how much of that is new. */
  thread(messageId) {
    const name = this.#lines.get(messageId)?.thread_name;
    if (!name) return null;
    const lines = [...(this.#threads.get(messageId) ?? [])].map((id) => this.#lines.get(id)).filter(Boolean);
    lines.sort((a, b) => a.place - b.place);
    const seen = this.threadsSeen[messageId] ?? 0;
    const unread = lines.filter((line) => line.place > seen && !this.isMine(line)).length;
    return { name, count: lines.length, last: lines.at(-1), unread };
  }

  /** A thread was looked at. */
  seeThread(messageId) {
    const place = this.thread(messageId)?.last?.place ?? 0;
    if (place <= (this.threadsSeen[messageId] ?? 0)) return;
    const { [messageId]: _, ...others } = recall(this.#seenName, this.threadsSeen);
    // The newest last; who looks at more of them sees an old one marked as new.
    const kept = Object.entries(others).slice(1 - MOST_THREADS);
    this.threadsSeen = { ...Object.fromEntries(kept), [messageId]: place };
    keep(this.#seenName, this.threadsSeen);
  }

  get #seenName() {
    return `threads.${handle(this.key)}`;
  }

  /** What the agent has written of its next line, in a thread or in the room itself. */
  draft(thread) {
    return this.#drafts.get(thread ?? "") ?? null;
  }

  #drafted({ thread, text, html }) {
    const name = thread ?? "";
    clearTimeout(this.#drafts.get(name)?.timer);
    const timer = setTimeout(() => this.#drafted({ thread, text: "" }), DRAFT);
    if (text) this.#drafts.set(name, { text, html, timer });
    else {
      clearTimeout(timer);
      if (!this.#drafts.delete(name)) return;
    }
    this.#tell("draft", { thread });
  }

  line(messageId) {
    const line = this.#lines.get(messageId);
    return line && this.#asShown(line);
  }

  async stop(thread) {
    const where = thread ? `?thread=${encodeURIComponent(thread)}` : "";
    await ask(inRoom(this.name, `interrupt${where}`), { key: this.key, method: "POST" });
  }

  /** Answers a question by one of its buttons. */
  press(messageId, option) {
    const path = inRoom(this.name, `messages/${encodeURIComponent(messageId)}/press`);
    return ask(path, { key: this.key, method: "POST", body: { option } });
  }

  /** The bytes of a file. A key that does not open it any more is looked at, as with every request. */
  async file({ id, size }, options) {
    const path = inRoom(this.name, `files/${encodeURIComponent(id)}`);
    try {
      return await download(path, { ...options, key: this.key, size });
    } catch (error) {
      if (error.status === 401) this.#stillOpen();
      throw error;
    }
  }

  story(messageId) {
    return ask(inRoom(this.name, `messages/${encodeURIComponent(messageId)}/story`), { key: this.key });
  }

  /** The agent, at the begin of a sentence. */
  get spokenOf() {
    return this.agentName === "agent" ? "The agent" : this.agentName;
  }

  /** How people know who wrote a line. */
  nameOf = (line) => (line.from_agent && line.author === "agent" ? this.agentName : line.author);

  isMine = (line) => !line.from_agent && line.author === this.user;

  #happens(event, data) {
    if (event === "held") this.#holds(data.message_ids);
    else if (event === "agent") {
      // What is held is told before it. What an earlier connection told of is over.
      if (!this.#heldTold) this.#holds([]);
      this.#agentIs(data);
    }
    else if (event === "typing") this.#tell("typing", data);
    else if (event === "draft") this.#drafted(data);
    else if (event === "message" || event === "edit") this.#apply(data, true);
  }

  #holds(ids) {
    this.#heldTold = true;
    const before = this.#held;
    this.#held = new Set(ids);
    for (const item of this.shown) {
      const held = this.#held.has(item.message_id);
      if (held !== before.has(item.message_id)) this.#tell("held", { ...item, held });
    }
  }

  #apply(line, live) {
    this.#after = Math.max(this.#after, line.id);
    const before = this.#lines.get(line.message_id);
    if (before && before.id >= line.id) return;
    if (!line.text && !line.files?.length) {
      this.#lines.delete(line.message_id);
      this.#threads.get(line.thread)?.delete(line.message_id);
      return this.#tell("gone", { line, before });
    }
    line.place ??= before?.place ?? line.id;
    this.#lines.set(line.message_id, line);
    if (line.thread) {
      if (!this.#threads.has(line.thread)) this.#threads.set(line.thread, new Set());
      this.#threads.get(line.thread).add(line.message_id);
    }
    // Nobody else's ids mean anything to us. Our own one says that the line arrived.
    if (!this.isMine(line)) delete line.client_id;
    else if (line.client_id) {
      this.outbox.arrived(line.client_id);
      this.#taken.delete(line.client_id);
    }
    // A mark or a name is nothing that was said.
    const said = !before || before.text !== line.text;
    this.#tell("line", { line: this.#asShown(line), live, isNew: !before, said });
    // It takes the place of what was shown of it.
    if (!before && line.from_agent && line.author !== SERVER)
      this.#drafted({ thread: line.thread, text: "" });
  }

  #asShown(line) {
    const held = this.#held.has(line.message_id);
    return { ...line, held, ...(this.isMine(line) ? became(line) : { state: "there" }) };
  }

  #pending(item) {
    const state = item.state === "kept" && this.revoked ? "failed" : item.state;
    const why = item.why ?? (this.revoked ? "this invitation does not open the room" : undefined);
    return { ...item, message_id: null, place: Infinity, author: this.user, from_agent: false, state, why };
  }

  #waits(item) {
    this.#tell("waits", this.#pending(item));
  }

  #wasTaken(item, answer) {
    const { message_id } = answer;
    const held = this.#held.has(message_id);
    const taken = { ...this.#pending(item), message_id, held, ...became(answer) };
    if (!this.#lines.has(message_id)) this.#taken.set(item.client_id, taken);
    this.#tell("taken", this.line(message_id) ?? taken);
  }

  /** `awaited`: there is none yet, and what is written waits for the first. */
  #agentIs({ connected, awaited = false }) {
    if (connected === this.agent && awaited === this.awaited) return;
    this.agent = connected;
    this.awaited = awaited;
    this.#tell("agent");
  }

  #connectionIs(state, why) {
    this.connection = state;
    if (state === "connected") {
      this.#heldTold = false;
      // What is still written is told anew.
      for (const thread of [...this.#drafts.keys()]) this.#drafted({ thread: thread || undefined, text: "" });
      this.revoked = false;
      this.outbox.hurry();
    }
    if (state === "refused" && why.status === 401) this.#revoke();
    this.#tell("connection", why);
  }

  #revoke() {
    if (this.revoked) return;
    this.revoked = true;
    this.#tell("revoked");
  }
}

/** What became of a line of ours. That it is on the server does not say that the agent has it. */
function became({ undelivered, hint }) {
  // What was for the server itself has reached whom it was for.
  if (!undelivered || undelivered === "consumed") return { state: "stored", why: undefined };
  return { state: "undelivered", why: hint ?? undelivered };
}
