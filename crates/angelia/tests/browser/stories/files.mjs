// Files that people send: chosen, dropped, pasted, described; stopped, and gone on with.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { barriers } from '../stage/browser.mjs';
import { NO_NETWORK } from '../stage/chat.mjs';
import { MIB, PDF, begun, cards, choose, drawn, focused, hand, note, requests, sent } from '../stage/files.mjs';
import { until } from '../stage/patience.mjs';
import { picture } from '../stage/samples.mjs';
import { story } from '../stage/story.mjs';

story('files are chosen, described and sent, and reach the agent with their words', async (stage) => {
  const { room, agent, chat } = await begun(stage);
  const evening = picture();
  await choose(chat, evening, PDF, picture('unwanted.png', 1));
  assert.match(await cards(chat).nth(1).innerText(), /minutes\s*\.pdf\s*File · 14 bytes/);
  await chat.page.getByRole('button', { name: 'Remove unwanted.png' }).click();
  await until('two of them', async () => (await cards(chat).count()) === 2);
  await chat.page.getByRole('textbox', { name: 'What evening.png shows' }).fill('Hills at dusk');
  await until('its preview', async () => (await cards(chat).first().locator('img').count()) === 1);
  assert.deepEqual(await barriers(chat.page), []);
  await chat.say('here they are');
  const event = await agent.next();
  assert.match(event.text, /here they are\n\[photo evening\.png: Hills at dusk\] \[document minutes\.pdf\]/);
  assert.equal(event.message_type, 'photo');
  const come = await Promise.all(event.media_urls.map((url) => agent.fetchFile(url)));
  assert.ok(come[0].equals(evening.bytes) && come[1].equals(PDF.bytes), 'byte for byte');
  assert.equal((await room.api.lines())[0].files[0].alt, 'Hills at dusk');
  await drawn(chat, 1);
  assert.equal(await chat.page.getByRole('button', { name: 'Hills at dusk' }).count(), 1);
  assert.equal(await cards(chat).count(), 0);
  const fetched = requests(chat, 'GET');
  await chat.page.reload();
  await drawn(chat, 1);
  assert.equal(fetched.length, 1, 'the picture, and not the document');
  assert.ok(fetched.every((url) => !url.includes(room.key)), 'no key in an address');
  const saved = chat.page.waitForEvent('download');
  await chat.page.getByRole('button', { name: 'Save minutes.pdf' }).click();
  const file = await saved;
  assert.equal(file.suggestedFilename(), 'minutes.pdf');
  assert.ok((await readFile(await file.path())).equals(PDF.bytes));
});

story('what is dropped and pasted is sent, and what is too much is told before', async (stage) => {
  const { agent, chat } = await begun(stage);
  const large = { name: 'film.mkv', type: 'video/x-matroska', bytes: Buffer.alloc(0) };
  await hand(chat, 'lines', 'drop', [picture('dropped.png')]);
  await until('the first', async () => (await cards(chat).count()) === 1);
  await hand(chat, 'composer', 'paste', [picture('pasted.png', 1)]);
  await until('both', async () => (await cards(chat).count()) === 2);
  await hand(chat, 'composer', 'paste', [large]);
  await until('that one is empty', async () => /film\.mkv is empty/.test(await note(chat)));
  const posts = requests(chat, 'POST');
  await chat.page.evaluate((size) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(size)], 'huge.bin'));
    document.querySelector('#composer').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }));
  }, 25 * MIB + 1);
  await until('that one is too large', async () => /huge\.bin has 26 MB: files of more than 25 MiB/.test(await note(chat)));
  await hand(chat, 'lines', 'drop', Array.from({ length: 8 }, (_, n) => ({ ...PDF, name: `${n}.pdf` })));
  await until('that two are too many', async () => /8 files at the most: 2 left out/.test(await note(chat)));
  assert.equal(await cards(chat).count(), 8);
  assert.equal(posts.length, 0, 'nothing was sent to find that out');
  // A table's own picture is not what somebody copied.
  await chat.composer().evaluate((field) => {
    const data = new DataTransfer();
    data.items.add(new File(['x'], 'table.png', { type: 'image/png' }));
    data.setData('text/html', '<table></table>');
    data.setData('text/plain', 'a\tb');
    window.taken = !field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }));
  });
  assert.equal(await chat.page.evaluate(() => window.taken), false, 'the words are pasted');
  await chat.find('send').click();
  assert.equal((await agent.next()).media_urls.length, 8);
  await drawn(chat, 2);
  // Beside the conversation a dropped file opens nothing.
  await hand(chat, 'rooms', 'drop', [PDF]);
  assert.equal(await cards(chat).count(), 0);
});

story('sending is seen, can be stopped, and goes on when its writer wants', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const { room, agent, chat } = await begun(stage);
  let go;
  const held = new Promise((done) => (go = done));
  let posts = 0;
  await chat.page.route('**/files', async (route) => {
    posts += 1;
    if (posts === 1) await held;
    await route.continue().catch(() => {});
  });
  await choose(chat, picture('slow.png'), PDF);
  await chat.say('on its way');
  const line = chat.saying('on its way');
  await drawn(chat, 1);
  await line.getByRole('button', { name: 'Stop sending' }).click();
  await until('it to say so', async () => /Not sent: you stopped it/.test(await line.innerText()));
  go();
  await chat.say('something else');
  assert.equal((await agent.next()).text, 'something else', 'what comes behind goes on');
  assert.equal((await room.api.lines()).length, 1);
  await line.getByRole('button', { name: 'Send it after all' }).click();
  assert.equal((await agent.next()).media_urls.length, 2);
  await until('it on the server', async () => /On the server/.test(await line.innerText()));

  await choose(chat, PDF);
  await chat.page.route('**/files', (route) => route.abort('failed'));
  await chat.say('never mind');
  const other = chat.saying('never mind');
  await until('it to wait', async () => /Kept/.test(await other.innerText()));
  await other.getByRole('button', { name: 'Stop sending' }).click();
  await other.getByRole('button', { name: 'Discard' }).click();
  await until('it to be gone', async () => (await other.count()) === 0);
  await until('its bytes to be gone', async () => (await shelved(chat)) === 0);
});

/** How many files the browser keeps. */
function shelved(chat) {
  return chat.page.evaluate(
    () =>
      new Promise((done, failed) => {
        const asked = indexedDB.open('angelia.files');
        asked.onerror = failed;
        asked.onsuccess = () => {
          const counted = asked.result.transaction('bytes').objectStore('bytes').count();
          counted.onsuccess = () => {
            asked.result.close();
            done(counted.result);
          };
        };
      }),
  );
}

story('a reload in the middle of sending, and it is sent once', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const { room, agent, chat } = await begun(stage);
  const large = { name: 'large.bin', type: 'application/octet-stream', bytes: Buffer.alloc(6 * MIB, 'angelia ') };
  // Slow enough to be in the middle of it.
  const wire = await chat.profile.newCDPSession(chat.page);
  await wire.send('Network.enable');
  const speed = (bytes) =>
    wire.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytes });
  await choose(chat, large, picture('with it.png'));
  await chat.page.getByRole('textbox', { name: 'What with it.png shows' }).fill('An evening');
  await until('both to be kept', async () => (await shelved(chat)) === 2);
  await chat.page.reload();
  await until('the draft to have its files', async () => (await cards(chat).count()) === 2);
  assert.equal(await chat.find('alt').inputValue(), 'An evening');
  await speed(1.5 * MIB);
  const posts = requests(chat, 'POST');
  await chat.say('the large one');
  const part = () => chat.page.locator('[data-testid=lines] progress').evaluateAll((bars) => Math.max(0, ...bars.map(({ value }) => value)));
  await until('a part to have gone', async () => (await part()) > 0.1);
  assert.ok((await part()) < 1);
  assert.match(await chat.saying('the large one').innerText(), /\d+ %/);
  assert.deepEqual(await barriers(chat.page), []);
  await chat.page.reload();
  assert.deepEqual(await room.api.lines(), [], 'nothing was said yet');
  await until('the line with its files', async () => (await sent(chat).count()) === 2);
  await speed(-1);
  const event = await agent.next();
  assert.ok((await agent.fetchFile(event.media_urls[0])).equals(large.bytes));
  assert.equal((await room.api.lines()).length, 1);
  await until('it on the server', async () => /On the server/.test(await chat.saying('the large one').innerText()));
  assert.ok(posts.length <= 4, `${posts.length} uploads for two files and one reload`);
  await until('nothing to be kept any more', async () => (await shelved(chat)) === 0);
  await chat.page.reload();
  await drawn(chat, 1);
  assert.equal(agent.inbound.length, 0);
  assert.equal((await room.api.lines()).length, 1, 'once');
});

story('two tabs have one outbox, and a file goes up once', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const { room, agent, chat } = await begun(stage);
  const other = await (await stage.tab(chat.profile, `${room.server.url}/chat`)).ready();
  const arrived = [];
  for (const { page } of [chat, other])
    page.on('response', (it) => it.status() === 201 && it.url().endsWith('/files') && arrived.push(it.url()));
  await chat.profile.setOffline(true);
  await choose(chat, picture());
  await chat.say('from one tab');
  await other.saying('from one tab').waitFor();
  await chat.profile.setOffline(false);
  assert.equal((await agent.next()).media_urls.length, 1);
  for (const tab of [chat, other]) await drawn(tab, 1);
  assert.equal(arrived.length, 1);
  assert.equal((await room.api.lines()).length, 1);
});

story('a mouse is offered no camera', async (stage) => {
  const { chat } = await begun(stage);
  assert.equal(await chat.find('camera').isVisible(), false);
  assert.equal(await focused(chat), 'composer');
});

story('a file that went before its line was said is sent again', async (stage) => {
  stage.expected.push(/status of 404/);
  const { room, agent, chat } = await begun(stage);
  const posts = requests(chat, 'POST');
  let refused = 0;
  await chat.page.route('**/messages', (route) => {
    if (route.request().method() !== 'POST' || (refused += 1) > 1) return route.continue();
    return route.fulfill({ status: 404, json: { error: 'there is no such file in this room any more; send it again' } });
  });
  await choose(chat, PDF);
  await chat.say('after a long night offline');
  assert.equal((await agent.next()).media_urls.length, 1);
  assert.equal(posts.length, 2);
  assert.equal((await room.api.lines()).length, 1);
});

story('a browser that keeps no files sends them all the same, and says so', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await stage.open('about:blank');
  await chat.page.addInitScript(() => {
    IDBFactory.prototype.open = () => {
      throw new DOMException('not here', 'SecurityError');
    };
  });
  await chat.page.goto(room.link);
  await chat.ready();
  await choose(chat, picture());
  await until('it to say so', async () => /they go with this tab/.test(await note(chat)));
  await until('its preview', async () => (await cards(chat).locator('img').count()) === 1);
  await chat.say('look');
  assert.equal((await agent.next()).media_urls.length, 1);
  await drawn(chat, 1);
});
