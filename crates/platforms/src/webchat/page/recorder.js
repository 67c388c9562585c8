// A voice message: recorded by the browser, heard and sent like any other file.

/** What is asked for, the best first; the rest is what each browser can. */
const TYPES = ["audio/ogg;codecs=opus", "audio/webm;codecs=opus", "audio/mp4"];
/** Enough for a voice, and half an hour of it stays far below the largest file. */
const BITS_PER_SECOND = 32_000;
const LONGEST = 30 * 60_000;
const LOOK_EVERY = 200;

const WHY_NOT = {
  NotAllowedError: "The microphone is not allowed here. Allow it for this page in the browser's settings.",
  NotFoundError: "There is no microphone.",
  NotReadableError: "The microphone cannot be used just now: another program may have it.",
};

const clock = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1_000) % 60).padStart(2, "0")}`;

export class Recorder {
  #recorder = null;
  #begun = 0;
  #timer = 0;
  #asking = false;

  /** `onRecorded(file, place)` gets what was spoken, `place` is what `where()` said at its begin. */
  constructor(parts, { where, tell, onRecorded }) {
    Object.assign(this, parts, { where, tell, onRecorded });
    this.button.addEventListener("click", () => this.#start());
    this.done.addEventListener("click", () => this.finish());
    this.discard.addEventListener("click", () => this.#end(false));
  }

  get isRunning() {
    return !!this.#recorder;
  }

  async #start() {
    if (this.#asking || this.#recorder) return;
    const why = objection();
    if (why) return this.tell(why);
    this.#asking = true;
    const place = this.where();
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      // Asked in one conversation, and answered in another.
      if (place === this.where()) this.#record(stream, place);
      else release(stream);
    } catch (error) {
      this.tell(WHY_NOT[error.name] ?? `The microphone cannot be used: ${error.message}`);
    } finally {
      this.#asking = false;
    }
  }

  #record(stream, place) {
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
    const parts = [];
    recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
    recorder.addEventListener("stop", () => {
      release(stream);
      // The microphone was unplugged: what was spoken is kept.
      if (this.#recorder === recorder) this.#rest();
      if (recorder.unwanted || !parts.some(({ size }) => size)) return;
      const type = (recorder.mimeType || mimeType || "audio/webm").split(";")[0];
      this.onRecorded(new File(parts, nameFor(type), { type }), place);
    });
    recorder.start(1_000);
    this.#recorder = recorder;
    this.#begun = performance.now();
    this.tell("");
    this.#show(true);
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY);
    this.#look();
    this.done.focus();
  }

  #look() {
    const lasted = performance.now() - this.#begun;
    this.time.textContent = clock(lasted);
    if (lasted < LONGEST) return;
    this.finish();
    this.tell("A voice message has half an hour at the most. Send this one, and go on in another.");
  }

  /** Ends, and keeps what was spoken. */
  finish() {
    this.#end(true);
  }

  #end(wanted) {
    const recorder = this.#recorder;
    if (!recorder) return;
    this.#rest();
    recorder.unwanted = !wanted;
    if (recorder.state !== "inactive") recorder.stop();
  }

  #rest() {
    this.#recorder = null;
    clearInterval(this.#timer);
    const focused = this.bar.contains(document.activeElement);
    this.#show(false);
    if (focused) this.button.focus();
  }

  #show(running) {
    this.bar.hidden = !running;
    this.button.disabled = running;
    this.status.textContent = running ? "Recording" : "";
  }
}

/** Why nothing can be recorded here, or null. */
function objection() {
  if (!isSecureContext) return "Recording needs an address that begins with https.";
  return navigator.mediaDevices && window.MediaRecorder ? null : "This browser cannot record.";
}

const release = (stream) => stream.getTracks().forEach((track) => track.stop());

/** A name that tells when it was spoken. */
function nameFor(type) {
  const now = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString();
  const ending = { "audio/ogg": "ogg", "audio/mp4": "m4a" }[type] ?? "webm";
  return `Voice ${now.slice(0, 10)} ${now.slice(11, 19).replaceAll(":", ".")}.${ending}`;
}
