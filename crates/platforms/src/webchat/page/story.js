// What happened to a message: the legs it took, drawn as a small timeline.

import { drawLegs, legsOf } from "./legs.js";
import { excerpt } from "./line.js";
import { make } from "./words.js";

/** Events come in swarms while an answer is written. */
const SETTLE = 250;
/** How often an unfinished story is asked for again, and for how long. */
const AGAIN = 1_000;
const PATIENCE = 60_000;

export class Story {
  #item = null;
  #room = null;
  #timer = 0;
  #due = 0;
  #until = 0;
  #asked = 0;

  constructor({ place, about, status }) {
    Object.assign(this, { place, about, status });
  }

  /** Tells the story of a line from now on, or of none. */
  show(room, item) {
    const same = item && this.#room === room && sameLine(this.#item, item);
    this.#room = room;
    this.#item = item;
    this.#until = Date.now() + PATIENCE;
    if (!same) {
      // What the server still says of another line, perhaps of another room, is not shown here.
      this.#asked += 1;
      this.#blank(item);
      this.#ask();
    } else this.#later(SETTLE);
  }

  get item() {
    return this.#item;
  }

  /** Something happened in the room: perhaps to this message. */
  stir() {
    if (!this.#item) return;
    this.#until = Date.now() + PATIENCE;
    this.#later(SETTLE);
  }

  #later(pause) {
    // The earlier look stands: a swarm does not put it off for ever.
    if (this.#timer && this.#due <= Date.now() + pause) return;
    clearTimeout(this.#timer);
    this.#due = Date.now() + pause;
    this.#timer = setTimeout(() => this.#ask(), pause);
  }

  #blank(item) {
    this.about.textContent = "";
    this.place.replaceChildren();
    if (!item) this.#note("Choose a message, and see which way it took.");
    else if (!item.message_id)
      this.#note("It is still on this device. Its way begins when the server has it.");
  }

  #note(words) {
    this.about.textContent = "";
    this.place.replaceChildren(make("p.note", {}, words));
  }

  async #ask() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const item = this.#item;
    if (!item?.message_id || document.hidden) return;
    const asked = (this.#asked += 1);
    let story = null;
    try {
      story = await this.#room.story(item.message_id);
    } catch (error) {
      if (asked !== this.#asked) return;
      if (error.status === 404) return this.#note(sentence(error.message));
      if (!this.place.children.length)
        this.#note("This cannot be told right now. It comes back with the connection.");
      // A closed door is not knocked at every second.
      if (error.status === 401) return;
    }
    // Another message was chosen while the server looked.
    if (asked !== this.#asked) return;
    const { legs, finished, outcome } = story ? legsOf(story, this.#room.agent) : { finished: false };
    if (story) this.#draw(item, story, legs, outcome);
    if (!finished && Date.now() < this.#until) this.#later(AGAIN);
  }

  #draw(item, story, legs, outcome) {
    const behind =
      item.from_agent && story.message_id !== item.message_id && this.#room.line(story.message_id);
    this.about.textContent = behind ? `Answered: ${excerpt(behind, 80)}` : excerpt(item, 80);
    const id = story.message_id ?? item.message_id;
    const command = make("code", {}, `${this.#room.explain ?? "angelia explain"} ${id}`);
    const terminal = make("p.terminal", {}, "The same from a terminal: ", command);
    this.place.replaceChildren(drawLegs(legs), terminal);
    if (this.status.textContent !== outcome) this.status.textContent = outcome;
  }
}

const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

export const sameLine = (a, b) =>
  !!a &&
  !!b &&
  ((a.message_id && a.message_id === b.message_id) || (a.client_id && a.client_id === b.client_id));
