// The files of a line, each shown as what it is: pictures, players, and cards for all the rest. What is
// small is fetched when it comes into view, all else when somebody asks for it.

import { Refused } from "./api.js";
import { Unshowable, nameOf, save, shown, unview } from "./blobs.js";
import { SIGNS, altOf, calledOf, halves, safeName } from "./kinds.js";
import { icon, make, sizeOf } from "./words.js";

const MIB = 1024 * 1024;
/** What is fetched by itself. */
const UNASKED = { image: 8 * MIB, voice: 2 * MIB, audio: 2 * MIB, video: 4 * MIB };
/** So far outside the conversation's window a file counts as coming into view. */
const AHEAD = "400px";

const eyes = new IntersectionObserver(
  (seen) => {
    for (const { target, isIntersecting } of seen) {
      target.view.look(isIntersecting);
      if (!target.isConnected) eyes.unobserve(target);
    }
  },
  { root: document.getElementById("scroll"), rootMargin: `${AHEAD} 0px` },
);

/** A name that keeps to itself, whichever way it is written, and whose ending is always seen. */
export function nameWords(name) {
  const [stem, ending] = halves(safeName(name));
  return make("bdi.name", { title: stem + ending }, make("span.stem", {}, stem), make("span.ending", {}, ending));
}

/** Shows the files of a line in a list. What is there already stays as it is. */
export function showFiles(list, files, room) {
  const before = list.views ?? new Map();
  list.views = new Map();
  // Pictures stand together.
  const isPicture = ({ kind }) => kind === "image";
  const sorted = [...files.filter(isPicture), ...files.filter((file) => !isPicture(file))];
  for (const [nth, file] of sorted.entries()) {
    const name = nameOf(file) ?? `named ${nth}`;
    const view = before.get(name) ?? new FileView(room);
    view.show(file);
    list.views.set(name, view);
  }
  for (const [name, view] of before) if (!list.views.has(name)) view.end();
  list.hidden = !files.length;
  list.classList.toggle("album", files.filter(isPicture).length > 1);
  const elements = [...list.views.values()].map(({ element }) => element);
  if (elements.some((element, nth) => list.children[nth] !== element) || list.children.length > elements.length)
    list.replaceChildren(...elements);
}

class FileView {
  #abort = null;
  #entry = null;
  #inView = false;
  #reachable = false;
  #part = null;
  /** What went wrong, and whether it may go better. */
  #fault = null;

  constructor(room) {
    this.room = room;
    this.element = make("li.file", { "data-testid": "file" });
    this.element.view = this;
    this.place = make("div.place", { hidden: true });
    this.name = make("span.file-name");
    this.about = make("span.file-about", { "data-testid": "file-about" });
    this.again = make("button.link", { ...act("load"), hidden: true }, "Try again");
    this.save = button("save", "save", "");
    this.sign = make("span.sign", { "aria-hidden": "true" });
    this.start = button("play", "load", "");
    this.start.hidden = true;
    const words = make("span.file-words", {}, this.name, this.about, this.again);
    this.card = make("div.file-card", {}, this.sign, this.start, words, this.save);
    this.bar = make("progress.sent", { max: 1, value: 0, hidden: true });
    this.element.append(this.place, this.card, this.bar);
    eyes.observe(this.element);
  }

  /** Whether somebody looks at it or listens to it. */
  get near() {
    return this.#inView || this.#player?.paused === false;
  }

  get #player() {
    return this.place.querySelector("audio, video");
  }

  /** What is known of it now. */
  show(file) {
    const before = this.file;
    this.file = file;
    if (before?.kind !== file.kind) this.#empty();
    this.element.dataset.kind = file.kind ?? "document";
    this.sign.replaceChildren(icon(SIGNS[file.kind] ?? SIGNS.document));
    this.start.replaceChildren(icon(file.kind === "image" ? SIGNS.image : SIGNS.play));
    this.name.replaceChildren(file.kind === "voice" ? calledOf("voice") : nameWords(file.name));
    this.save.setAttribute("aria-label", `Save ${safeName(file.name)}`);
    const image = this.place.querySelector("img");
    if (image) image.alt = altOf(file);
    if (file.id) this.#part = null;
    this.#draw();
    if (before && this.#inView) this.look(true);
  }

  /** How much of it has gone to the server, or null. */
  progress(part) {
    if (this.file.id) return;
    this.#part = part;
    this.#draw();
  }

  /** It came into view, or went. */
  look(inView) {
    this.#inView = inView;
    if (!inView) return this.#abort?.asked || this.#abort?.abort();
    if (this.#fault?.passes) this.#fault = null;
    if (this.#unasked && !this.#fault) this.load();
  }

  get #unasked() {
    const { kind, size, id, key } = this.file;
    if (!(kind in UNASKED)) return false;
    return (key && !id) || (size <= UNASKED[kind] && !navigator.connection?.saveData);
  }

  /** Does what a button of it asks for. */
  press(does) {
    if (does === "load") this.load(true);
    if (does === "save") this.#saves();
  }

  /** Gets it, and shows it. */
  async load(asked = false) {
    if (this.#entry || this.#abort) return;
    const abort = (this.#abort = new AbortController());
    abort.asked = asked;
    this.#fault = null;
    this.#draw();
    const { signal } = abort;
    const onProgress = asked ? (part) => this.#fetched(part) : undefined;
    const file = this.file;
    try {
      const entry = await shown(this.room, file, this, { signal, onProgress });
      if (signal.aborted || file.kind !== this.file.kind) return unview(file, this);
      this.#entry = entry;
      this.#fill(entry, asked);
    } catch (error) {
      if (!signal.aborted) this.#fails(error);
    } finally {
      if (this.#abort === abort) this.#abort = null;
      this.#draw();
    }
  }

  async #saves() {
    const { signal } = new AbortController();
    this.save.ariaBusy = "true";
    try {
      await save(this.room, this.file, { signal, onProgress: (part) => this.#fetched(part) });
      this.#fault = this.#fault?.shows ? this.#fault : null;
    } catch (error) {
      this.#fails(error);
    } finally {
      this.save.ariaBusy = null;
      this.#draw();
    }
  }

  #fetched(part) {
    write(this.about, `${this.#words} · ${percent(part)}`);
  }

  #fails(error) {
    const gone = error.status === 404;
    if (error instanceof Unshowable) this.#fault = { words: error.message, shows: true };
    else if (gone) this.#fault = { words: "No longer here. Files are kept for 30 days.", gone };
    else if (error.status === 401)
      this.#fault = { words: "This invitation does not open it any more", gone: true };
    else {
      const passes = !(error instanceof Refused) || error.passes;
      this.#fault = { words: `Not fetched: ${error.message}`, passes };
    }
  }

  #fill({ url, width, height }, asked) {
    const { kind } = this.file;
    const broken = () => {
      this.#empty();
      this.#fails(new Unshowable(kind === "image" ? "This picture cannot be shown" : "This cannot be played here"));
      this.#draw();
    };
    const made = kind === "image" ? picture(this.file, url, { width, height }) : player(this.file, url);
    (kind === "image" ? made.firstElementChild : made).addEventListener("error", broken, { once: true });
    const focused = this.element.contains(document.activeElement);
    this.place.replaceChildren(made);
    this.reach(this.#reachable);
    this.#draw();
    if (!asked) return;
    if (kind !== "image") made.play().catch(() => {});
    if (focused) made.focus({ preventScroll: true });
  }

  /** Its address has ended: it is fetched again when somebody looks. */
  lost() {
    const { width, height } = this.place.getBoundingClientRect();
    this.#empty();
    // What is read around it does not move.
    if (this.file.kind === "image")
      Object.assign(this.element.style, { width: `${width}px`, height: `${height}px` });
    this.#draw();
  }

  #empty() {
    if (this.#entry) unview(this.file, this);
    this.#entry = null;
    this.place.replaceChildren();
  }

  /** It is not shown any more. */
  end() {
    this.#abort?.abort();
    this.#empty();
    eyes.unobserve(this.element);
  }

  get #words() {
    const { kind, size } = this.file;
    // A voice message has no other name.
    return kind === "voice" ? sizeOf(size ?? 0) : `${calledOf(kind)} · ${sizeOf(size ?? 0)}`;
  }

  #draw() {
    const { file } = this;
    const filled = this.place.childElementCount > 0;
    const here = !!(file.id || file.key);
    const waits = file.kind in UNASKED && here && !filled && !this.#fault;
    this.element.dataset.state = filled ? "shown" : this.#fault ? "failed" : this.#abort ? "fetching" : "waiting";
    if (filled) this.element.removeAttribute("style");
    this.place.hidden = !filled;
    // A picture stands for itself; of a player one sees what it plays.
    this.card.hidden = filled && file.kind === "image";
    this.start.hidden = !waits;
    this.sign.hidden = waits;
    this.start.disabled = !!this.#abort;
    this.start.setAttribute("aria-label", `${file.kind === "image" ? "Show" : "Play"} ${safeName(file.name)}`);
    this.save.hidden = !here || !!this.#fault?.gone;
    this.again.hidden = !this.#fault?.passes;
    const told = this.#fault?.words ?? (here ? this.#words : `${this.#words} · only its name was kept`);
    const sending = this.#part !== null && !file.id;
    write(this.about, sending ? `${this.#words} · ${percent(this.#part)}` : told);
    this.bar.hidden = !sending;
    this.bar.value = this.#part ?? 0;
    this.bar.setAttribute("aria-label", `Sending ${safeName(file.name)}`);
  }

  /** Whether Tab comes by. */
  reach(can) {
    this.#reachable = can;
    for (const part of this.element.querySelectorAll("button, audio, video")) part.tabIndex = can ? 0 : -1;
  }
}

const percent = (part) => `${Math.floor(part * 100)} %`;

function button(sign, does, label) {
  const made = make("button.file-button", { ...act(does), "aria-label": label });
  made.append(icon(SIGNS[sign]));
  return made;
}

/** What a button of a file asks of its view. */
const act = (does) => ({ type: "button", "data-act": "file", "data-does": does });

function picture(file, url, { width, height }) {
  const image = make("img", { alt: altOf(file), width, height, decoding: "async", draggable: false, src: url });
  return make("button.picture", { ...act("open"), "data-testid": "picture" }, image);
}

/** A player as the browser has it: with its keys, its words and its look by night. */
export function player(file, url) {
  const tag = file.kind === "video" ? "video" : "audio";
  const label = file.kind === "voice" ? calledOf("voice") : `${calledOf(file.kind)} ${safeName(file.name)}`;
  const made = make(tag, { controls: true, preload: "metadata", "aria-label": label, "data-testid": "player" });
  made.setAttribute("controlslist", "nodownload");
  made.setAttribute("playsinline", "");
  // A recording that a browser made says nothing of its length: it is found at the end.
  const atEnd = () => {
    made.removeEventListener("timeupdate", atEnd);
    made.currentTime = 0;
  };
  made.addEventListener("loadedmetadata", () => {
    if (made.duration !== Infinity || !made.paused) return;
    made.addEventListener("timeupdate", atEnd);
    made.currentTime = 1e9;
  });
  made.src = url;
  return made;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
