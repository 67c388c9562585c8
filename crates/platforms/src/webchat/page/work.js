// Whether the agent is at work, and the button that stops it.

/** How long one word of "typing" holds. */
const TYPING = 6_000;
/** A line that changed so recently is still being written: agents edit every 1.5 s, or more often. */
const WRITING = 2_000;
/** After "stop" the next change is the last, if nothing follows it for so long. */
const LAST_WORDS = 1_000;
/** So long an agent may think before it shows any sign. */
const THINKING = 60_000;
/** "Stopping…" is shown at least so long, or nobody could read it … */
const STOPPING = 1_000;
/** … and at most so long: then the agent did not hear it, or ended without a word. */
const DEAF = 8_000;

export class Work {
  #typing = 0;
  /** What the agent says it is at. */
  #words = null;
  #writing = 0;
  #thinking = 0;
  #stopping = 0;
  /** Whether it wrote something since it was told to stop. */
  #obeyed = false;
  #timer = 0;
  /** Whether a line of ours is unanswered. */
  #owed = false;
  /** Whether the agent works for us, as far as the lines tell. */
  #ours = false;

  /** `onChange({ typing, words, busy, stopping })` hears of every change. */
  constructor(onChange) {
    this.onChange = onChange;
  }

  /** Another room, or a thread: what is known of this one. */
  reset(room, lines = room.lines) {
    this.room = room;
    this.#words = null;
    this.#owed = this.#ours = false;
    this.#typing = this.#writing = this.#thinking = this.#stopping = 0;
    const last = lines.at(-1);
    if (last && room.isMine(last) && !last.undelivered) {
      this.#thinking = last.at + THINKING;
      this.#owed = this.#ours = true;
    }
    if (last?.from_agent) this.#ours = this.#answersUs(last);
    this.#tell();
  }

  /** The agent is at work, and perhaps says at what; empty words say that it is not any more. */
  typed(words) {
    this.#typing = words === "" ? 0 : Date.now() + TYPING;
    this.#words = words || null;
    this.#tell();
  }

  /** The agent wrote or changed a line. */
  wrote(line) {
    this.#typing = 0;
    if (this.#answersUs(line)) {
      this.#ours = true;
      this.#owed = false;
      this.#thinking = 0;
      this.#obeyed = this.#stopping > 0;
      this.#writing = Date.now() + (this.#obeyed ? LAST_WORDS : WRITING);
    } else if (!this.#owed) this.#ours = false;
    this.#tell();
  }

  /** Somebody else said something. What the agent does next may be for them. */
  othersSpoke() {
    if (!this.#owed && Math.max(this.#typing, this.#writing) < Date.now()) this.#ours = false;
  }

  /** An answer that names no question is ours if we wait for one. */
  #answersUs({ reply_to }) {
    const asked = reply_to && this.room.line(reply_to);
    return this.#alone || (asked ? this.room.isMine(asked) : this.#owed || this.#ours);
  }

  /** Where nobody else is, all the agent does is for us. */
  get #alone() {
    return this.room.private || this.room.alone;
  }

  /** A line of ours that was held goes to the agent: what it worked on before is over. */
  wentOn() {
    this.#stopping = 0;
    this.asked();
  }

  /** A line of ours waits for an answer. */
  asked() {
    this.#thinking = Date.now() + THINKING;
    this.#owed = this.#ours = true;
    this.#tell();
  }

  /** We told it to stop. What it does now are its last words. */
  stopped() {
    this.#stopping = Date.now();
    this.#obeyed = false;
    this.#tell();
  }

  /** The order did not get through. */
  notStopped() {
    this.#stopping = 0;
    this.#tell();
  }

  #tell() {
    clearTimeout(this.#timer);
    const now = Date.now();
    // Told to stop it thinks no more, unless the order did not get through.
    const thinking = this.room.agent && !this.#stopping ? this.#thinking : 0;
    // Nobody stops what the agent does for somebody else.
    const typing = this.#ours || this.#alone ? this.#typing : 0;
    const quietAt = Math.max(typing, this.#writing, thinking);
    const ended = this.#obeyed ? Math.max(quietAt, this.#stopping + STOPPING) : Infinity;
    if (this.#stopping && now > Math.min(ended, this.#stopping + DEAF)) this.#stopping = this.#thinking = 0;
    const stopping = this.#stopping > 0;
    this.onChange({ typing: this.#typing > now, words: this.#words, busy: quietAt > now || stopping, stopping });
    const next = [this.#typing, this.#writing, thinking, stopping ? this.#stopping + STOPPING : 0].filter(
      (at) => at > now,
    );
    if (stopping) next.push(this.#stopping + DEAF);
    if (next.length) this.#timer = setTimeout(() => this.#tell(), Math.max(Math.min(...next) - now + 1, 20));
  }
}
