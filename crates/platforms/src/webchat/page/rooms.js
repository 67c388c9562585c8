// The list of rooms this browser has keys for.

import { icon, make } from "./words.js";

/** Whether a room's agent is there, in words. */
export const agentWords = (room) => {
  if (room.revoked) return room.name ? "closed to you" : "opens nothing here";
  if (room.awaited) return "no agent yet: messages are kept for the first";
  return (
    { true: "agent connected", false: "agent away: messages are kept", null: "no agent" }[room.agent] ?? ""
  );
};

/** The dot's colour says the same as the words. */
export const agentMark = (room) =>
  room.revoked ? "closed" : ({ true: "here", false: "away" }[room.agent] ?? "none");

export class RoomList {
  #entries = new Map();

  /** `on.open(room)` and `on.forget(room)` hear what people want. */
  constructor({ shared, direct, sharedHead, directHead }, on) {
    Object.assign(this, { shared, direct, sharedHead, directHead, on });
  }

  /** Shows these rooms, and no others. */
  show(rooms, current) {
    for (const [room, entry] of this.#entries) {
      if (rooms.includes(room)) continue;
      entry.remove();
      this.#entries.delete(room);
    }
    for (const room of rooms) this.#put(room, room === current);
    this.sharedHead.hidden = !this.shared.children.length;
    this.directHead.hidden = !this.direct.children.length;
  }

  #put(room, isCurrent) {
    if (!this.#entries.has(room)) this.#entries.set(room, this.#draw(room));
    const entry = this.#entries.get(room);
    const list = room.private ? this.direct : this.shared;
    if (entry.parentElement !== list) list.append(entry);
    const { open, name, dot, unread, agent, forget } = entry.parts;
    open.dataset.room = room.name ?? "";
    if (isCurrent) open.setAttribute("aria-current", "page");
    else open.removeAttribute("aria-current");
    const agentName = room.agentName === "agent" ? "Agent" : room.agentName;
    name.textContent = room.private ? `${agentName} and ${room.user}` : room.title;
    dot.className = `dot ${agentMark(room)}`;
    agent.textContent = agentWords(room).split(":")[0];
    unread.hidden = !room.unread;
    unread.replaceChildren(
      room.unread > 99 ? "99+" : String(room.unread),
      make("span.unseen", {}, " unread"),
    );
    forget.setAttribute("aria-label", `Forget ${name.textContent} on this device`);
  }

  #draw(room) {
    const part = {
      dot: make("span.dot", { "aria-hidden": "true" }),
      name: make("span.name"),
      agent: make("span.agent"),
      unread: make("span.unread", { hidden: true }),
      forget: make(
        "button.forget",
        { type: "button", title: "Forget this room on this device" },
        icon("M6 6l12 12M18 6 6 18"),
      ),
    };
    part.open = make(
      "button.room",
      { type: "button", "data-testid": "room" },
      part.dot,
      make("span.label", {}, part.name, " ", part.agent),
      part.unread,
    );
    part.open.addEventListener("click", () => this.on.open(room));
    part.forget.addEventListener("click", () => this.on.forget(room));
    const entry = make("li", {}, part.open, part.forget);
    entry.parts = part;
    return entry;
  }
}
