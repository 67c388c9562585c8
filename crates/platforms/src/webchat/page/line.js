// One line of the conversation.

import { showFiles } from "./files.js";
import { heard } from "./kinds.js";
import { lacksFiles } from "./outbox.js";
import { dayOf, icon, make, momentOf, timeOf } from "./words.js";

/** Lines of one person so close together are one thing said. */
const BREATH = 5 * 60_000;

let count = 0;

/** What a line says, on one row and without the signs of Markdown, and what came with it. */
export function spoken({ text, html, files }) {
  const words = html
    ? new DOMParser().parseFromString(html.replaceAll("</", " </"), "text/html").body.textContent
    : text;
  return [words.replace(/\s+/g, " ").trim(), ...(files ?? []).map(heard)].filter(Boolean).join(" · ");
}

/** What a reader sees of a line that somebody answers. */
export function excerpt(line, most = 120) {
  const words = spoken(line);
  return words.length > most ? `${words.slice(0, most).trimEnd()}…` : words;
}

/** The element of a line, still without its words. */
export function drawLine(item, room) {
  const id = `line-${(count += 1)}`;
  const part = {
    day: make("p.day", { hidden: true }),
    face: make("span.face", { "aria-hidden": "true" }),
    author: make("span.author", { id: `${id}-author` }),
    time: make("time.time", { id: `${id}-time` }),
    quote: make("button.quote", { type: "button", hidden: true, "data-act": "jump", tabIndex: -1 }),
    text: make("div.text", { id: `${id}-text`, "data-testid": "text" }),
    files: make("ul.files", { hidden: true, "aria-label": "Files" }),
    choices: make("div.choices", { hidden: true, role: "group", "aria-label": "Your answer" }),
    marks: make("ul.marks", { hidden: true, "aria-label": "Reactions", "data-testid": "marks" }),
    thread: make("button.thread", { type: "button", hidden: true, "data-act": "thread", "data-testid": "thread" }),
    state: make("div.state", { hidden: true }),
    acts: make(
      "div.acts",
      {},
      act("reply", "Reply", "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 6 6v4"),
      act("story", "What happened", "M12 7v5l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0"),
    ),
  };
  const said = make("div.said", {}, part.quote, part.text, part.files, part.choices);
  const head = make("div.head", {}, part.author, " ", part.time);
  const column = make("div.column", {}, head, said, part.marks, part.thread, part.state);
  const card = make("div.card", {}, part.face, column, part.acts);
  const element = make(
    "article.line",
    {
      id,
      tabIndex: -1,
      "data-testid": "line",
      "aria-labelledby": `${id}-author ${id}-time`,
      "aria-describedby": `${id}-text`,
    },
    part.day,
    card,
  );
  element.parts = part;
  element.item = item;
  element.follow = (before) => follow(element, before, room);
  element.reach = (can) => reach(element, can);
  element.classList.add(room.isMine(item) ? "mine" : item.from_agent ? "agents" : "others");
  return element;
}

function act(name, label, path) {
  const button = make("button.act", {
    type: "button",
    title: label,
    "aria-label": label,
    tabIndex: -1,
    "data-act": name,
  });
  if (name === "reply") button.dataset.testid = "reply";
  button.append(icon(path));
  return button;
}

/** Writes a line into its element. Only what changed is touched. */
export function fillLine(element, item, room) {
  const { parts: part } = element;
  const before = element.dataset.state ? element.item : {};
  element.item = item;
  element.dataset.state = item.state;
  element.dataset.author = item.author;
  if (item.message_id) element.dataset.messageId = item.message_id;
  write(part.author, room.isMine(item) ? "You" : room.nameOf(item));
  write(part.face, room.nameOf(item)?.[0]?.toUpperCase() ?? "");
  if (before.at !== item.at) {
    part.time.dateTime = new Date(item.at).toISOString();
    part.time.title = momentOf(item.at);
    part.time.textContent = timeOf(item.at);
  }
  if (before.text !== item.text || before.html !== item.html) words(part.text, item);
  // A line that only stands for its thread says no more than its name.
  part.text.classList.toggle("only-name", item.from_agent && item.text === item.thread_name);
  if (!same(before.marks, item.marks)) marks(part.marks, item.marks ?? []);
  thread(part.thread, room.thread(item.message_id));
  if (!same(before.files, item.files)) showFiles(part.files, item.files ?? [], room);
  if (!same(before.buttons, item.buttons)) choices(element, item.buttons ?? []);
  quote(element, room);
  const told = ["state", "why", "edited", "held", "files"].every((key) => same(before[key], item[key]));
  if (!told) state(element, item, room);
  // What has no id yet cannot be answered.
  part.acts.hidden = !item.message_id;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Writes what a line says. */
export function words(element, { from_agent, text, html }) {
  element.hidden = !text;
  element.classList.toggle("as-written", !(from_agent && html != null));
  // Only what the server rendered for us, from an agent's Markdown, is taken as HTML.
  if (from_agent && html != null) element.innerHTML = html;
  else element.textContent = text;
  for (const link of element.querySelectorAll("a[href]")) link.target = "_blank";
}

const same = (one, other) => JSON.stringify(one ?? []) === JSON.stringify(other ?? []);

/** What the marks of agents mean that mark their turns, and how they are drawn: not every device has signs for them. */
const MARKS = {
  "👀": { words: "Seen by the agent", kind: "quiet", path: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12M12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6" },
  "✅": { words: "Done", kind: "good", path: "m5 12.5 4.5 4.5L19 7.5" },
  "❌": { words: "Failed", kind: "bad", path: "M6 6l12 12M18 6 6 18" },
};

/** What an agent marked a line with. Nobody is told of it: whoever wants to know finds it. */
function marks(list, all) {
  const chip = (mark) => {
    if (!MARKS[mark]) return make("li", {}, mark);
    const { words, kind, path } = MARKS[mark];
    return make(`li.${kind}`, { title: words }, icon(path), make("span.unseen", {}, words));
  };
  list.hidden = !all.length;
  list.replaceChildren(...all.map(chip));
}

/** The way into the thread that a line opened. */
function thread(button, about) {
  button.hidden = !about;
  if (!about) return;
  const { name, count, last, unread } = about;
  const replies = count ? `${count} ${count === 1 ? "reply" : "replies"} · last ${timeOf(last.at)}` : "No replies yet";
  const told = JSON.stringify([name, replies, unread]);
  if (button.dataset.told === told) return;
  button.dataset.told = told;
  button.replaceChildren(
    icon("M4 5h16v11H9l-5 4z"),
    make("span.thread-words", {}, make("strong", {}, name), " ", make("span.replies", {}, replies)),
    unread ? make("span.unread", {}, `${unread} new`) : "",
  );
}

/** The buttons of a question, while nobody has pressed one. */
function choices(element, all) {
  const place = element.parts.choices;
  const focused = place.contains(document.activeElement);
  const button = ({ label, style }, option) =>
    make("button.choice", { type: "button", "data-act": "press", "data-option": option, "data-style": style }, label);
  place.hidden = !all.length;
  place.replaceChildren(...all.map(button));
  // Whoever pressed is still at the line that shows what was chosen.
  if (focused) element.focus({ preventScroll: true });
}

function quote({ parts: { quote: button }, item, above }, room) {
  const answered = item.reply_to && room.line(item.reply_to);
  // An agent's answer right below its question needs no quote of it.
  button.hidden = !answered || (item.from_agent && above === item.reply_to);
  if (!answered) return;
  const who = room.isMine(answered) ? "You" : room.nameOf(answered);
  write(button, `${who}: ${excerpt(answered)}`);
  button.setAttribute("aria-label", `In answer to ${button.textContent}`);
}

function state(element, item, room) {
  const place = element.parts.state;
  const focused = place.contains(document.activeElement);
  fill(place, stateWords(item, room));
  // Whoever was at a button that is gone is still at its line.
  if (focused) element.focus({ preventScroll: true });
}

/** What is told of a line, and what its writer can do about it. */
function stateWords(item, room) {
  const again = (name, label) => make("button.link", { type: "button", "data-act": name }, label);
  const mine = room.isMine(item);
  if (item.held)
    return [make("span", {}, "Waits until the agent has finished"), mine ? again("hurry", "Send now") : ""];
  const stop = lacksFiles(item) ? again("cancel", "Stop sending") : "";
  const said = {
    sending: ["Sending…", stop],
    kept: [item.note ? `Kept, and tried again: ${item.note}` : "Kept until the connection is back", stop],
    failed: [
      `Not sent: ${item.why}`,
      again("retry", item.stopped ? "Send it after all" : "Try again"),
      again("discard", "Discard"),
    ],
    undelivered: [`Reached no agent: ${item.why}`],
    stored: [tick(), item.edited ? "Edited" : ""],
  }[item.state];
  if (!said && item.edited && !item.from_agent) return ["Edited"];
  return mine ? (said ?? []) : [];
}

function fill(place, parts) {
  place.hidden = !parts.length;
  place.replaceChildren(...parts);
}

function tick() {
  const sign = make(
    "span.tick",
    { title: "On the server" },
    icon("m5 12.5 4.5 4.5L19 7.5"),
    make("span.unseen", {}, "On the server"),
  );
  return sign;
}

function follow(element, before, room) {
  const { parts: part, item, classList } = element;
  element.above = before?.message_id;
  quote(element, room);
  const newDay = !before || dayOf(before.at) !== dayOf(item.at);
  part.day.hidden = !newDay;
  if (newDay) write(part.day, dayOf(item.at));
  const goesOn =
    !newDay && before.author === item.author && item.at - before.at < BREATH && part.quote.hidden;
  classList.toggle("goes-on", goesOn);
}

function reach(element, can) {
  element.tabIndex = can ? 0 : -1;
  element.classList.toggle("current", can);
  for (const button of element.querySelectorAll(".act, .quote")) button.tabIndex = can ? 0 : -1;
  for (const { view } of element.parts.files.children) view.reach(can);
}
