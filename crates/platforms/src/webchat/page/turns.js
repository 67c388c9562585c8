// So many at a time; whoever comes later waits for their turn.

export class Turns {
  #free;
  #waiting = [];

  constructor(most) {
    this.#free = most;
  }

  /** Waits for a turn, and answers what ends it. Whoever is aborted meanwhile gets none. */
  async take(signal) {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else
      await new Promise((go, failed) => {
        const waits = { go };
        this.#waiting.push(waits);
        signal?.addEventListener("abort", () => {
          const at = this.#waiting.indexOf(waits);
          if (at < 0) return;
          this.#waiting.splice(at, 1);
          failed(signal.reason);
        });
      });
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const next = this.#waiting.shift();
      if (next) next.go();
      else this.#free += 1;
    };
  }
}
