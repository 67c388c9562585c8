// The commands of the room's agent: a slash at the beginning shows them, what is
// typed behind it chooses among them.

import { ask, inRoom } from "./api.js";
import { make } from "./words.js";

/** How long a list is good: an agent may come back with other commands. */
const GOOD_FOR = 15_000;

/** What the field is while the menu is there: a box for words otherwise. */
const COMBOBOX = {
  role: "combobox",
  "aria-autocomplete": "list",
  "aria-controls": "commands",
  "aria-expanded": "true",
  "aria-haspopup": "listbox",
};

const by = (id) => document.getElementById(id);

export class CommandMenu {
  #room = null;
  #known = [];
  #knownAt = -Infinity;
  #asking = null;
  #found = [];
  #active = -1;
  /** What the writer chose or closed: the menu stays shut until something else is typed. */
  #settled = null;

  /** `field` is where people write; `onPick()` hears that its text was changed. */
  constructor(field, onPick) {
    Object.assign(this, { field, onPick, list: by("commands"), status: by("commands-status") });
    field.addEventListener("blur", () => this.#close());
    // The field keeps the focus, and on a phone the keyboard stays.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.#pick(Number(option.dataset.at));
    });
  }

  /** Turns to a room, whose agent may have other commands. */
  open(room) {
    this.#room = room;
    this.#known = [];
    this.#knownAt = -Infinity;
    this.#settled = room && this.field.value;
    this.#close();
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** The text changed. */
  changed() {
    const typed = this.#typed;
    if (typed === null || this.field.value === this.#settled) return this.#close();
    this.#settled = null;
    this.#fetch();
    this.#show(typed);
  }

  /** Takes a key; answers whether it was for the menu. */
  pressed(event) {
    if (!this.isOpen || event.ctrlKey || event.altKey || event.metaKey) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#activate((this.#active + step + this.#found.length) % this.#found.length);
    else if (event.key === "Escape") this.#settle();
    else if (event.key === "Tab" && !event.shiftKey) this.#pick(this.#active);
    // What is there in full already is to be sent.
    else if (event.key === "Enter" && !event.shiftKey && !this.#isWhole) this.#pick(this.#active);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  /** What is typed of a command; null if it is none, or something follows it. */
  get #typed() {
    return /^\/(\S*)$/.exec(this.field.value)?.[1].toLowerCase() ?? null;
  }

  get #isWhole() {
    return this.#found[this.#active]?.name === this.#typed;
  }

  #settle() {
    this.#settled = this.field.value;
    this.#close();
  }

  #close() {
    this.list.hidden = true;
    this.#found = [];
    this.#active = -1;
    this.status.textContent = "";
    for (const name of [...Object.keys(COMBOBOX), "aria-activedescendant"]) this.field.removeAttribute(name);
  }

  async #fetch() {
    const room = this.#room;
    if (this.#asking === room || !room?.name || Date.now() - this.#knownAt < GOOD_FOR) return;
    this.#asking = room;
    try {
      const { commands } = await ask(inRoom(room.name, "commands"), { key: room.key });
      if (room !== this.#room) return;
      this.#known = commands;
      // An agent that has just come may not have said yet what it knows.
      this.#knownAt = commands.length ? Date.now() : -Infinity;
      if (this.#typed !== null && this.field.value !== this.#settled && document.activeElement === this.field)
        this.#show(this.#typed);
    } catch {
      // Whoever knows a command can type it all the same.
    } finally {
      if (this.#asking === room) this.#asking = null;
    }
  }

  #show(typed) {
    const begins = this.#known.filter(({ name }) => name.startsWith(typed));
    const holds = this.#known.filter(({ name }) => !name.startsWith(typed) && name.includes(typed));
    this.#found = [...begins, ...holds];
    if (!this.#found.length) return this.#close();
    this.list.replaceChildren(...this.#found.map(option));
    this.list.hidden = false;
    for (const [name, value] of Object.entries(COMBOBOX)) this.field.setAttribute(name, value);
    this.#activate(0);
    const words = this.#found.length === 1 ? "1 command" : `${this.#found.length} commands`;
    if (this.status.textContent !== words) this.status.textContent = words;
  }

  #activate(at) {
    this.list.children[this.#active]?.setAttribute("aria-selected", "false");
    this.#active = at;
    const option = this.list.children[at];
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", option.id);
  }

  #pick(at) {
    const command = this.#found[at];
    if (!command) return;
    this.field.value = command.usage ? `/${command.name} ` : `/${command.name}`;
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
    this.#settle();
    this.onPick();
  }
}

function option({ name, description, usage }, at) {
  return make(
    "li.command",
    { role: "option", id: `command-${at}`, "aria-selected": "false", "data-at": at, "data-testid": "command" },
    make("span.command-name", {}, `/${name}`, usage ? make("span.command-usage", {}, ` ${usage}`) : null),
    make("span.command-about", {}, description),
  );
}
