// What the agent has written of its next line. The line takes its place: nothing is said of it
// before, so that nobody hears a text twice.

import { words } from "./line.js";
import { make } from "./words.js";

export class Draft {
  #text = make("div.text", { "data-testid": "draft-text" });
  #author = make("span.author");

  constructor(place) {
    this.place = place;
    const head = make("div.head", {}, this.#author, " ", make("span.time", {}, "writing…"));
    const column = make("div.column", {}, head, make("div.said", {}, this.#text));
    place.append(make("div.card", {}, make("span.face", { "aria-hidden": "true" }), column));
  }

  /** Shows a draft of whoever people know by this name, or none. */
  show(draft, name) {
    this.place.hidden = !draft;
    this.#author.textContent = name ?? "";
    if (draft) words(this.#text, { from_agent: true, ...draft });
    else this.#text.replaceChildren();
  }
}
