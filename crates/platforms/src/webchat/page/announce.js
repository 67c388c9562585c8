// What a screen reader says of the conversation: every line once, and one that
// is still being written only when it stands still. If it goes on after that, what
// was added.

import { spoken } from "./line.js";

/** So long a line has to stand still. */
const STILL = 1_500;
/** A longer text is better read than listened to. */
const MOST = 600;
/** Lines whose words are remembered. Older ones hardly change any more. */
const REMEMBERED = 100;

export class Announcer {
  #waiting = new Map();
  #spoken = new Map();
  /** Lines that are held, each with what is about to be said of it. */
  #held = new Map();

  constructor(region) {
    this.region = region;
  }

  /** A line came or changed; this is how people know who wrote it. */
  line(item, name) {
    clearTimeout(this.#waiting.get(item.message_id));
    const speak = () => {
      this.#waiting.delete(item.message_id);
      const words = spoken(item);
      const added = whatIsNew(this.#spoken.get(item.message_id) ?? "", words);
      this.#remember(item.message_id, words);
      if (added) this.say(`${name}: ${added}`);
    };
    if (!item.from_agent) return speak();
    this.#waiting.set(item.message_id, setTimeout(speak, STILL));
  }

  /** A line of ours is held: said once, if it is so for longer than a moment. */
  waits(item) {
    const speak = () => this.say("Your message waits until the agent has finished");
    this.waitsNoMore(item);
    if (this.#held.size === 0) this.#held.set(item.message_id, setTimeout(speak, STILL));
    else this.#held.set(item.message_id, 0);
  }

  /** It is not any more. */
  waitsNoMore({ message_id }) {
    clearTimeout(this.#held.get(message_id));
    this.#held.delete(message_id);
  }

  #remember(id, words) {
    this.#spoken.delete(id);
    this.#spoken.set(id, words);
    if (this.#spoken.size > REMEMBERED) this.#spoken.delete(this.#spoken.keys().next().value);
  }

  /** Another room is open. */
  reset() {
    for (const timer of this.#waiting.values()) clearTimeout(timer);
    for (const timer of this.#held.values()) clearTimeout(timer);
    this.#waiting.clear();
    this.#held.clear();
    this.#spoken.clear();
    this.region.replaceChildren();
  }

  say(text) {
    const words = document.createElement("p");
    words.textContent = text.length > MOST ? `${text.slice(0, MOST)}…` : text;
    this.region.append(words);
    // Spoken by then. What stays would be found by somebody who reads the page.
    setTimeout(() => words.remove(), 10_000);
  }
}

/** What follows the words that both texts begin with. */
export function whatIsNew(before, now) {
  const [old, words] = [before, now].map((text) => text.split(" "));
  const same = words.findIndex((word, nth) => word !== old[nth]);
  return same < 0 ? "" : words.slice(same).join(" ");
}
