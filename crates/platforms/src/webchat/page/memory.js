// What this browser keeps between visits. Where storage is forbidden (a private
// window) or full, the page works on, says so, and forgets with the tab.

const PREFIX = "angelia.";
/** What could not be kept. It is newer than what the browser has under the same name. */
const forTheTab = new Map();
let tellForgetful = null;

/** What is kept under a name, or `fallback`. */
export function recall(name, fallback = null) {
  if (forTheTab.has(name)) return JSON.parse(forTheTab.get(name));
  try {
    const kept = localStorage.getItem(PREFIX + name);
    return kept == null ? fallback : JSON.parse(kept);
  } catch {
    return fallback;
  }
}

/** Keeps a value under a name. */
export function keep(name, value) {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(PREFIX + name, text);
    forTheTab.delete(name);
  } catch {
    forTheTab.set(name, text);
    tellForgetful?.();
    tellForgetful = null;
  }
}

/** Calls `listener()` once, when something could not be kept beyond this tab. */
export function onForgetful(listener) {
  if (forTheTab.size) listener();
  else tellForgetful = listener;
}

/** Keeps nothing more under a name. */
export function drop(name) {
  forTheTab.delete(name);
  try {
    localStorage.removeItem(PREFIX + name);
  } catch {
    // Nothing was kept then.
  }
}

/** The names that begin with `prefix`. */
export function names(prefix) {
  const found = new Set([...forTheTab.keys()].filter((name) => name.startsWith(prefix)));
  try {
    for (let i = 0; i < localStorage.length; i++) {
      const name = localStorage.key(i);
      if (name.startsWith(PREFIX + prefix)) found.add(name.slice(PREFIX.length));
    }
  } catch {
    // Only what the tab holds.
  }
  return [...found];
}

/** Calls `listener(name)` when another tab changed something. */
export function onElsewhere(listener) {
  addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) listener(key.slice(PREFIX.length));
  });
}
