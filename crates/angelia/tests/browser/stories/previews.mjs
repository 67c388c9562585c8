// Files that are there: pictures, players and cards, large and small, by day and at night.

import assert from 'node:assert/strict';
import { PHONE, barriers } from '../stage/browser.mjs';
import { NO_NETWORK } from '../stage/chat.mjs';
import { PDF, begun, cards, choose, chosen, drawn, sent } from '../stage/files.mjs';
import { Person } from '../stage/person.mjs';
import { until } from '../stage/patience.mjs';
import { shoot } from '../stage/pictures.mjs';
import { film, picture, wav } from '../stage/samples.mjs';
import { story } from '../stage/story.mjs';

const THUMB = 44;

story('what an agent sends is shown as what it is, and plays', async (stage) => {
  const { agent, chat } = await begun(stage);
  await chat.say('show me all you have');
  const event = await agent.next();
  await agent.sendFile(event, 'image', picture('chart.png'), 'A chart:');
  await agent.sendFile(event, 'voice', { name: 'answer.wav', type: 'audio/wav', bytes: wav() });
  await agent.sendFile(event, 'audio', { name: 'tone.wav', type: 'audio/wav', bytes: wav(1, 220) });
  await agent.sendFile(event, 'video', await film(chat.page));
  await agent.sendFile(event, 'document', PDF);
  await agent.sendFile(event, 'image', { name: 'page.png', type: 'image/png', bytes: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>') });
  await drawn(chat, 1);
  await until('three players', async () => (await chat.find('player').count()) === 3);
  const played = await chat.find('player').evaluateAll(async (players) => {
    for (const player of players) {
      player.muted = true;
      await player.play();
    }
    return players.map((player) => [player.localName, player.getAttribute('aria-label')]);
  });
  assert.deepEqual(played, [['audio', 'Voice message'], ['audio', 'Audio tone.wav'], ['video', 'Video film.webm']]);
  await until('them to have played', () =>
    chat.find('player').evaluateAll((players) => players.every(({ currentTime, ended }) => ended || currentTime > 0.2)),
  );
  const last = sent(chat).last();
  assert.match(await last.innerText(), /page\s*\.png\s*File · 41 bytes/);
  assert.equal(await last.getByRole('button').count(), 1, 'saved, and never shown');
  assert.deepEqual(await barriers(chat.page), []);
  await chat.page.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await barriers(chat.page), [], 'by night');
});

story('pictures are looked at in a lightbox, with keys alone', async (stage) => {
  const { room, agent, chat } = await begun(stage);
  const { keyboard } = chat.page;
  await room.api.say('@agent hello');
  const event = await agent.next();
  const files = [];
  for (const n of [0, 1, 2]) {
    const { id } = await room.api.file(picture(`${n}.png`, n, 900, 700));
    files.push({ id, alt: ['Blue hills', 'Green hills', undefined][n] });
  }
  await room.api.say('', { files });
  await agent.sendFile(event, 'image', picture('answer.png'));
  await drawn(chat, 4);
  await chat.page.locator('[data-testid=line]').nth(1).focus();
  await keyboard.press('Tab');
  while (!/Blue hills/.test(await chat.page.evaluate(() => document.activeElement.querySelector?.('img')?.alt ?? '')))
    await keyboard.press('Tab');
  await keyboard.press('Enter');
  const box = chat.find('lightbox');
  const large = chat.find('lightbox-picture');
  await until('it in the lightbox', async () => (await large.getAttribute('alt')) === 'Blue hills');
  assert.match(await box.innerText(), /0\.png\s+You · 1 of 4\s+Blue hills/);
  assert.deepEqual(await barriers(chat.page), []);
  for (const alt of ['Green hills', 'Picture 2.png', 'Picture answer.png']) {
    await keyboard.press('ArrowRight');
    await until(alt, async () => (await large.getAttribute('alt')) === alt);
  }
  await keyboard.press('ArrowRight');
  await keyboard.press('ArrowLeft');
  await until('the one before', async () => (await large.getAttribute('alt')) === 'Picture 2.png');
  const seen = await large.boundingBox();
  assert.ok(seen.x >= 0 && seen.y >= 0 && seen.width > 300 && seen.x + seen.width <= 1280, JSON.stringify(seen));
  const saved = chat.page.waitForEvent('download');
  await chat.page.getByRole('button', { name: 'Save the picture' }).press('Enter');
  assert.equal((await saved).suggestedFilename(), '2.png');
  await keyboard.press('Escape');
  await box.waitFor({ state: 'hidden' });
  assert.equal(await chat.page.evaluate(() => document.activeElement.querySelector('img')?.alt), 'Blue hills');
});

story('on a phone files have their place, and the camera its button', async (stage) => {
  const phone = { viewport: PHONE, isMobile: true, hasTouch: true, deviceScaleFactor: 2, colorScheme: 'dark' };
  const { agent, chat } = await begun(stage, phone);
  const wide = () => chat.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const asked = chat.page.waitForEvent('filechooser');
  await chat.find('camera').tap();
  const camera = await asked;
  const input = await camera.element().evaluate((it) => `${it.accept} ${it.getAttribute('capture')}`);
  assert.equal(input, 'image/* environment');
  await camera.setFiles([chosen(picture('photo.png', 2))]);
  await until('the photo', async () => (await cards(chat).count()) === 1);
  for (const name of ['Remove photo.png', 'Send', 'Attach files']) {
    const { width, height } = await chat.page.getByRole('button', { name, exact: true }).boundingBox();
    assert.ok(width >= THUMB && height >= THUMB, `${name}: ${width} × ${height}`);
  }
  assert.deepEqual(await barriers(chat.page), []);
  assert.ok((await wide()) <= 0);
  await chat.find('send').tap();
  const event = await agent.next();
  await agent.sendFile(event, 'document', { ...PDF, name: `${'a very long name '.repeat(8)}.pdf` });
  await agent.sendFile(event, 'voice', { name: 'answer.wav', type: 'audio/wav', bytes: wav() });
  await drawn(chat, 1);
  await until('the voice', async () => (await chat.find('player').count()) === 1);
  assert.ok((await wide()) <= 0);
  assert.ok(await chat.page.getByText('.pdf', { exact: true }).isVisible(), 'what it is stands at the end of its name');
  await chat.find('picture').tap();
  await chat.find('lightbox-picture').waitFor();
  assert.deepEqual(await barriers(chat.page), []);
  await chat.page.getByRole('button', { name: 'Close the picture' }).tap();
  await chat.find('lightbox').waitFor({ state: 'hidden' });
});

story('files have their picture taken, by day and on a phone at night', async (stage) => {
  const options = { colorScheme: 'light', reducedMotion: 'reduce' };
  const { room, agent, chat } = await begun(stage, options);
  await choose(chat, picture('north ridge.png', 0, 720, 480), picture('south ridge.png', 1, 720, 480));
  await chat.say('Which of these would you print? And the report, please.');
  const event = await agent.next();
  await drawn(chat, 2);
  await agent.sendFile(event, 'image', picture('ridge by night.png', 2, 720, 400), 'The second. Or the same ridge **by night**:');
  await agent.sendFile(event, 'document', { name: 'Report of the autumn tour, final version.pdf', type: 'application/pdf', bytes: Buffer.alloc(184_320, '%PDF-1.7 ') });
  await drawn(chat, 3);
  await choose(chat, picture('detail.png', 0, 300, 300), PDF);
  await chat.page.getByRole('textbox', { name: 'What detail.png shows' }).fill('The cairn at the top');
  await until('its preview', async () => (await cards(chat).locator('img').count()) === 1);
  await chat.find('stop').waitFor({ state: 'hidden' });
  await chat.composer().focus();
  await chat.page.evaluate(() => (document.querySelector('#scroll').scrollTop = 0));
  await chat.page.mouse.move(0, 0);
  await shoot(chat, 'files.png');
  await chat.page.emulateMedia({ colorScheme: 'dark' });
  await shoot(chat, 'files-dark.png');
  await chat.find('picture').last().click();
  await until('the lightbox', () => chat.find('lightbox-picture').isVisible());
  await shoot(chat, 'lightbox.png');

  const phone = { viewport: PHONE, isMobile: true, hasTouch: true, deviceScaleFactor: 2, ...options };
  const hand = await (await stage.open(room.link, { ...phone, colorScheme: 'dark' })).ready();
  await drawn(hand, 3);
  await agent.sendFile(event, 'voice', { name: 'answer.wav', type: 'audio/wav', bytes: wav(4) });
  await until('the voice', async () => (await hand.find('player').count()) === 1);
  await hand.find('record').tap();
  await until('it to record', async () => (await hand.find('recording-time').innerText()) === '0:01');
  await hand.page.evaluate(() => {
    document.querySelector('#scroll').scrollTop = 1e6;
  });
  await shoot(hand, 'files-phone.png');
});

story('a file that is no longer here, or never was, is told kindly', async (stage) => {
  stage.expected.push(/status of (404|401)/, NO_NETWORK);
  const { room, agent, chat } = await begun(stage);
  const { id } = await room.api.file(picture('old.png'));
  await room.api.say('@agent look', { files: [{ id }] });
  await agent.next();
  await drawn(chat, 1);
  await chat.page.route('**/files/*', (route) => route.fulfill({ status: 404, json: { error: 'there is no such file' } }));
  await chat.page.reload();
  await until('that it is gone', async () => /No longer here\. Files are kept for 30 days\./.test(await sent(chat).innerText()));
  assert.equal(await sent(chat).getByRole('button').count(), 0);
  assert.deepEqual(await barriers(chat.page), []);
  await chat.page.unroute('**/files/*');
  let down = true;
  await chat.page.route('**/files/*', (route) => (down ? route.abort('failed') : route.continue()));
  await chat.page.reload();
  await chat.page.getByRole('button', { name: 'Try again' }).waitFor();
  down = false;
  await chat.page.getByRole('button', { name: 'Try again' }).click();
  await drawn(chat, 1);
});

story('lines of an earlier release show the names of their files', async (stage) => {
  const { room, chat } = await begun(stage);
  await room.api.say('only names');
  await chat.page.route(/messages\?/, async (route) => {
    const answer = await route.fetch();
    const told = await answer.json();
    for (const line of told.messages) line.files = [{ name: '../\u202efdp.exe', size: 23_400 }];
    await route.fulfill({ response: answer, json: told });
  });
  await chat.page.reload();
  await until('its name', async () => (await sent(chat).count()) === 1);
  assert.match(await sent(chat).innerText(), /^fdp\s*\.exe\s*File · 23 KB · only its name was kept$/);
  assert.equal(await sent(chat).getByRole('button').count(), 0);
});

story('what nobody looks at is let go of, and fetched again', async (stage) => {
  const MANY = 104;
  const MOST = 80;
  const { room, agent, chat } = await begun(stage);
  const { key } = await room.server.invite('bob', room.gateway.id, room.room);
  const bob = new Person(room.server.url, room.room, key);
  await chat.page.addInitScript(() => {
    window.addresses = new Set();
    const [make, end] = [URL.createObjectURL, URL.revokeObjectURL];
    URL.createObjectURL = (blob) => {
      const made = make.call(URL, blob);
      window.addresses.add(made);
      return made;
    };
    URL.revokeObjectURL = (made) => {
      window.addresses.delete(made);
      end.call(URL, made);
    };
  });
  for (let at = 0; at < MANY; at += 8) {
    const sent = await Promise.all(Array.from({ length: 8 }, (_, n) => bob.file(picture(`${at + n}.png`, n, 30 + at, 20 + n))));
    await bob.say(`eight more ${at}`, { files: sent.map(({ id }) => ({ id })) });
  }
  await agent.next();
  await chat.page.reload();
  const seen = (nth) =>
    until(`picture ${nth}`, async () => {
      await chat.find('lines').getByTestId('file').nth(nth).scrollIntoViewIfNeeded();
      return chat
        .find('lines')
        .getByTestId('file')
        .nth(nth)
        .evaluate((file) => [...file.querySelectorAll('img')].some((image) => image.complete && image.naturalWidth > 1));
    });
  for (let nth = MANY - 1; nth >= 0; nth -= 4) await seen(nth);
  const live = await chat.page.evaluate(() => window.addresses.size);
  assert.ok(live <= MOST && live > MOST / 2, `${live} pictures are held`);
  const gone = await chat.page.evaluate(() => document.querySelectorAll('.file[data-state=waiting]').length);
  assert.ok(gone > 0, 'the first ones are let go of');
  await seen(MANY - 1);
});
