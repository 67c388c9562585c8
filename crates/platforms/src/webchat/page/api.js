// Requests to the server, and the three ways in which they end.

/** How long an answer may take before the connection counts as lost. */
const ANSWER_WITHIN = 20_000;

/** The server answered, and said no. */
export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
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
  throw new Refused(response.status, told.error ?? `the server answered ${response.status}`);
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
