// The bytes of files that are not on the server yet: of what is half written, and of lines that wait.
// What refers to them is in memory.js, and is written there first, so that whatever nothing refers to
// can go. Where the browser keeps no bytes (a private window, a full disk), they go with the tab.

import { names, recall } from "./memory.js";

const DATABASE = "angelia.files";
const SHELF = "bytes";
/** Two lines full of the largest files. */
const MOST_BYTES = 400 * 1024 * 1024;

/** The bytes do not fit. */
export class Full extends Error {}

/** What is not kept yet, or cannot be. */
const forTheTab = new Map();
let opened = null;

function open() {
  opened ??= new Promise((done) => {
    try {
      const asked = indexedDB.open(DATABASE, 1);
      asked.onupgradeneeded = () => asked.result.createObjectStore(SHELF);
      asked.onsuccess = () => done(asked.result);
      asked.onerror = asked.onblocked = () => done(null);
    } catch {
      done(null);
    }
  });
  return opened;
}

/** Does something with the shelf; fails where there is none. */
async function shelf(mode, act) {
  const database = await open();
  if (!database) throw new Error("this browser keeps no files");
  return new Promise((done, failed) => {
    const transaction = database.transaction(SHELF, mode);
    const asked = act(transaction.objectStore(SHELF));
    transaction.oncomplete = () => done(asked?.result);
    transaction.onabort = transaction.onerror = () => failed(transaction.error);
  });
}

/** Keeps bytes under a name. Answers whether they outlive the tab. */
export async function shelve(name, blob) {
  forTheTab.set(name, blob);
  const kept = await shelf("readonly", (all) => all.getAll()).catch(() => []);
  const sizes = [...kept, ...forTheTab.values()].map(({ size }) => size);
  if (sizes.reduce((sum, size) => sum + size, 0) > MOST_BYTES) {
    forTheTab.delete(name);
    throw new Full();
  }
  try {
    await shelf("readwrite", (all) => all.put(blob, name));
    forTheTab.delete(name);
    return true;
  } catch {
    return false;
  }
}

/** The bytes under a name, or null. */
export async function bytesOf(name) {
  return forTheTab.get(name) ?? (await shelf("readonly", (all) => all.get(name)).catch(() => null)) ?? null;
}

/** Keeps these no longer. */
export async function unshelve(gone) {
  for (const name of gone) forTheTab.delete(name);
  if (gone.length)
    await shelf("readwrite", (all) => gone.forEach((name) => all.delete(name))).catch(() => {});
}

/** Lets go of what no line and nothing half written refers to. */
export async function sweep() {
  const kept = await shelf("readonly", (all) => all.getAllKeys()).catch(() => []);
  const meant = new Set();
  for (const name of [...names("draft."), ...names("outbox.")])
    for (const { key } of recall(name)?.files ?? []) meant.add(key);
  await unshelve([...kept, ...forTheTab.keys()].filter((name) => !meant.has(name)));
}
