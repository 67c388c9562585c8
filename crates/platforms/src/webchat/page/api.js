// Requests to the server, and the three ways in which they end.

/** How long an answer may take before the connection counts as lost. */
const ANSWER_WITHIN = 20_000;
/** A file of which nothing moves for so long has broken off. */
const STALLED = 45_000;

/** The server answered, and said no. */
export class Refused extends Error {
  /** `after`: in how many seconds it may be tried again. */
  constructor(status, words, after) {
    super(words);
    this.status = status;
    this.after = Number(after) || 0;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return [408, 425, 429].includes(this.status) || this.status >= 500;
  }
}

/** No answer came. The request may have arrived all the same. */
export class Unreachable extends Error {}

/** The page may stand behind a path, and the API stands beside it. */
const address = (path) => new URL(`chat/api/${path}`, document.baseURI);

/** Where a room's part of the API is. */
export const inRoom = (room, rest) => `rooms/${encodeURIComponent(room)}/${rest}`;

const words = (status) => `the server answered ${status}`;

/** Opens a response, whose body the caller reads. */
export async function request(path, { key, method = "GET", body, signal } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(path), {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
    });
  } catch {
    throw new Unreachable("the server cannot be reached");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Refused(response.status, told.error ?? words(response.status), response.headers.get("Retry-After"));
}

/** Asks for JSON. */
export async function ask(path, options = {}) {
  const response = await request(path, { ...options, signal: AbortSignal.timeout(ANSWER_WITHIN) });
  try {
    return await response.json();
  } catch {
    throw new Unreachable("the answer broke off");
  }
}

/** Sends a file and tells how much of it has gone, which only XMLHttpRequest knows. */
export async function upload(path, { key, blob, name, type, signal, onProgress }) {
  signal.throwIfAborted();
  const asked = new XMLHttpRequest();
  const dog = watchdog(() => asked.abort());
  const stop = () => asked.abort();
  const answer = new Promise((done, failed) => {
    asked.onload = () => {
      const told = asked.response ?? {};
      if (asked.status === 201) return done(told);
      const { status } = asked;
      failed(new Refused(status, told.error ?? words(status), asked.getResponseHeader("Retry-After")));
    };
    asked.onerror = () => failed(new Unreachable("the server cannot be reached"));
    asked.onabort = () => failed(signal.aborted ? signal.reason : new Unreachable("the file broke off"));
    asked.upload.onprogress = ({ loaded }) => {
      dog.awake();
      onProgress(Math.min(loaded / blob.size, 1));
    };
  });
  asked.open("POST", address(path));
  asked.responseType = "json";
  asked.setRequestHeader("Authorization", `Bearer ${key}`);
  asked.setRequestHeader("X-File-Name", encodeURIComponent(name.toWellFormed?.() ?? name));
  asked.setRequestHeader("Content-Type", type);
  signal.addEventListener("abort", stop);
  asked.send(blob);
  return answer.finally(() => {
    dog.rest();
    signal.removeEventListener("abort", stop);
  });
}

/** Fetches a file whole, and tells how much of it has come. */
export async function download(path, { key, size, signal, onProgress }) {
  const broken = new AbortController();
  const dog = watchdog(() => broken.abort());
  try {
    const response = await request(path, { key, signal: AbortSignal.any([signal, broken.signal]) });
    const parts = [];
    let come = 0;
    for (const reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) return new Blob(parts);
      dog.awake();
      parts.push(value);
      onProgress?.(size ? Math.min((come += value.length) / size, 1) : 0);
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof Refused ? error : new Unreachable("the file broke off");
  } finally {
    dog.rest();
  }
}

/** Bites if it is not woken for a while. */
function watchdog(bite) {
  let timer = setTimeout(bite, STALLED);
  return {
    awake: () => {
      clearTimeout(timer);
      timer = setTimeout(bite, STALLED);
    },
    rest: () => clearTimeout(timer),
  };
}
