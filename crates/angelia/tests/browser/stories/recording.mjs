// A voice message: spoken, heard, sent or not. The browser's microphone beeps.

import assert from 'node:assert/strict';
import { PHONE, barriers } from '../stage/browser.mjs';
import { begun, cards, focused, note } from '../stage/files.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

/** Waits until somebody has spoken for a second. */
const spoken = (chat) =>
  until('a second of it', async () => /^0:0[1-9]$/.test(await chat.find('recording-time').innerText()));

/** Whether a page still listens: the browser shows a sign as long as it does. */
function watchMicrophone(chat) {
  return chat.page.addInitScript(() => {
    window.listening = [];
    const ask = MediaDevices.prototype.getUserMedia;
    MediaDevices.prototype.getUserMedia = async function (wanted) {
      const stream = await ask.call(this, wanted);
      window.listening.push(...stream.getTracks());
      return stream;
    };
  });
}
const listens = (chat) => chat.page.evaluate(() => window.listening.some(({ readyState }) => readyState === 'live'));

story('a voice message is recorded with keys alone, heard, and reaches the agent as one', async (stage) => {
  const { room, agent, chat } = await begun(stage);
  const { keyboard } = chat.page;
  await watchMicrophone(chat);
  await chat.page.reload();
  await chat.ready();
  await chat.find('record').focus();
  await keyboard.press('Enter');
  await until('the button that ends it', async () => (await focused(chat)) === 'recording-done');
  await spoken(chat);
  assert.ok(await listens(chat));
  assert.deepEqual(await barriers(chat.page), []);
  await keyboard.press('Enter');
  await until('it beside the composer', async () => (await cards(chat).count()) === 1);
  assert.equal(await listens(chat), false, 'nobody listens any more');
  assert.equal(await focused(chat), 'composer');
  assert.match(await cards(chat).innerText(), /^Voice message\s*[\d.]+ KB$/);
  await until('it to be heard', async () => (await cards(chat).locator('audio').count()) === 1);
  await until('its length to be known', () =>
    cards(chat).locator('audio').evaluate(({ duration, currentTime }) => Number.isFinite(duration) && currentTime === 0),
  );
  assert.deepEqual(await barriers(chat.page), []);
  await chat.page.reload();
  await until('it after a reload', async () => (await cards(chat).count()) === 1);
  await chat.composer().focus();
  await keyboard.press('Enter');
  const event = await agent.next();
  assert.equal(event.message_type, 'voice');
  assert.deepEqual(event.media_types, ['audio/webm']);
  assert.ok((await agent.fetchFile(event.media_urls[0])).length > 1_000);
  const [{ files }] = await room.api.lines();
  assert.equal(files[0].kind, 'voice');
  const line = chat.line(event.message_id);
  await until('a player', async () => (await line.getByTestId('player').count()) === 1);
  assert.equal(await line.getByTestId('player').getAttribute('aria-label'), 'Voice message');
});

story('what was spoken can be discarded, and a phone has room for it', async (stage) => {
  const { room, chat } = await begun(stage, { viewport: { ...PHONE, width: 320 }, isMobile: true, hasTouch: true, colorScheme: 'dark' });
  await watchMicrophone(chat);
  await chat.page.reload();
  await chat.ready();
  await chat.find('record').tap();
  await spoken(chat);
  assert.ok((await chat.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
  assert.deepEqual(await barriers(chat.page), []);
  await chat.page.getByRole('button', { name: 'Discard' }).tap();
  await chat.find('recording').waitFor({ state: 'hidden' });
  assert.equal(await listens(chat), false);
  assert.equal(await cards(chat).count(), 0);
  // Whoever writes has the room: no button stands there without need.
  await chat.composer().fill('words');
  assert.equal(await chat.find('record').isVisible(), false);
  assert.equal(await chat.find('send').isVisible(), true);
  assert.deepEqual(await room.api.lines(), []);
});

story('what is being spoken stays with its room', async (stage) => {
  const [one, two] = [await stage.room(), await stage.room()];
  const chat = await (await stage.open(one.link)).ready();
  await chat.page.evaluate((hash) => (location.hash = hash), two.key);
  await chat.enter(one.room);
  await chat.find('record').click();
  await spoken(chat);
  await chat.enter(two.room);
  await chat.find('recording').waitFor({ state: 'hidden' });
  assert.equal(await cards(chat).count(), 0);
  await until('it to be kept', () =>
    chat.page.evaluate(() => Object.values(localStorage).some((kept) => kept.includes('"voice":true'))),
  );
  await chat.enter(one.room);
  await until('it where it was spoken', async () => (await cards(chat).count()) === 1);
});

for (const [name, words] of [
  ['NotAllowedError', /not allowed here/],
  ['NotFoundError', /There is no microphone/],
])
  story(`without a microphone (${name}) the page says so`, async (stage) => {
    const { chat } = await begun(stage);
    await chat.page.evaluate((name) => {
      MediaDevices.prototype.getUserMedia = () => Promise.reject(new DOMException('no', name));
    }, name);
    await chat.find('record').click();
    await until('it to say so', async () => words.test(await note(chat)));
    assert.equal(await chat.find('recording').isVisible(), false);
    assert.deepEqual(await barriers(chat.page), []);
    assert.ok(await chat.find('record').isEnabled());
  });
