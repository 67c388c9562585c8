// How large a picture is, by its first bytes: a small file may say that it has a thousand million points,
// and whoever lets a browser draw it has lost the tab.

/** What is read of a file. Before the size of a photo may stand a small one and what the camera wrote. */
const HEAD = 1024 * 1024;

/** Its width and height in points; null where the bytes tell of none. */
export async function dimensionsOf(blob, type) {
  const bytes = new DataView(await blob.slice(0, HEAD).arrayBuffer());
  try {
    const [width, height] = READERS[type]?.(bytes) ?? [0, 0];
    return width > 0 && height > 0 ? { width, height } : null;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const READERS = { "image/png": png, "image/gif": gif, "image/webp": webp, "image/jpeg": jpeg };

const word = (bytes, at) => String.fromCharCode(...[0, 1, 2, 3].map((n) => bytes.getUint8(at + n)));
const three = (bytes, at) => bytes.getUint16(at, true) | (bytes.getUint8(at + 2) << 16);

function png(bytes) {
  return word(bytes, 12) === "IHDR" ? [bytes.getUint32(16), bytes.getUint32(20)] : null;
}

/** The larger of the screen and of the first picture on it. */
function gif(bytes) {
  const colours = (flags) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0);
  let at = 13 + colours(bytes.getUint8(10));
  while (bytes.getUint8(at) === 0x21) {
    // An extension: blocks that say their length, up to an empty one.
    at += 2;
    for (let length; (length = bytes.getUint8(at)); ) at += length + 1;
    at += 1;
  }
  if (bytes.getUint8(at) !== 0x2c) return null;
  const side = (screen, first) => Math.max(bytes.getUint16(screen, true), bytes.getUint16(at + first, true));
  return [side(6, 5), side(8, 7)];
}

function webp(bytes) {
  const kind = word(bytes, 12);
  if (kind === "VP8X") return [three(bytes, 24) + 1, three(bytes, 27) + 1];
  if (kind === "VP8 ") return [bytes.getUint16(26, true) & 0x3fff, bytes.getUint16(28, true) & 0x3fff];
  if (kind !== "VP8L") return null;
  const bits = bytes.getUint32(21, true);
  return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1];
}

function jpeg(bytes) {
  for (let at = 2; ; ) {
    if (bytes.getUint8(at) !== 0xff) return null;
    const mark = bytes.getUint8(at + 1);
    // Marks may have any number of 0xff before them.
    if (mark === 0xff) at += 1;
    // Begin of a frame; three marks in between are something else.
    else if (mark >= 0xc0 && mark <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(mark))
      return [bytes.getUint16(at + 7), bytes.getUint16(at + 5)];
    else at += 2 + bytes.getUint16(at + 2);
  }
}
