// The files of what is being written: looked at, described and taken back before they are sent.

import { nameOf, shown, unview } from "./blobs.js";
import { nameWords, player } from "./files.js";
import { Full, bytesOf, shelve, unshelve } from "./filestore.js";
import { OCTETS, SIGNS, calledOf, kindOf, safeName } from "./kinds.js";
import { newId } from "./outbox.js";
import { icon, make, sizeOf } from "./words.js";

/** The server's limits. */
const MOST_FILES = 8;
const MOST_BYTES = 25 * 1024 * 1024;
const LONGEST_ALT = 500;

/** Why a file is not taken, or null. */
function objection({ name, size }) {
  if (size > MOST_BYTES)
    return `${safeName(name)} has ${sizeOf(size)}: files of more than 25 MiB are not taken.`;
  return size ? null : `${safeName(name)} is empty.`;
}

/** What is kept of a file while its bytes are in the file store. */
const described = (blob, more) => {
  const type = blob.type || OCTETS;
  const file = { key: newId(), name: safeName(blob.name), size: blob.size, type, ...more };
  return { ...file, kind: kindOf(file) };
};

/** Adds a file to a draft that is not open. `save(file)` writes it down. */
export function attachElsewhere(blob, more, save) {
  const file = described(blob, more);
  save(file);
  shelve(file.key, blob).catch(() => {});
}

export class Attachments {
  #files = [];
  #cards = new Map();
  #opened = 0;

  /** `onChange()` hears that something was added, taken back or described. */
  constructor({ list, note, field }, onChange) {
    Object.assign(this, { list, note, field, onChange });
  }

  get files() {
    return this.#files;
  }

  /** Turns to the files of another draft, as far as their bytes are still here. */
  async open(files) {
    const opened = (this.#opened += 1);
    this.#files = files.filter(({ key }) => key);
    this.tell("");
    this.#draw();
    for (const { key, name } of [...this.#files]) {
      if (await bytesOf(key)) continue;
      if (opened !== this.#opened) return;
      this.#files = this.#files.filter((file) => file.key !== key);
      this.tell(`${safeName(name)} is not in this browser any more; attach it again.`);
      this.#draw();
      this.onChange();
    }
  }

  /** The line has them now. */
  clear() {
    this.#opened += 1;
    this.#files = [];
    this.tell("");
    this.#draw();
  }

  tell(words) {
    this.note.hidden = !words;
    if (this.note.textContent !== words) this.note.textContent = words;
  }

  /** Takes files in, and says which it does not. */
  async add(blobs, told = "", more = {}) {
    const opened = this.#opened;
    const fit = blobs.filter((blob) => !objection(blob)).slice(0, Math.max(0, MOST_FILES - this.#files.length));
    const objections = blobs.map(objection).filter(Boolean);
    const over = blobs.length - objections.length - fit.length;
    if (over)
      objections.push(`A message has ${MOST_FILES} files at the most: ${over} left out. Send them in another.`);
    const added = fit.map((blob) => described(blob, more));
    this.#files = [...this.#files, ...added];
    this.tell([told, ...objections].filter(Boolean).join(" "));
    // What refers to the bytes is written down before them.
    this.onChange();
    const kept = await Promise.all(added.map(({ key }, nth) => this.#shelve(key, fit[nth])));
    if (opened !== this.#opened) return;
    if (kept.includes("full")) {
      const left = added.filter((_, nth) => kept[nth] === "full");
      this.#files = this.#files.filter((file) => !left.includes(file));
      this.tell("This browser keeps enough files that are not sent yet. Send or discard some of them first.");
      this.#draw();
      this.onChange();
    } else if (kept.includes(false))
      this.tell("This browser has no room to keep the files: they go with this tab. Send them before you close it.");
  }

  /** Shows them once the bytes are there to be looked at. */
  async #shelve(key, blob) {
    const shelved = shelve(key, blob).catch((error) => (error instanceof Full ? "full" : false));
    this.#draw();
    return shelved;
  }

  #draw() {
    for (const [key, card] of this.#cards) {
      if (this.#files.some((file) => file.key === key)) continue;
      card.end();
      this.#cards.delete(key);
    }
    for (const file of this.#files)
      if (!this.#cards.has(file.key)) this.#cards.set(file.key, this.#card(file));
    this.list.hidden = !this.#files.length;
    const elements = this.#files.map(({ key }) => this.#cards.get(key).element);
    if (elements.length !== this.list.children.length || elements.some((it, nth) => this.list.children[nth] !== it))
      this.list.replaceChildren(...elements);
  }

  #card(file) {
    const { kind, name, size } = file;
    const called = kind === "voice" ? calledOf(kind) : nameWords(name);
    const look = make("span.look", { "aria-hidden": "true" }, icon(SIGNS[kind]));
    const kindOfIt = kind === "voice" ? "" : `${calledOf(kind)} · `;
    const about = make("span.file-about", {}, `${kindOfIt}${sizeOf(size)}`);
    const words = make("div.file-words", {}, make("span.file-name", {}, called), about);
    const remove = make("button.remove", { type: "button", "aria-label": `Remove ${safeName(name)}` });
    remove.append(icon("M6 6l12 12M18 6 6 18"));
    remove.addEventListener("click", () => this.#remove(file));
    const element = make("li.attachment", { "data-testid": "file", "data-kind": kind }, look, words, remove);
    if (kind === "image") element.append(this.#description(file));
    const view = { near: true, lost() {} };
    // Not before its bytes are at hand.
    queueMicrotask(() => this.#look(file, view, look, element));
    const end = () => {
      view.near = false;
      unview(file, view);
    };
    return { element, end };
  }

  /** What it shows, or sounds like. */
  async #look(file, view, look, element) {
    if (!["image", "voice", "audio"].includes(file.kind)) return;
    try {
      const { url } = await shown(null, file, view, {});
      if (file.kind === "image") look.replaceChildren(make("img", { alt: "", src: url }));
      else element.append(player(file, url));
    } catch {
      // A sign stands for it. The server looks at the bytes, and says what it is.
    }
  }

  /** Where a picture is described, for the agent and for whoever does not see it. */
  #description(file) {
    const label = `What ${safeName(file.name)} shows`;
    const field = make("input.alt", {
      type: "text",
      maxLength: LONGEST_ALT,
      value: file.alt ?? "",
      placeholder: "Describe it",
      "aria-label": label,
      "data-testid": "alt",
      autocomplete: "off",
    });
    field.addEventListener("input", () => {
      const alt = field.value.trim();
      this.#files = this.#files.map((one) => (one.key === file.key ? { ...one, alt } : one));
      this.onChange();
    });
    return field;
  }

  #remove(file) {
    const at = this.#files.findIndex(({ key }) => key === file.key);
    this.#files = this.#files.toSpliced(at, 1);
    this.tell("");
    this.#draw();
    this.onChange();
    unshelve([nameOf(file)]);
    const next = this.list.children[Math.min(at, this.list.children.length - 1)];
    (next?.querySelector(".remove") ?? this.field).focus();
  }
}
