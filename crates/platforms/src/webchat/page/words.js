// Times and sizes, in words people use, and what words are put into.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const second = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

export const timeOf = (ms) => clock.format(ms);
export const momentOf = (ms) => exact.format(ms);

/** To the second; with the day where it is not today's. */
export const instantOf = (ms) => (dayOf(ms) === "Today" ? second.format(ms) : exact.format(ms));

export function dayOf(ms) {
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(ms).setHours(0, 0, 0, 0)) / 86_400_000);
  return ["Today", "Yesterday"][days] ?? day.format(ms);
}

export function lasted(ms) {
  // Clocks that are not quite together could tell of an answer before its question.
  if (ms < 1) return "0 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function sizeOf(bytes) {
  const units = ["bytes", "KB", "MB", "GB"];
  let size = bytes;
  while (size >= 1_000 && units.length > 1) {
    size /= 1_000;
    units.shift();
  }
  return `${size < 10 && units[0] !== "bytes" ? size.toFixed(1) : Math.round(size)} ${units[0]}`;
}

/** Makes an element: `make("p.note", { title }, child, "text")`. */
export function make(kind, props = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(props)) {
    if (value == null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** A drawn sign. */
export function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const stroke = document.createElementNS(svg.namespaceURI, "path");
  stroke.setAttribute("d", path);
  svg.append(stroke);
  return svg;
}
