// The open room: its lines, its composer, what its agent does, what happened.

import { Announcer } from "./announce.js";
import { Composer } from "./composer.js";
import { Draft } from "./draft.js";
import { Guide } from "./guide.js";
import { Lightbox } from "./lightbox.js";
import { Lines } from "./lines.js";
import { agentMark, agentWords } from "./rooms.js";
import { Story, sameLine } from "./story.js";
import { Work } from "./work.js";

/** A connection that comes at once needs no word about it. */
const BRIEF = 800;

const CONNECTION = {
  connecting: "connecting…",
  reconnecting: "reconnecting…",
  crowded: "open in too many tabs; trying again…",
};

const by = (id) => document.getElementById(id);

export class Talk {
  #room = null;
  /** The thread that is open, by the line that opened it. */
  #thread = null;
  #leave = null;
  #chosen = false;
  #brief = 0;

  constructor(sheets) {
    this.sheets = sheets;
    sheets.onOpen = () => this.story.item || this.#chooseNewest();
    this.announcer = new Announcer(by("spoken"));
    this.story = new Story({ place: by("story-legs"), about: by("story-about"), status: by("story-status") });
    this.work = new Work((state) => this.#working(state));
    this.guide = new Guide({
      card: by("guide"),
      body: by("guide-body"),
      lines: by("guide-lines"),
      state: by("guide-state"),
      fold: by("guide-fold"),
      copy: by("guide-copy"),
    });
    this.draft = new Draft(by("draft"));
    this.lines = new Lines({
      box: by("scroll"),
      list: by("lines"),
      draft: by("draft"),
      earlier: by("earlier"),
      newer: by("newer"),
      on: {
        select: (item) => this.sheets.isSheet("story") || this.#choose(item),
        story: (item) => this.#choose(item, true),
        reply: (item) => this.reply(item),
        retry: ({ client_id }) => this.#room.outbox.retry(client_id),
        discard: ({ client_id }) => this.#room.outbox.discard(client_id),
        // What is held goes by itself as soon as the agent has stopped.
        hurry: () => by("stop").disabled || this.#stop(),
        cancel: ({ client_id }) => this.#room.outbox.cancel(client_id),
        file: (item, button) => this.#file(button),
        press: (item, button) => this.#press(item, button),
        thread: ({ message_id }) => this.enter(message_id),
        seen: () => this.look(),
        lost: () => this.composer.focus(),
        empty: (empty) => this.#empty(empty),
      },
    });
    const parts = {
      form: by("compose"),
      field: by("composer"),
      send: by("send"),
      attach: by("attach"),
      picker: by("picker"),
      camera: by("camera"),
      shooter: by("shooter"),
      recording: {
        button: by("record"),
        bar: by("recording"),
        time: by("recording-time"),
        status: by("recording-status"),
        done: by("recording-done"),
        discard: by("recording-discard"),
      },
      files: by("files"),
      fileNote: by("file-note"),
      replyBar: by("reply-bar"),
      replyText: by("reply-text"),
      unreply: by("unreply"),
      count: by("count"),
      dropZone: by("talk"),
    };
    this.lightbox = new Lightbox();
    this.composer = new Composer(parts, (line) => this.#say(line));
    by("stop").addEventListener("click", () => this.#stop());
    by("thread-back").addEventListener("click", () => this.leaveThread());
    addEventListener("popstate", ({ state }) => this.#turnTo(state?.thread ?? null));
    document.addEventListener("visibilitychange", () => {
      this.look();
      this.story.stir();
    });
    addEventListener("online", () => this.#connection());
    addEventListener("offline", () => this.#connection());
  }

  get room() {
    return this.#room;
  }

  /** Turns to a room. */
  open(room) {
    this.close();
    this.#room = room;
    this.#leave = new AbortController();
    const on = (type, act) =>
      room.addEventListener(type, ({ detail }) => act(detail), { signal: this.#leave.signal });
    on("line", (detail) => this.#line(detail));
    on("gone", ({ line }) => this.lines.remove(line));
    on("waits", (item) => this.#waits(item));
    on("taken", (item) => this.#taken(item));
    on("progress", ({ key, part }) => this.lines.progress(key, part));
    on("held", (item) => this.#held(item));
    on("typing", ({ thread, words }) => this.#isHere(thread) && this.work.typed(words));
    on("draft", ({ thread }) => this.#isHere(thread) && this.#drafted());
    on("loaded", () => this.#fresh());
    for (const type of ["about", "agent", "revoked"]) on(type, () => this.#about());
    on("connection", (refusal) => this.#connection(refusal));
    this.#fresh();
    this.composer.open(room);
    this.#about();
    room.follow();
  }

  close() {
    this.#leave?.abort();
    this.#room?.leave();
    this.#room = null;
    this.announcer.reset();
    if (this.#thread) history.replaceState(null, "");
    this.#thread = null;
    this.draft.show(null);
  }

  /** The thread that is open. */
  get thread() {
    return this.#thread;
  }

  /** Opens a thread. The browser's way back leads out of it. */
  enter(thread) {
    if (thread === this.#thread) return;
    history.pushState({ thread }, "");
    this.#turnTo(thread);
  }

  /** Back to the room. */
  leaveThread() {
    if (history.state?.thread) history.back();
    else this.#turnTo(null);
  }

  #turnTo(thread) {
    const before = this.#thread;
    if (!this.#room?.loaded || thread === before || (thread && !this.#room.thread(thread))) return;
    this.#thread = thread;
    this.announcer.reset();
    this.lines.show(this.#room, thread);
    this.work.reset(this.#room, this.#saidHere());
    this.composer.open(this.#room, thread);
    this.#drafted();
    this.#about();
    this.look();
    const opened = thread ? null : this.lines.find({ message_id: before });
    if (opened) {
      opened.parts.thread.focus({ preventScroll: true });
      opened.scrollIntoView({ block: "nearest" });
    } else if (matchMedia("(pointer: fine)").matches) this.composer.focus();
    else by("thread-back").focus();
  }

  #isHere(thread) {
    return (thread ?? null) === this.#thread;
  }

  #saidHere() {
    return this.#room.lines.filter(({ thread }) => this.#isHere(thread));
  }

  #drafted() {
    this.draft.show(this.#room.loaded ? this.#room.draft(this.#thread) : null, this.#room.agentName);
  }

  /** Answers a line, and lets the reader write. */
  reply(item) {
    this.composer.reply(item);
    this.composer.focus();
  }

  #fresh() {
    this.announcer.reset();
    // After a reload the reader is where they were.
    const opened = this.#thread ?? history.state?.thread;
    if (this.#room.loaded) this.#thread = this.#room.thread(opened) ? opened : null;
    this.lines.show(this.#room, this.#thread);
    this.work.reset(this.#room, this.#saidHere());
    this.#drafted();
    if (this.#thread) {
      this.composer.open(this.#room, this.#thread);
      this.#about();
    }
    this.#chosen = false;
    this.story.show(this.#room, null);
    this.#chooseNewest();
  }

  #line({ line, live, isNew, said }) {
    // Before all is there, nothing is news.
    if (!this.#room.loaded) return;
    const element = this.lines.put(line);
    const mine = this.#room.isMine(line);
    if (live && said && element) {
      if (line.from_agent) this.work.wrote(line);
      else if (isNew && !mine) this.work.othersSpoke();
      if (!mine) this.announcer.line(line, this.#room.nameOf(line));
    }
    // The way into its thread tells of it.
    const opens = line.thread && this.#room.line(line.thread);
    if (opens) this.lines.put(opens);
    if (line.thread_name && line.message_id === this.#thread) this.#about();
    if (live && isNew && !mine) {
      if (element) this.lines.news();
      if (!this.#isLookedAt) this.#room.miss();
    }
    this.look();
    this.#follow(line);
  }

  #waits(item) {
    if (item.state !== "gone") this.#follow(item, this.lines.put(item));
    // Somebody else sent it, and it came back as a line.
    else if (!this.lines.find(item)?.item.message_id) this.lines.remove(item);
  }

  #taken(item) {
    this.lines.put(item);
    // A quick agent answers before the server has told us that it has the line.
    const answered = this.#room.lines.some(({ reply_to }) => reply_to === item.message_id);
    if (item.state === "stored" && !answered) this.work.asked();
    this.#follow(item);
  }

  #held(item) {
    if (!this.#room.loaded) return;
    this.lines.put(item);
    this.#follow(item);
    if (!this.#room.isMine(item)) return;
    if (item.held) return this.announcer.waits(item);
    this.announcer.waitsNoMore(item);
    this.work.wentOn();
  }

  #say(line) {
    this.lines.toEnd();
    // Whoever writes wants to know what becomes of it.
    this.#chosen = false;
    this.#room.outbox.add({ ...line, thread: this.#thread ?? undefined });
    // After the line is there, which is not at once.
    queueMicrotask(() => this.lines.toEnd());
  }

  /** The story goes with the chosen line, or with the newest of the reader. */
  #follow(item) {
    if (sameLine(this.story.item, item)) this.story.show(this.#room, this.lines.find(item)?.item ?? item);
    else if (!this.#chosen && this.#room.isMine(item)) this.#chooseNewest();
    else this.story.stir();
    this.lines.select(this.story.item);
  }

  #chooseNewest() {
    if (this.sheets.isSheet("story") && !this.sheets.isOpen("story")) return;
    const newest = this.#room.shown.findLast(this.#room.isMine);
    if (newest && !sameLine(newest, this.story.item)) this.story.show(this.#room, newest);
    this.lines.select(this.story.item);
  }

  #choose(item, open = false) {
    this.#chosen = true;
    this.story.show(this.#room, item);
    this.lines.select(item);
    if (open) this.sheets.open("story");
  }

  /** Whoever sees the room has read it. */
  look() {
    if (!this.#room?.loaded || !this.#isLookedAt) return;
    this.#room.see();
    if (this.#thread) this.#room.seeThread(this.#thread);
  }

  get #isLookedAt() {
    return !document.hidden && !by("app").hidden;
  }

  #about() {
    const room = this.#room;
    const thread = this.#thread && room.thread(this.#thread);
    const title = room.private ? "Agent" : room.title;
    by("room-name").textContent = thread ? thread.name : title;
    by("thread-back").hidden = !thread;
    by("thread-back").setAttribute("aria-label", `Back to ${title}`);
    by("composer").placeholder = thread ? "Write in this thread" : "Write a message";
    by("agent-dot").className = `dot ${agentMark(room)}`;
    write(by("agent-state"), agentWords(room));
    write(by("whoami"), room.private || [undefined, "you"].includes(room.user) ? "" : `you are ${room.user}`);
    by("revoked").hidden = !room.revoked;
    by("revoked-known").hidden = !room.name || !!room.guest;
    by("revoked-unknown").hidden = !!room.name;
    by("revoked-guest").hidden = by("revoked-enter").hidden = !room.guest;
    by("compose").hidden = room.revoked;
    if (room.revoked) this.composer.recorder.finish();
    this.guide.show(room);
    this.#empty(!by("lines").children.length);
    if (room.revoked) for (const item of room.shown) if (!item.message_id) this.lines.put(item);
  }

  #connection(refusal) {
    const room = this.#room;
    if (!room) return;
    clearTimeout(this.#brief);
    const place = by("connection");
    place.dataset.state = room.connection;
    let words = CONNECTION[room.connection] ?? "";
    if (room.connection === "refused" && !room.revoked && refusal)
      words = `not connected: ${refusal.message}`;
    if (!navigator.onLine) words = "offline: what you write is kept";
    const show = () => write(place, words);
    if (room.connection === "connecting") this.#brief = setTimeout(show, BRIEF);
    else show();
    this.#about();
  }

  #empty(empty) {
    const place = by("empty");
    place.hidden = !(empty && this.#room?.loaded) || this.#room.revoked;
    write(
      place,
      this.#room?.agent === null ? "Nothing was said here yet." : "Nothing was said here yet. Say hello!",
    );
  }

  #working({ typing, words, busy, stopping }) {
    const stop = by("stop");
    const focused = document.activeElement === stop;
    stop.hidden = !busy;
    stop.disabled = stopping;
    write(stop, stopping ? "Stopping…" : "Stop");
    if (focused && (stop.hidden || stop.disabled)) this.composer.focus();
    write(by("typing"), typing ? words || `${this.#room.spokenOf} is at work` : "");
  }

  /** A button of a file. A picture opens among all those that are shown. */
  #file(button) {
    const { view } = button.closest(".file");
    if (button.dataset.does !== "open") return view.press(button.dataset.does);
    this.lightbox.open(this.#room, this.lines.items, view.file);
  }

  /** Answers a question of the agent. The line itself shows what was chosen, to everybody. */
  async #press({ message_id }, button) {
    const group = [...button.parentElement.children];
    if (button.ariaDisabled) return;
    // Not disabled altogether: whoever pressed by key would lose their place.
    for (const one of group) one.ariaDisabled = "true";
    button.ariaBusy = "true";
    try {
      await this.#room.press(message_id, Number(button.dataset.option));
      this.work.asked();
    } catch (error) {
      for (const one of group) one.ariaDisabled = null;
      button.ariaBusy = null;
      this.composer.tell(`Not answered: ${error.message}`);
    }
  }

  async #stop() {
    this.work.stopped();
    try {
      await this.#room.stop(this.#thread);
    } catch (error) {
      this.work.notStopped();
      this.composer.tell(`The agent was not told to stop: ${error.message}`);
    }
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
