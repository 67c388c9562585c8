// The keys this browser holds. Each opens one room for one person; none ever
// stands in an address longer than it takes to read it from there.

import { drop, keep, names, recall } from "./memory.js";

/** 128 random bits in hex; keys of the first releases had 256. */
const KEY = /(?<![0-9a-z])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-z])/gi;

/** Names what is kept for a key without spelling the key out. */
export const handle = (key) => key.slice(-8);

/** The keys, with what is known of their rooms, in the order they came. */
export const held = () => recall("keys", []);

/** Takes the keys out of a text. Returns them all, also those held before. */
export function take(text) {
  const found = [...new Set((text.match(KEY) ?? []).map((key) => key.toLowerCase()))];
  const all = held();
  for (const key of found) if (!all.some((known) => known.key === key)) all.push({ key });
  if (found.length) keep("keys", all);
  return found;
}

/** Takes the keys of an invitation out of the page's own address; `cut` if it had one without any. */
export function takeFromAddress() {
  const { hash, pathname, search } = location;
  if (!hash) return { keys: [], cut: false };
  const keys = take(hash);
  // Half a key is a secret too, and goes. A whole one goes once it is held.
  if (keys.every((key) => held().some((known) => known.key === key)))
    history.replaceState(null, "", pathname + search);
  return { keys, cut: !keys.length };
}

/** Why a pasted text is no invitation to this server, or null. */
export function objection(text) {
  const link = text.match(/https?:\/\/[^\s#]+/i);
  if (link && URL.canParse(link[0]) && new URL(link[0]).origin !== location.origin) {
    return `That link belongs to another server, ${new URL(link[0]).host}. Open it in a tab of its own.`;
  }
  return text.match(KEY)
    ? null
    : "That is not an invitation link. One ends with # and a long row of letters and digits.";
}

/** Remembers which room a key opens, and for whom, so that it can be shown offline. */
export function learn(key, { room, user, private: direct, guest }) {
  keep(
    "keys",
    held().map((known) => (known.key === key ? { key, room, user, private: direct, guest } : known)),
  );
}

/** Gives what is kept for a key to another one of the same person, unless that has its own. */
export function inherit(from, to) {
  for (const what of ["draft", "seen"]) {
    const kept = recall(`${what}.${handle(from)}`);
    if (kept != null && recall(`${what}.${handle(to)}`) == null) keep(`${what}.${handle(to)}`, kept);
  }
}

/** Forgets a key and everything kept for it. */
export function forget(key) {
  keep(
    "keys",
    held().filter((known) => known.key !== key),
  );
  for (const name of names("")) if (name.split(".")[1] === handle(key)) drop(name);
}
