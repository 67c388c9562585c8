// Puts the page together: which rooms there are, and which one is open.

import { sweep } from "./filestore.js";
import { SIGNS } from "./kinds.js";
import { forget, handle, held, inherit, takeFromAddress } from "./keys.js";
import { keep, onElsewhere, onForgetful, recall } from "./memory.js";
import { Room } from "./room.js";
import { RoomList } from "./rooms.js";
import { Sheets } from "./sheets.js";
import { Talk } from "./talk.js";
import { Welcome } from "./welcome.js";
import { icon, make } from "./words.js";

/** How often rooms that are not open are looked at. */
const LOOK = 15_000;

const by = (id) => document.getElementById(id);
const draw = (id, path) => by(id).append(icon(path));

draw("rooms-button", "M4 7h16M4 12h16M4 17h16");
draw("story-button", "M12 7v5l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0");
by("story-button").append(make("span.words", {}, "What happened"));
draw("thread-back", "M15 5l-7 7 7 7");
for (const id of ["rooms-close", "story-close", "unreply"]) draw(id, "M6 6l12 12M18 6 6 18");
draw(
  "attach",
  "m20 11-8.5 8.500a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.700l-8.5 8.500a1.7 1.7 0 0 1-2.4-2.400L14.5 7",
);
draw("camera", "M4 8h3l2-3h6l2 3h3v11H4zM12 10a3.500 3.500 0 1 1 0 7 3.500 3.500 0 0 1 0-7");
draw("record", SIGNS.voice);
draw("send", "M5 12h13M12 5l7 7-7 7");

const sheets = new Sheets(
  {
    rooms: {
      element: by("rooms"),
      button: by("rooms-button"),
      close: by("rooms-close"),
      wide: matchMedia("(min-width: 720px)"),
    },
    story: {
      element: by("story"),
      button: by("story-button"),
      close: by("story-close"),
      wide: matchMedia("(min-width: 1100px)"),
    },
  },
  [by("rooms"), by("talk"), by("story"), by("skip")],
  by("curtain"),
);
const talk = new Talk(sheets);
const list = new RoomList(
  {
    shared: by("shared"),
    direct: by("direct"),
    sharedHead: by("shared-head"),
    directHead: by("direct-head"),
  },
  { open, forget: askToForget },
);
const welcome = new Welcome(
  {
    paste: by("paste"),
    link: by("link"),
    enter: by("enter"),
    name: by("name"),
    rooms: by("open-rooms"),
    status: by("welcome-status"),
  },
  (keys) => arrive({ keys }),
);

/** Rooms by key. */
const rooms = new Map();

/** Makes the rooms fit the keys that are held. */
function gather() {
  const keys = held();
  for (const known of keys) if (!rooms.has(known.key)) rooms.set(known.key, meet(known));
  for (const [key, room] of rooms) {
    if (keys.some((known) => known.key === key)) continue;
    rooms.delete(key);
    room.outbox.close();
    if (talk.room === room) talk.close();
  }
}

function meet(known) {
  const room = new Room(known);
  for (const type of ["about", "agent", "revoked", "unread"]) room.addEventListener(type, () => show());
  room.addEventListener("about", () => replaceOlder(room));
  return room;
}

/** A newer invitation of the same person to the same room takes the older one's place. */
function replaceOlder(room) {
  const all = [...rooms.values()];
  for (const older of all.slice(0, all.indexOf(room))) {
    if (older.name !== room.name || older.user !== room.user) continue;
    for (const item of older.outbox.items) room.outbox.adopt(item);
    inherit(older.key, room.key);
    room.reseen();
    const wasOpen = talk.room === older;
    forget(older.key);
    gather();
    if (wasOpen) open(room);
    else if (talk.room === room && talk.composer.isEmpty) talk.composer.open(room);
    show();
  }
}

function open(room) {
  sheets.close();
  if (talk.room !== room) {
    talk.open(room);
    keep("last", handle(room.key));
  }
  inviting(false);
  // Fingers would get a keyboard they did not ask for.
  if (matchMedia("(pointer: fine)").matches) talk.composer.focus();
}

/** Keys came: from an invitation's link, or from the welcome page; or half of one came. */
function arrive({ keys = [], cut = false } = {}) {
  gather();
  const room =
    rooms.get(keys[0]) ??
    [...rooms.values()].find(({ key }) => handle(key) === recall("last")) ??
    [...rooms.values()][0];
  if (room) open(room);
  if (cut || !room) inviting(true);
  if (cut) welcome.say("This link is not whole. Copy it again, up to its last letter.");
  lookAround();
}

/** Shows the welcome page instead of the rooms, or the rooms. */
function inviting(yes) {
  by("welcome").hidden = !yes;
  by("app").hidden = yes;
  by("skip").hidden = yes;
  by("back").hidden = !rooms.size;
  by("welcome-head").textContent = rooms.size ? "Add a room" : "You need an invitation";
  if (yes) welcome.show();
  else talk.look();
  show();
}

function show() {
  list.show([...rooms.values()], talk.room);
  const unread = [...rooms.values()].reduce((sum, room) => sum + room.unread, 0);
  const where = talk.room && by("welcome").hidden ? `${by("room-name").textContent} · Angelia` : "Angelia";
  document.title = unread ? `(${unread}) ${where}` : where;
}

function askToForget(room) {
  const waiting = room.outbox.items.length;
  by("forget-head").textContent = `Forget ${room.private ? "your direct messages" : room.title}?`;
  by("forget-lost").hidden = !waiting;
  by("forget-lost").textContent =
    `${waiting} of your messages ${waiting === 1 ? "was" : "were"} not sent yet, and would be lost.`;
  by("forget-yes").onclick = () => {
    by("forget").close();
    forget(room.key);
    sweep();
    arrive();
    // What had the focus is gone.
    if (!rooms.size) by("welcome-head").focus();
  };
  by("forget").showModal();
}

function lookAround() {
  if (document.hidden) return;
  for (const room of rooms.values()) if (room !== talk.room) room.poll();
  // A tab that is gone may have left something here.
  talk.room?.outbox.send();
}

by("forget-no").addEventListener("click", () => by("forget").close());
by("revoked-forget").addEventListener("click", () => askToForget(talk.room));
for (const id of ["add", "revoked-enter"])
  by(id).addEventListener("click", () => {
    sheets.close();
    inviting(true);
    by("welcome-head").focus();
  });
by("back").addEventListener("click", () => arrive({ keys: talk.room ? [talk.room.key] : [] }));
by("tab-only-seen").addEventListener("click", () => {
  by("tab-only").hidden = true;
  talk.composer.focus();
});
by("skip").addEventListener("click", (event) => {
  event.preventDefault();
  talk.composer.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open]")) return;
  if (sheets.close()) return;
  if (!talk.composer.replying) return talk.thread && talk.leaveThread();
  talk.composer.reply(null);
  talk.composer.focus();
});
onElsewhere((name) => {
  if (name === "keys") {
    const opened = talk.room;
    gather();
    if (opened && !talk.room) arrive();
    else show();
  }
  for (const room of rooms.values()) if (name.startsWith(room.outbox.prefix)) room.outbox.reread();
});
addEventListener("hashchange", () => {
  if (location.hash) arrive(takeFromAddress());
});
addEventListener("online", () => {
  for (const room of rooms.values()) room.outbox.hurry();
});
document.addEventListener("visibilitychange", lookAround);
setInterval(lookAround, LOOK);
onForgetful(() => (by("tab-only").hidden = false));

arrive(takeFromAddress());
sweep();
