// One picture as large as the window, and those before and behind it.

import { nameOf, save, shown, unview } from "./blobs.js";
import { SIGNS, altOf, oneRow, safeName } from "./kinds.js";
import { icon } from "./words.js";

const by = (id) => document.getElementById(id);

export class Lightbox {
  #room = null;
  #pictures = [];
  #at = 0;
  #abort = null;
  /** It holds what it shows. */
  near = true;

  constructor() {
    this.dialog = by("lightbox");
    this.image = by("lightbox-picture");
    for (const [id, path] of [
      ["lightbox-close", "M6 6l12 12M18 6 6 18"],
      ["lightbox-before", "M15 5l-7 7 7 7"],
      ["lightbox-next", "M9 5l7 7-7 7"],
      ["lightbox-save", SIGNS.save],
    ])
      by(id).append(icon(path));
    by("lightbox-close").addEventListener("click", () => this.dialog.close());
    by("lightbox-before").addEventListener("click", () => this.#go(-1));
    by("lightbox-next").addEventListener("click", () => this.#go(1));
    by("lightbox-save").addEventListener("click", () => this.#save());
    this.dialog.addEventListener("keydown", (event) => this.#pressed(event));
    this.dialog.addEventListener("close", () => this.#clear());
    this.image.addEventListener("error", () => this.image.src && this.#tell("This picture cannot be shown"));
    // Beside the picture is out of it.
    this.dialog.addEventListener("click", ({ target }) => target.dataset.out !== undefined && this.dialog.close());
  }

  /** Opens a picture among those of some lines. */
  open(room, items, picture) {
    this.#room = room;
    this.#pictures = items.flatMap((item) => {
      const who = room.isMine(item) ? "You" : room.nameOf(item);
      const pictures = (item.files ?? []).filter(({ kind, id, key }) => kind === "image" && (id || key));
      return pictures.map((file) => ({ file, who }));
    });
    this.dialog.showModal();
    by("lightbox-close").focus();
    this.#show(this.#pictures.findIndex(({ file }) => nameOf(file) === nameOf(picture)));
  }

  #pressed(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.#go(step);
  }

  #go(step) {
    const at = this.#at + step;
    if (at >= 0 && at < this.#pictures.length) this.#show(at);
  }

  async #show(at) {
    this.#clear();
    this.#at = at;
    const { file, who } = this.#pictures[at];
    const abort = (this.#abort = new AbortController());
    const many = this.#pictures.length > 1;
    by("lightbox-before").hidden = by("lightbox-next").hidden = !many;
    // Not disabled altogether: whoever is at the button stays there.
    by("lightbox-before").ariaDisabled = String(at === 0);
    by("lightbox-next").ariaDisabled = String(at === this.#pictures.length - 1);
    by("lightbox-name").textContent = safeName(file.name);
    by("lightbox-who").textContent = many ? `${who} · ${at + 1} of ${this.#pictures.length}` : who;
    by("lightbox-alt").textContent = oneRow(file.alt);
    this.#tell("Fetching the picture…");
    try {
      const { url, width, height } = await shown(this.#room, file, this, { signal: abort.signal });
      if (abort.signal.aborted) return unview(file, this);
      Object.assign(this.image, { alt: altOf(file), width, height, src: url });
      this.image.hidden = false;
      this.#tell("");
    } catch (error) {
      if (!abort.signal.aborted)
        this.#tell(error.status === 404 ? "This picture is no longer here" : error.message);
    }
  }

  async #save() {
    try {
      await save(this.#room, this.#pictures[this.#at].file, { signal: this.#abort.signal });
    } catch (error) {
      this.#tell(`Not saved: ${error.message}`);
    }
  }

  #clear() {
    this.#abort?.abort();
    const shown = this.#pictures[this.#at];
    if (shown) unview(shown.file, this);
    this.image.removeAttribute("src");
    this.image.hidden = true;
  }

  #tell(words) {
    by("lightbox-status").textContent = words;
  }

  lost() {
    this.#clear();
  }
}
