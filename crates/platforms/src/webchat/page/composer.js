// Where people write: text, an answer to a line, names of files. What is half
// written survives a reload.

import { CommandMenu } from "./commands.js";
import { handle } from "./keys.js";
import { excerpt } from "./line.js";
import { drop, keep, recall } from "./memory.js";
import { fileWords, make } from "./words.js";

/** The server's limits. */
const MOST_CHARACTERS = 8_000;
const MOST_FILES = 8;
const LONGEST_NAME = 200;
/** From here on the writer sees how much is left. */
const NEARLY = 7_500;

const isTouch = () => matchMedia("(hover: none) and (pointer: coarse)").matches;

export class Composer {
  #room = null;
  #thread = null;
  #reply = null;
  #files = [];

  /** `parts` are the elements, `onSend({ text, reply_to, files })` takes a line. */
  constructor(parts, onSend) {
    Object.assign(this, parts, { onSend });
    this.menu = new CommandMenu(this.field, () => this.#changed());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.field.addEventListener("input", () => this.#changed());
    this.field.addEventListener("keydown", (event) => this.#pressed(event));
    this.unreply.addEventListener("click", () => {
      this.reply(null);
      this.field.focus();
    });
    this.attach.addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      this.#add(this.picker.files);
      this.picker.value = "";
    });
    this.#takeDropped();
  }

  /** Turns to a room, or a thread of it, and what was half written there. */
  open(room, thread = null) {
    this.#room = room;
    this.#thread = thread;
    const draft = recall(this.#name, {});
    this.field.value = draft.text ?? "";
    this.#files = draft.files ?? [];
    this.#showFiles();
    this.menu.open(room);
    this.reply(draft.reply ?? null);
  }

  focus() {
    this.field.focus();
  }

  /** Says something below the field, until the writer goes on. */
  tell(words) {
    this.count.hidden = false;
    this.count.textContent = words;
  }

  /** Answers a line from now on, or none. */
  reply(line) {
    this.#reply = line && { message_id: line.message_id, author: line.author, text: excerpt(line) };
    this.replyBar.hidden = !line;
    if (line) this.replyText.textContent = `Replying to ${this.#room.nameOf(line)}: ${this.#reply.text}`;
    this.#changed();
  }

  get isEmpty() {
    return !this.field.value && !this.#files.length && !this.#reply;
  }

  get replying() {
    return !!this.#reply;
  }

  get #name() {
    return `draft.${handle(this.#room.key)}${this.#thread ? `.${this.#thread}` : ""}`;
  }

  #changed() {
    const text = this.field.value;
    this.#grow();
    this.menu.changed();
    const length = text.length > NEARLY ? [...text].length : 0;
    const tooLong = length > MOST_CHARACTERS;
    this.count.hidden = length <= NEARLY;
    this.count.textContent = tooLong
      ? `${(length - MOST_CHARACTERS).toLocaleString()} characters too many: shorten it, or send it in parts`
      : `${(MOST_CHARACTERS - length).toLocaleString()} characters left`;
    this.send.disabled = tooLong || (!text.trim() && !this.#files.length);
    if (text || this.#files.length || this.#reply) {
      keep(this.#name, { text, files: this.#files, reply: this.#reply });
    } else drop(this.#name);
  }

  #grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  }

  #pressed(event) {
    // A finger has no Shift+Enter, so there Enter breaks and the button sends.
    // While a word is composed, Enter belongs to the keyboard.
    if (event.isComposing || event.keyCode === 229) return;
    if (this.menu.pressed(event)) return;
    if (event.key !== "Enter" || event.shiftKey || isTouch()) return;
    event.preventDefault();
    this.#send();
  }

  #send() {
    if (this.send.disabled) return;
    const line = {
      text: this.field.value.trim(),
      reply_to: this.#reply?.message_id ?? null,
      files: this.#files,
    };
    this.field.value = "";
    this.#files = [];
    this.#showFiles();
    this.reply(null);
    this.field.focus();
    this.onSend(line);
  }

  #add(files) {
    const named = [...files].map(({ name, size, type }) => ({
      name: [...name].slice(-LONGEST_NAME).join(""),
      size,
      type: type || "application/octet-stream",
    }));
    this.#files = [...this.#files, ...named].slice(0, MOST_FILES);
    this.#showFiles();
    this.#changed();
  }

  #showFiles() {
    this.files.hidden = this.fileNote.hidden = !this.#files.length;
    this.files.replaceChildren(
      ...this.#files.map((file, at) => {
        const remove = make("button.remove", { type: "button", "aria-label": `Remove ${file.name}` }, "×");
        remove.addEventListener("click", () => {
          this.#files = this.#files.toSpliced(at, 1);
          this.#showFiles();
          this.#changed();
          this.field.focus();
        });
        return make("li.chip", { "data-testid": "file" }, fileWords(file), remove);
      }),
    );
  }

  #takeDropped() {
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    const over = (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.dropZone.classList.toggle("dropping", event.type !== "drop" && event.type !== "dragleave");
      if (event.type === "drop") this.#add(event.dataTransfer.files);
    };
    for (const kind of ["dragenter", "dragover", "dragleave", "drop"])
      this.dropZone.addEventListener(kind, over);
    this.field.addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length) return;
      event.preventDefault();
      this.#add(event.clipboardData.files);
    });
  }
}
