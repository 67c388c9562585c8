// "Connect your hermes-agent": the lines to paste, and whether it worked.

const COPIED_FOR = 2_000;

export class Guide {
  #open = true;
  #wasConnected = false;

  constructor(parts) {
    Object.assign(this, parts);
    this.fold.addEventListener("click", () => {
      this.#open = !this.#open;
      this.#showFold();
    });
    this.copy.addEventListener("click", () => this.#copyLines());
  }

  /** Shows how things stand in a room. */
  show(room) {
    const news = this.room !== room;
    this.room = room;
    this.card.hidden = !room.guide || room.revoked;
    if (!room.guide) return;
    const lines = room.guide.lines.join("\n");
    if (this.lines.textContent !== lines) this.lines.textContent = lines;
    const connected = room.agent === true;
    if (news || connected !== this.#wasConnected) this.#open = !connected;
    this.#wasConnected = connected;
    this.card.classList.toggle("connected", connected);
    const state = connected ? "connected" : "waiting for it to dial in…";
    if (this.state.textContent !== state) this.state.textContent = state;
    this.#showFold();
  }

  #showFold() {
    this.body.hidden = !this.#open;
    this.fold.setAttribute("aria-expanded", String(this.#open));
    this.fold.textContent = this.#open ? "Hide" : "Show the lines";
  }

  async #copyLines() {
    let copied = true;
    try {
      await navigator.clipboard.writeText(`${this.lines.textContent}\n`);
    } catch {
      // No clipboard without https: mark the lines, for the keyboard to copy.
      getSelection().selectAllChildren(this.lines);
      copied = document.execCommand("copy");
    }
    this.copy.textContent = copied ? "Copied" : "Marked: press Ctrl+C";
    setTimeout(() => (this.copy.textContent = "Copy"), COPIED_FOR);
  }
}
