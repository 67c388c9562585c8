// On narrow screens the rooms and the story are sheets above the conversation.

export class Sheets {
  #open = null;
  #back = null;

  /** `sheets` by name: `{ element, button, close, wide }`; `rest` is all that lies below. */
  constructor(sheets, rest, curtain) {
    Object.assign(this, { sheets, rest, curtain });
    for (const [name, { button, close, wide }] of Object.entries(sheets)) {
      button.addEventListener("click", () => this.open(name));
      close.addEventListener("click", () => this.close());
      // A column is no sheet: what was one is closed, and the other way round.
      wide.addEventListener("change", () => {
        this.close();
        this.#hideUnseen();
      });
    }
    curtain.addEventListener("click", () => this.close());
    this.#hideUnseen();
  }

  isSheet(name) {
    return !this.sheets[name].wide.matches;
  }

  isOpen(name) {
    return this.#open === name;
  }

  open(name) {
    if (!this.isSheet(name)) return;
    this.close();
    this.#open = name;
    this.#back = document.activeElement;
    const { element, button, close } = this.sheets[name];
    this.#hideUnseen();
    button.setAttribute("aria-expanded", "true");
    element.classList.add("open");
    this.curtain.hidden = false;
    for (const part of this.rest) if (part !== element) part.inert = true;
    close.focus();
    this.onOpen?.(name);
  }

  /** Closes what is open. Whether anything was. */
  close() {
    if (!this.#open) return false;
    const { element, button } = this.sheets[this.#open];
    this.#open = null;
    element.classList.remove("open");
    button.setAttribute("aria-expanded", "false");
    this.curtain.hidden = true;
    for (const part of this.rest) part.inert = false;
    this.#hideUnseen();
    this.#back?.focus({ preventScroll: true });
    return true;
  }

  /** A closed sheet can be neither reached nor read. */
  #hideUnseen() {
    for (const [name, { element }] of Object.entries(this.sheets)) {
      element.inert = this.isSheet(name) && this.#open !== name;
    }
  }
}
