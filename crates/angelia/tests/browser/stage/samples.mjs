// Files that stories send: real ones, made here.

import { crc32, deflateSync } from 'node:zlib';

const u32 = (n) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(n);
  return bytes;
};
const chunk = (name, data) => {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  return Buffer.concat([u32(data.length), named, u32(crc32(named))]);
};

/** A picture in colours that `paint(x, y)` chooses: `[red, green, blue]`, with a fourth for how much is seen. */
export function png(width, height, paint) {
  const rows = Buffer.alloc(height * (1 + width * 4));
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const [red, green, blue, seen = 255] = paint(x, y);
      rows.set([red, green, blue, seen], y * (1 + width * 4) + 1 + x * 4);
    }
  const header = Buffer.concat([u32(width), u32(height), Buffer.from([8, 6, 0, 0, 0])]);
  const data = deflateSync(rows);
  const parts = [chunk('IHDR', header), chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...parts]);
}

/** Evening, noon and night: the sky above and below, the hills behind and in front, the sun or the moon. */
const HOURS = [
  [[38, 70, 120], [244, 176, 128], [96, 92, 118], [18, 38, 44], [255, 236, 190]],
  [[84, 148, 206], [226, 238, 240], [132, 172, 150], [38, 84, 66], [255, 250, 226]],
  [[12, 18, 42], [58, 78, 122], [44, 58, 92], [8, 14, 28], [236, 240, 248]],
];

/** Hills under a sky, at one of three hours. */
export function landscape(width = 480, height = 320, hour = 0) {
  const mix = (one, other, part) => one.map((colour, n) => Math.round(colour + (other[n] - colour) * part));
  const [above, below, far, close, light] = HOURS[hour % HOURS.length];
  const hills = [0.62, 0.74, 0.86].map((base, n) => ({
    ridge: (x) => height * (base + 0.07 * Math.sin((x / width) * (5 + 3 * n) + n * 2) + 0.02 * Math.sin((x / width) * 23)),
    colour: mix(far, close, n / 2),
  }));
  return png(width, height, (x, y) => {
    const hill = hills.findLast(({ ridge }) => y > ridge(x));
    const sun = Math.hypot(x - width * 0.68, y - height * 0.46) < height * 0.09;
    return hill?.colour ?? (sun ? light : mix(above, below, y / (height * 0.75)));
  });
}

export const picture = (name = 'evening.png', hour = 0, width = 480, height = 320) => ({
  name,
  type: 'image/png',
  bytes: landscape(width, height, hour),
});

/** A tone, as a player understands it. */
export function wav(seconds = 1, tone = 440) {
  const rate = 8_000;
  const sound = Buffer.alloc(seconds * rate);
  for (let n = 0; n < sound.length; n += 1) sound[n] = 128 + 40 * Math.sin((2 * Math.PI * tone * n) / rate);
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(36 + sound.length, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(sound.length, 40);
  return Buffer.concat([header, sound]);
}

/** A short film, which only a browser can make here. */
export async function film(page) {
  const bytes = await page.evaluate(async () => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [320, 180];
    const brush = canvas.getContext('2d');
    const parts = [];
    const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: 'video/webm;codecs=vp8' });
    recorder.ondataavailable = ({ data }) => parts.push(data);
    const ended = new Promise((done) => (recorder.onstop = done));
    recorder.start();
    for (let frame = 0; frame < 20; frame += 1) {
      brush.fillStyle = `hsl(${180 + frame * 4} 40% 35%)`;
      brush.fillRect(0, 0, 320, 180);
      brush.fillStyle = 'white';
      brush.fillRect(20 + frame * 12, 70, 40, 40);
      await new Promise((next) => setTimeout(next, 40));
    }
    recorder.stop();
    await ended;
    return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
  });
  return { name: 'film.webm', type: 'video/webm', bytes: Buffer.from(bytes) };
}
