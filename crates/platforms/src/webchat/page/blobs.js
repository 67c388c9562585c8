// The files that this tab has got: their bytes have addresses of the tab's own, which end when nobody
// looks any more and newer ones need the room.

import { Refused, Unreachable } from "./api.js";
import { dimensionsOf } from "./dimensions.js";
import { bytesOf } from "./filestore.js";
import { OCTETS, safeName, typeFor } from "./kinds.js";
import { Turns } from "./turns.js";

/** What is held that nobody looks at. */
const MOST_BYTES = 96 * 1024 * 1024;
const MOST = 80;
/** What is fetched at a time. */
const turns = new Turns(2);
const TRIES = 4;
/** A picture has to be drawn whole: four bytes a point. Photos can be drawn smaller at once. */
const MOST_POINTS = 36_000_000;
const MOST_POINTS_OF_PHOTOS = 64_000_000;
const LONGEST_SIDE = 20_000;
/** So long a browser may take to begin saving. */
const SAVED_WITHIN = 60_000;
/** Files sent by this tab whose bytes are known by the name they had before. */
const MOST_SENT = 1_000;

/** By name: `{ url, blob, width, height, views }`; who was looked at last comes last. */
const held = new Map();
const keys = new Map();

/** A file cannot be shown; it can be saved. */
export class Unshowable extends Error {}

/** A file of ours is on the server now. */
export function sentAs(id, key) {
  keys.set(id, key);
  if (keys.size > MOST_SENT) keys.delete(keys.keys().next().value);
}

/** Under which name a file is known here: ours keeps the one it had before it was sent. */
export const nameOf = ({ id, key }) => key ?? keys.get(id) ?? id;

/** What there is of a file already. */
export function known(file) {
  const entry = held.get(nameOf(file));
  if (!entry) return null;
  held.delete(nameOf(file));
  held.set(nameOf(file), entry);
  return entry;
}

/** Gets a file to be shown. `view.near` tells whether somebody looks, `view.lost()` hears that it is gone. */
export async function shown(room, file, view, options) {
  const entry = known(file) ?? (await admit(file, await bytes(room, file, options)));
  entry.views.add(view);
  makeRoom();
  return entry;
}

/** A view is drawn no more. */
export function unview(file, view) {
  held.get(nameOf(file))?.views.delete(view);
}

async function admit(file, blob) {
  const type = typeFor(file);
  const size = file.kind === "image" ? await dimensionsOf(blob, type) : {};
  if (!size) throw new Unshowable("This picture cannot be shown");
  const most = type === "image/jpeg" ? MOST_POINTS_OF_PHOTOS : MOST_POINTS;
  if (size.width * size.height > most || Math.max(size.width, size.height) > LONGEST_SIDE)
    throw new Unshowable("Too many pixels to be shown here");
  // Somebody else may have fetched it meanwhile.
  const there = known(file);
  if (there) return there;
  const typed = blob.slice(0, blob.size, type);
  const entry = { url: URL.createObjectURL(typed), blob: typed, ...size, views: new Set() };
  held.set(nameOf(file), entry);
  return entry;
}

/** Lets go of what nobody looks at, the oldest first. */
function makeRoom() {
  let sum = 0;
  for (const { blob } of held.values()) sum += blob.size;
  for (const [name, { url, blob, views }] of held) {
    if (sum <= MOST_BYTES && held.size <= MOST) return;
    if ([...views].some(({ near }) => near)) continue;
    held.delete(name);
    URL.revokeObjectURL(url);
    sum -= blob.size;
    for (const view of views) view.lost();
  }
}

/** The bytes of a file: those that are here, or the server's. */
async function bytes(room, file, options) {
  const here = held.get(nameOf(file))?.blob ?? (await bytesOf(nameOf(file)));
  if (here) return here;
  if (!file.id) throw new Unreachable("it is not in this browser any more");
  const done = await turns.take(options.signal);
  try {
    return await patiently(() => room.file(file, options), options.signal);
  } finally {
    done();
  }
}

/** Waits as long as a server says that has much to do. */
async function patiently(ask, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refused && error.passes) || tries === TRIES) throw error;
      await new Promise((go) => setTimeout(go, 1_000 * (error.after || tries)));
      signal.throwIfAborted();
    }
  }
}

/** Saves a file. Its address says nothing of what is in it: a browser that opened it could not run it. */
export async function save(room, file, options) {
  const blob = await bytes(room, file, options);
  const url = URL.createObjectURL(blob.slice(0, blob.size, OCTETS));
  const link = document.createElement("a");
  link.href = url;
  link.download = safeName(file.name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), SAVED_WITHIN);
}
