// What the agent has written of its next line. The line takes its place: nothing is said of it
// before, so that nobody hears a text twice.

import { words } from "./line.js";
import { make } from "./words.js";

export class Draft {
  #text = make("div.text", { "data-testid": "draft-text" });

  constructor(place) {
    this.place = place;
    const head = make("div.head", {}, make("span.author", {}, "agent"), " ", make("span.time", {}, "writing…"));
    const column = make("div.column", {}, head, make("div.said", {}, this.#text));
    place.append(make("div.card", {}, make("span.face", { "aria-hidden": "true" }), column));
  }

  /** Shows a draft, or none. */
  show(draft) {
    this.place.hidden = !draft;
    if (draft) words(this.#text, { from_agent: true, ...draft });
    else this.#text.replaceChildren();
  }
}
