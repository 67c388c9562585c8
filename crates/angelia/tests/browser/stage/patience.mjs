// Waiting for conditions. Nothing here waits for the clock alone.

/** How long a condition may take; a machine that builds at the same time is slow. */
export const PATIENCE = 30_000;
const LOOK_EVERY = 25;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Repeats `check` until it neither throws nor answers with something false; its last words are the error. */
export async function until(what, check, patience = PATIENCE) {
  const end = performance.now() + patience;
  let last;
  for (;;) {
    try {
      const value = await check();
      if (value) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) {
      throw new Error(`waited ${patience / 1000} s for ${what}`, last && { cause: last });
    }
    await pause(LOOK_EVERY);
  }
}
