// Files on the page: how they come there, and how they look.

import { until } from './patience.mjs';

export const MIB = 1024 * 1024;
export const PDF = { name: 'minutes.pdf', type: 'application/pdf', bytes: Buffer.from('%PDF-1.7\nhello') };

/** As a file chooser takes it. */
export const chosen = ({ name, type, bytes }) => ({ name, mimeType: type, buffer: bytes });
export const cards = (chat) => chat.find('attachments').getByTestId('file');
export const sent = (chat) => chat.find('lines').getByTestId('file');
export const note = (chat) => chat.find('file-note').innerText();
export const focused = (chat) => chat.page.evaluate(() => document.activeElement.dataset.testid ?? document.activeElement.id);

export async function begun(stage, options) {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link, options)).ready();
  return { room, agent, chat };
}

export async function choose(chat, ...files) {
  const asked = chat.page.waitForEvent('filechooser');
  await chat.find('attach').click();
  await (await asked).setFiles(files.map(chosen));
  await until('them beside the composer', async () => (await cards(chat).count()) >= files.length);
}

/** Hands files to the page as a mouse or a clipboard does. */
export function hand(chat, where, kind, files) {
  const given = files.map(({ name, type, bytes }) => ({ name, type, bytes: bytes.toString('base64') }));
  return chat.find(where).evaluate(
    (element, [kind, given]) => {
      const data = new DataTransfer();
      for (const { name, type, bytes } of given)
        data.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name, { type }));
      const more = { bubbles: true, cancelable: true };
      if (kind === 'paste') element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, ...more }));
      else for (const step of ['dragenter', 'dragover', 'drop']) element.dispatchEvent(new DragEvent(step, { dataTransfer: data, ...more }));
    },
    [kind, given],
  );
}

/** Waits until so many pictures are drawn, not only there. */
export function drawn(chat, count) {
  return until(`${count} pictures`, () =>
    chat.find('lines').evaluate((lines, count) => {
      const images = [...lines.querySelectorAll('[data-testid=picture] img')];
      return images.length === count && images.every((image) => image.complete && image.naturalWidth > 1);
    }, count),
  );
}

export const requests = (chat, method) => {
  const seen = [];
  chat.page.on('request', (it) => it.method() === method && /\/files(\/|$)/.test(it.url()) && seen.push(it.url()));
  return seen;
};
