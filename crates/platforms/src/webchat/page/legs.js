// A story's legs, in words anybody understands, and their picture.

import { instantOf, lasted, make, momentOf } from "./words.js";

/** An answer that changed so recently may change again. */
const STILL = 4_000;

const REACHED_NOBODY = {
  no_route: "The room belongs to nobody",
  author_not_allowed: "The agent does not listen to this person",
  no_instance: "No agent is set up here",
  not_addressed: "It was not for the agent",
  consumed: "It was for the server itself",
};

/** It left the inbox with a later line, whose story goes on. */
const JOINED = "joined with a later line";

/** How an entry left the inbox, other than by the agent's own word. */
const LEFT = {
  acknowledged: "The agent has it",
  "acknowledged late": "The agent has it",
  "acknowledged by a later frame": "The agent has it",
  "settled by pong": "The agent has it",
  [JOINED]: "Went with the next line",
};
const HOW = {
  "acknowledged late": "it said so after it had connected again",
  "acknowledged by a later frame": "it confirmed a later message",
  "settled by pong": "it does not confirm messages, but was listening",
  [JOINED]: "the agent got both as one message",
};

/** The legs of a story, whether more are to come, and the whole in a few words. */
export function legsOf(story, agent, now = Date.now()) {
  const legs = [];
  const leg = (at, what, more = {}) => legs.push({ at, what, ...more });
  if (story.received_at) leg(story.received_at, "Received");
  if (story.stored_at) leg(story.stored_at, "On disk", { detail: "kept from here on, also over a restart" });
  const ended = story.dropped ? dropped(story, leg) : delivered(story, agent, leg);
  for (const answer of story.answers ?? []) answered(answer, leg);
  // A quick agent answers before it confirms. What is still open comes last.
  legs.sort((a, b) => (a.at ?? Infinity) - (b.at ?? Infinity) || 0);
  return { legs, finished: ended.finished && quiet(story, now), outcome: ended.outcome };
}

function dropped({ dropped: { reason, hint, at } }, leg) {
  const what = REACHED_NOBODY[reason] ?? `It reached nobody (${reason})`;
  const served = reason === "consumed";
  leg(at, what, { detail: hint, tone: served ? "good" : "bad" });
  return { finished: true, outcome: served ? "Done" : "It reached nobody" };
}

function delivered(story, agent, leg) {
  const { held_at, pushed_at, pushes, interrupted_at, settled_at, outcome, received_at, answers } = story;
  // An agent's own line whose question is not known.
  if (!received_at) return { finished: true, outcome: "Written by the agent" };
  if (held_at) leg(held_at, "Held", { detail: "the agent was at work on an earlier message" });
  if (interrupted_at) leg(interrupted_at, "The agent was asked to stop");
  if (pushed_at)
    leg(pushed_at, "Sent to the agent", {
      detail: pushes > 1 ? `on ${pushes} connections` : "on 1 connection",
    });
  else if (!settled_at) {
    const turn = held_at ? "it goes as soon as the agent has finished" : "its turn comes";
    const detail = agent ? turn : "it is kept until the agent connects";
    leg(null, "Waiting for the agent", { detail, tone: "open" });
  }
  if (settled_at) {
    const known = LEFT[outcome];
    leg(settled_at, known ?? "It left the inbox", {
      detail: known ? HOW[outcome] : outcome,
      tone: known ? "good" : "bad",
    });
    if (!known) return { finished: true, outcome: `It left the inbox: ${outcome}` };
    if (outcome === JOINED) return { finished: true, outcome: known };
  } else if (pushed_at) leg(null, "Waiting for the agent to confirm it", { tone: "open" });
  if (settled_at && !answers?.length) leg(null, "No answer yet", { tone: "open" });
  if (answers?.length) return { finished: !!settled_at, outcome: "Answered" };
  return { finished: false, outcome: settled_at ? "The agent has it" : "Waiting for the agent" };
}

function answered({ accepted_at, written_at, state, error, edits, last_edit_at }, leg) {
  if (accepted_at) leg(accepted_at, "Answer accepted", { detail: "on disk before it is written" });
  if (error || state === "failed") {
    return leg(written_at ?? accepted_at, "The answer was not written", { detail: error, tone: "bad" });
  }
  if (written_at) leg(written_at, "Answer in the room", { tone: "good" });
  else leg(null, "Answer on its way", { tone: "open" });
  if (edits) leg(last_edit_at, edits === 1 ? "1 change" : `${edits} changes`, { last: edits > 1 });
}

/** Whether the last answer stands still. */
function quiet({ answers, outcome, dropped: gone }, now) {
  const last = answers?.at(-1);
  if (!last) return !!gone || outcome === JOINED;
  return now - Math.max(last.last_edit_at ?? 0, last.written_at ?? 0) > STILL;
}

/** Draws legs: dots on a spine, and a bar for the time each one took. */
export function drawLegs(legs) {
  const times = legs.map(({ at }) => at).filter((at) => at != null);
  const start = Math.min(...times);
  const whole = Math.max(...times) - start || 1;
  let before = start;
  const rows = legs.map(({ at, what, detail, tone, last }, nth) => {
    const row = make("li.leg", { "data-testid": "story-leg" }, make("span.what", {}, what));
    if (tone) row.classList.add(tone);
    if (at != null) {
      const offset = nth ? `${last ? "the last " : ""}+${lasted(at - start)}` : instantOf(at);
      row.append(make("span.when", { title: momentOf(at) }, offset));
    }
    if (detail) row.append(make("span.detail", {}, detail));
    if (at != null) {
      row.append(bar(before - start, at - before, whole));
      before = Math.max(at, before);
    }
    return row;
  });
  return make("ol.legs", {}, ...rows);
}

function bar(from, took, whole) {
  const track = make("span.track", { "aria-hidden": "true" });
  if (took <= 0) return track;
  const filled = make("span.bar");
  filled.style.left = `${(from / whole) * 100}%`;
  filled.style.width = `${Math.max((took / whole) * 100, 1)}%`;
  track.append(filled);
  return track;
}
