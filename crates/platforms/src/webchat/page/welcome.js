// For whoever has no key yet: how to get one, or a room that is open to all.

import { ask, inRoom } from "./api.js";
import { objection, take } from "./keys.js";
import { make } from "./words.js";

export class Welcome {
  #entering = false;

  /** `onKeys(keys)` hears of keys that opened something. */
  constructor(parts, onKeys) {
    Object.assign(this, parts, { onKeys });
    this.paste.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.link.value.trim();
      const why = text ? objection(text) : "Paste the link you were given.";
      this.say(why ?? "");
      if (why) return this.link.focus();
      this.link.value = "";
      this.onKeys(take(text));
    });
    this.enter.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#enterRoom(event.submitter?.value ?? this.rooms.querySelector("button").value);
    });
  }

  /** Shows which rooms are open to all, if any are. */
  async show() {
    this.say("");
    try {
      const { rooms } = await ask("open");
      this.enter.hidden = !rooms.length;
      this.rooms.replaceChildren(
        ...rooms.map((room) => make("button.primary", { type: "submit", value: room }, `Enter ${room}`)),
      );
    } catch {
      this.enter.hidden = true;
    }
  }

  async #enterRoom(room) {
    // Two clicks are one visitor.
    if (this.#entering) return;
    this.#entering = true;
    const name = this.name.value.trim();
    try {
      const { key } = await ask(inRoom(room, "enter"), { method: "POST", body: name ? { name } : {} });
      this.onKeys(take(key));
    } catch (error) {
      this.say(`You are not in: ${error.message}.`);
    } finally {
      this.#entering = false;
    }
  }

  /** Says something below the ways in. */
  say(words) {
    this.status.textContent = words;
  }
}
