// What a file is to whoever sees it: its kind, a name that is safe to show, a sign and words for it.

/** Types that browsers decode and never run, as the server has them too. All else is a document. */
const SHOWN = {
  "image/png": "image",
  "image/jpeg": "image",
  "image/gif": "image",
  "image/webp": "image",
  "audio/mpeg": "audio",
  "audio/ogg": "audio",
  "audio/mp4": "audio",
  "audio/aac": "audio",
  "audio/wav": "audio",
  "audio/flac": "audio",
  "audio/webm": "audio",
  "video/mp4": "video",
  "video/webm": "video",
};
/** What nobody knows is saved, and never shown. */
export const OCTETS = "application/octet-stream";
const LONGEST_NAME = 120;
const LONGEST_ENDING = 10;

/** A type without its parameters. */
const bare = (type) => (type ?? "").split(";")[0].trim().toLowerCase();

/** As what a file of this browser is shown until the server has looked at its bytes. */
export function kindOf({ type, voice }) {
  const kind = SHOWN[bare(type)] ?? "document";
  return voice && kind !== "document" ? "voice" : kind;
}

/** The type that the address of a file in this page may have: of documents, none that is opened. */
export function typeFor({ kind, type }) {
  return kind !== "document" && SHOWN[bare(type)] ? bare(type) : OCTETS;
}

/** Words of strangers on one row, without what hides or turns other words around. */
export const oneRow = (words) =>
  String(words ?? "").replace(/\s+/gu, " ").replace(/[\p{C}\u115f\u1160\u3164\uffa0]/gu, "").trim();

/** A name: of a path the last part, and not longer than a row. */
export function safeName(name) {
  const [stem, ending] = halves(oneRow(String(name ?? "").split(/[/\\]/).at(-1)));
  const room = LONGEST_NAME - ending.length;
  const letters = [...stem];
  return (letters.length > room ? `${letters.slice(0, room - 1).join("")}…` : stem) + ending || "file";
}

/** A name and its ending, which is always seen. */
export function halves(name) {
  const dot = name.lastIndexOf(".");
  return dot > 0 && name.length - dot <= LONGEST_ENDING ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
}

export const SIGNS = {
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.500 9h.01",
  voice: "M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3M6 11a6 6 0 0 0 12 0M12 17v4",
  audio: "M9 18V6l10-2v12M9 18a2.500 2.500 0 1 1-5 0 2.500 2.500 0 0 1 5 0M19 16a2.500 2.500 0 1 1-5 0 2.500 2.500 0 0 1 5 0",
  video: "M4 6h11v12H4zM15 10.500l5-3v9l-5-3",
  document: "M6 3h8l5 5v13H6zM14 3v5h5",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  play: "M8 5v14l11-7z",
};

const CALLED = { image: "Picture", voice: "Voice message", audio: "Audio", video: "Video", document: "File" };

/** What kind of file it is, in a word. */
export const calledOf = (kind) => CALLED[kind] ?? CALLED.document;

/** What a picture shows, or at least what it is called. */
export const altOf = ({ alt, name }) => oneRow(alt) || `Picture ${safeName(name)}`;

/** A file in words, for who does not see it. */
export function heard({ kind, name, alt }) {
  return kind === "voice" ? CALLED.voice : `${calledOf(kind)}: ${oneRow(alt) || safeName(name)}`;
}
