// The conversation: one element for each line, changed in place and never moved
// without need, so that nobody loses the place they read at.

import { drawLine, fillLine } from "./line.js";

/** Lines shown at first. The rest is a click away. */
const AT_FIRST = 200;
/** How near to the end counts as being there. */
const NEAR = 80;

/** By place; what has none yet, in the order it was written. */
const order = (a, b) => a.place - b.place || a.at - b.at;

export class Lines {
  #byMessage = new Map();
  #byClient = new Map();
  #room = null;
  #thread = null;
  #hidden = 0;
  #stuck = true;
  #top = 0;
  #missed = 0;
  #regroup = 0;
  #current = null;

  constructor({ box, list, earlier, newer, draft, on }) {
    Object.assign(this, { box, list, earlier, newer, on });
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // Whatever makes the text or the window taller or smaller, the end stays in sight.
    const keepUp = new ResizeObserver(() => this.#stuck && this.toEnd());
    keepUp.observe(box);
    keepUp.observe(list);
    keepUp.observe(draft);
    newer.addEventListener("click", () => {
      this.toEnd();
      this.focusLast();
    });
    earlier.addEventListener("click", () => this.#showEarlier());
    list.addEventListener("click", (event) => this.#clicked(event));
    list.addEventListener("keydown", (event) => this.#pressed(event));
    list.addEventListener("focusin", (event) => this.#makeCurrent(event.target.closest(".line")));
  }

  /** Shows a room anew, or one of its threads. */
  show(room, thread = null) {
    this.#room = room;
    this.#thread = thread;
    this.list.classList.toggle("in-thread", !!thread);
    this.#byMessage.clear();
    this.#byClient.clear();
    this.list.replaceChildren();
    this.#current = null;
    const items = this.items;
    this.#hidden = Math.max(0, items.length - AT_FIRST);
    this.earlier.hidden = this.#hidden === 0;
    for (const item of items.slice(this.#hidden)) this.put(item);
    this.#group();
    this.#makeCurrent(this.list.lastElementChild);
    this.toEnd();
  }

  /** All that is said here, also what is not drawn. */
  get items() {
    return this.#room.shown.filter((item) => this.#isHere(item));
  }

  /** Whether a line is said here. What was said in a thread that is not there any more is said in the room. */
  #isHere({ message_id, thread }) {
    if (this.#thread) return thread === this.#thread || message_id === this.#thread;
    return !thread || !this.#room.opensThread(thread);
  }

  /** Shows a line as it is now. */
  put(item) {
    if (!this.#isHere(item)) return null;
    if (!this.find(item) && item.place <= this.#oldest()) return null;
    return this.#draw(item);
  }

  #draw(item) {
    const known = this.find(item);
    const element = known ?? drawLine(item, this.#room);
    if (item.message_id) this.#byMessage.set(item.message_id, element);
    if (item.client_id) this.#byClient.set(item.client_id, element);
    // A late word of something that waits says nothing about a line that is there.
    if (known?.item.message_id && !item.message_id) return known;
    if (known?.item.place < item.place) item.place = known.item.place;
    fillLine(element, item, this.#room);
    this.#settle(element);
    // Whoever comes by Tab finds the newest line first, unless they are among the lines already.
    if (!known && !element.nextElementSibling && !this.list.contains(document.activeElement))
      this.#makeCurrent(element);
    this.#regroup ||= requestAnimationFrame(() => this.#group());
    return element;
  }

  /** So much of a file has gone. */
  progress(key, part) {
    for (const { parts } of this.list.children) parts.files.views?.get(key)?.progress(part);
  }

  /** Tells of something new at the end, if the reader is elsewhere. */
  news() {
    if (this.#stuck) return;
    this.#missed += 1;
    this.newer.textContent = this.#missed === 1 ? "New message" : `${this.#missed} new messages`;
    this.newer.hidden = false;
  }

  remove(item) {
    const element = this.find(item);
    if (!element) return;
    if (element === this.#current)
      this.#makeCurrent(element.nextElementSibling ?? element.previousElementSibling);
    const focused = element.contains(document.activeElement);
    element.remove();
    this.#byMessage.delete(item.message_id);
    this.#byClient.delete(item.client_id);
    if (focused) this.on.lost();
    this.#group();
  }

  find({ message_id, client_id }) {
    return this.#byMessage.get(message_id) ?? this.#byClient.get(client_id);
  }

  select(item) {
    for (const old of this.list.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    (item && this.find(item))?.setAttribute("aria-current", "true");
  }

  toEnd() {
    this.#stuck = true;
    this.#moveTo(this.box.scrollHeight);
    this.#caughtUp();
  }

  focusLast() {
    this.#focus(this.list.lastElementChild);
  }

  /** Brings a line into sight, for instance the one a reply answers. */
  jump(messageId) {
    while (!this.#byMessage.has(messageId) && this.#hidden) this.#showEarlier();
    const element = this.#byMessage.get(messageId);
    if (!element) return;
    this.#focus(element);
    this.#stuck = this.#below < NEAR;
    element.classList.add("found");
    setTimeout(() => element.classList.remove("found"), 1_600);
  }

  /** The place before which nothing is shown yet. */
  #oldest() {
    return this.#hidden ? (this.list.firstElementChild?.item.place ?? 0) : 0;
  }

  #showEarlier() {
    const fromEnd = this.box.scrollHeight - this.box.scrollTop;
    // Counted anew: lines may have gone since.
    const oldest = this.#oldest() || Infinity;
    const hidden = this.items.filter((item) => item.place < oldest);
    this.#hidden = Math.max(0, hidden.length - AT_FIRST);
    for (const item of hidden.slice(this.#hidden)) this.#draw(item);
    this.earlier.hidden = this.#hidden === 0;
    this.#group();
    // Who asks for what was earlier does not read the end.
    this.#stuck = false;
    this.#moveTo(this.box.scrollHeight - fromEnd);
  }

  /** Moves the conversation, so that it does not look as if the reader had. */
  #moveTo(top) {
    this.box.scrollTop = top;
    this.#top = this.box.scrollTop;
  }

  /** How much there is below what is seen. */
  get #below() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight;
  }

  /** Puts an element where its line belongs, if it is not there. */
  #settle(element) {
    const { previousElementSibling: previous, nextElementSibling: next } = element;
    const follows = (one, other) => one && other && order(one.item, other.item) > 0;
    if (element.isConnected && !follows(previous, element) && !follows(element, next)) return;
    let before = null;
    for (let other = this.list.lastElementChild; other; other = other.previousElementSibling) {
      if (other === element) continue;
      if (!follows(other, element)) break;
      before = other;
    }
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    this.list.insertBefore(element, before);
    focused?.focus({ preventScroll: true });
  }

  /** Which lines begin a day, and which go on with what the same person said. */
  #group() {
    cancelAnimationFrame(this.#regroup);
    this.#regroup = 0;
    let before = null;
    for (const element of this.list.children) {
      element.follow(before);
      before = element.item;
    }
    this.on.empty(!before);
  }

  #scrolled() {
    const moved = this.box.scrollTop - this.#top;
    this.#top += moved;
    // A text that became shorter moves the reader up too, but leaves them at the end.
    if (moved < 0 && this.#below > 1) this.#stuck = false;
    else if (moved > 0 ? this.#below < NEAR : this.#below <= 1) {
      this.#stuck = true;
      this.#caughtUp();
    }
  }

  #caughtUp() {
    this.#missed = 0;
    this.newer.hidden = true;
    this.on.seen();
  }

  #clicked(event) {
    const element = event.target.closest(".line");
    if (!element || event.target.closest("a, audio, video")) return;
    const button = event.target.closest("[data-act]");
    const act = button?.dataset.act;
    if (act === "jump") this.jump(element.item.reply_to);
    else if (act) this.on[act](element.item, button);
    // Marking text is reading, not choosing.
    else if (getSelection().isCollapsed) this.on.select(element.item);
  }

  #pressed(event) {
    const element = event.target.closest(".line");
    if (event.target !== element || event.altKey || event.ctrlKey || event.metaKey) return;
    const { firstElementChild: first, lastElementChild: last } = this.list;
    const go = {
      ArrowUp: () => this.#focus(element.previousElementSibling),
      ArrowDown: () => this.#focus(element.nextElementSibling),
      Home: () => this.#focus(first),
      End: () => this.#focus(last),
      Enter: () => this.on.story(element.item),
      // What has no id yet cannot be answered.
      r: element.item.message_id && (() => this.on.reply(element.item)),
    }[event.key];
    if (!go) return;
    event.preventDefault();
    go();
  }

  #focus(element) {
    if (!element) return;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }

  /** One line at a time can be reached by Tab, with its buttons; what asks something always can. */
  #makeCurrent(element) {
    if (!element || element === this.#current) return;
    this.#current?.reach(false);
    element.reach(true);
    this.#current = element;
  }
}
