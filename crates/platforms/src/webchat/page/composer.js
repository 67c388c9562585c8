// Where people write: text, an answer to a line, files, their voice. What is half
// written survives a reload.

import { takeFiles } from "./attach.js";
import { Attachments, attachElsewhere } from "./attachments.js";
import { CommandMenu } from "./commands.js";
import { handle } from "./keys.js";
import { excerpt } from "./line.js";
import { drop, keep, recall } from "./memory.js";
import { Recorder } from "./recorder.js";

/** The server's limit. */
const MOST_CHARACTERS = 8_000;
/** From here on the writer sees how much is left. */
const NEARLY = 7_500;

const isTouch = () => matchMedia("(hover: none) and (pointer: coarse)").matches;

export class Composer {
  #room = null;
  #thread = null;
  #reply = null;

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
    const { files: list, fileNote, field } = parts;
    this.attached = new Attachments({ list, note: fileNote, field }, () => this.#changed());
    // Where nobody can write, nothing is taken.
    takeFiles(parts, (files, told) => this.form.hidden || this.attached.add(files, told));
    this.recorder = new Recorder(this.recording, {
      where: () => this.#room && this.#name,
      tell: (words) => this.attached.tell(words),
      onRecorded: (file, place) => this.#recorded(file, place),
    });
  }

  /** Turns to a room, or a thread of it, and what was half written there. */
  open(room, thread = null) {
    // What is being spoken stays where it was begun.
    const before = this.#room && this.#name;
    this.#room = room;
    this.#thread = thread;
    if (before !== this.#name) this.recorder.finish();
    const draft = recall(this.#name, {});
    this.field.value = draft.text ?? "";
    this.attached.open(draft.files ?? []);
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

  get #files() {
    return this.attached.files;
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
    // On a narrow screen what is not needed makes way.
    this.form.classList.toggle("begun", !this.send.disabled);
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
    // It is written down as a line before it is no draft any more: something refers to its files all the time.
    this.onSend(line);
    this.field.value = "";
    this.attached.clear();
    this.reply(null);
    this.field.focus();
  }

  /** Somebody spoke, perhaps in a conversation that is not open any more. */
  #recorded(file, place) {
    if (this.#room && place === this.#name) {
      this.attached.add([file], "", { voice: true });
      return this.field.focus();
    }
    attachElsewhere(file, { voice: true }, (spoken) => {
      const draft = recall(place, {});
      keep(place, { ...draft, files: [...(draft.files ?? []), spoken] });
    });
  }
}
