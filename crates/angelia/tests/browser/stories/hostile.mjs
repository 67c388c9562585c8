// Files that mean no good, in a page that somebody scrolls through, plays, opens and saves from: nothing
// of them runs, leads elsewhere, or saves itself.

import assert from 'node:assert/strict';
import http from 'node:http';
import { contents, hostile } from '../stage/hostile.mjs';
import { Person } from '../stage/person.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

/** Each content in three disguises. `ANGELIA_HOSTILE_FILES=1000` shows them under many more. */
const FILES = Number(process.env.ANGELIA_HOSTILE_FILES ?? 0) || 3 * Object.keys(contents('')).length;
const A_LINE = 8;
/** Every so manieth comes from the agent, the others from somebody else in the room. */
const AGENTS = 5;
/** A page that answers nobody for so long seems to be dead, on a machine that does much else too. */
const DEAF = 5_000;
const PLAYED = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const SAFE = /^(?:(?:image\/(?:png|jpeg|gif|webp)|audio\/(?:mpeg|ogg|mp4|aac|wav|flac|webm)|video\/(?:mp4|webm))|application\/octet-stream)$/;

/** A server that nobody should ask. */
async function canary(stage) {
  const asked = [];
  const server = http.createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.setHeader('access-control-allow-origin', '*').end('window.hacked=1');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  stage.clear(() => new Promise((done) => server.close(done)));
  return { url: `http://127.0.0.1:${server.address().port}`, asked };
}

/** Notes what a page does that it should not do. */
async function watch(chat, url) {
  const deeds = [];
  const { page } = chat;
  await page.addInitScript(() => {
    window.addresses = [];
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      const made = make.call(URL, blob);
      window.addresses.push({ url: made, type: blob.type });
      return made;
    };
    let last = performance.now();
    window.deaf = 0;
    setInterval(() => {
      const now = performance.now();
      window.deaf = Math.max(window.deaf, now - last);
      last = now;
    }, 100);
  });
  await page.reload();
  await chat.ready();
  page.on('framenavigated', (frame) => deeds.push(`went to ${frame.url()}`));
  page.on('frameattached', () => deeds.push('a frame'));
  page.on('download', (file) => deeds.push(`saved ${file.suggestedFilename()}`));
  page.on('popup', (other) => deeds.push(`opened ${other.url()}`));
  page.on('dialog', (dialog) => deeds.push(`said ${dialog.message()}`));
  page.on('worker', (worker) => deeds.push(`worker ${worker.url()}`));
  page.on('crash', () => deeds.push('the tab ended'));
  page.on('request', (request) => {
    if (!new RegExp(`^(?:blob:)?${url}/`).test(request.url())) deeds.push(`asked ${request.url().slice(0, 200)}`);
  });
  // What the debugger sees of scripts, those of the tests have no address.
  const wire = await chat.profile.newCDPSession(page);
  wire.on('Debugger.scriptParsed', ({ url: script }) => {
    if (script && !script.startsWith(`${url}/chat/app/`)) deeds.push(`ran ${script.slice(0, 200)}`);
  });
  await wire.send('Debugger.enable');
  return deeds;
}

/** Sends all of them: most as somebody else in the room, some as the agent, who is busy at the same time. */
async function sendAll(person, agent, event, files) {
  const of = (agents) => files.filter((_, n) => (n % AGENTS === 0) === agents);
  const inTurn = async (all, send) => {
    for (let at = 0; at < all.length; at += A_LINE) await send(all.slice(at, at + A_LINE), at);
  };
  const asAgent = (some) => Promise.all(some.map((file) => agent.sendFile(event, file.kind, file, file.alt)));
  const asPerson = async (some, at) => {
    const sent = await Promise.all(some.map((file) => person.file(file)));
    const named = sent.map(({ id }, n) => ({ id, alt: some[n].alt, voice: some[n].kind === 'voice' }));
    await person.say(`these ${at}`, { files: named });
  };
  await Promise.all([inTurn(of(true), asAgent), inTurn(of(false), asPerson)]);
}

/** Scrolls from the first line to the last, and waits at each step until all in sight is there or is not.
 * Whoever is curious presses all that can be pressed, except what saves. */
async function scrollThrough(chat) {
  const still = () =>
    chat.page.evaluate(() => {
      const { top, bottom } = document.getElementById('scroll').getBoundingClientRect();
      const seen = [...document.querySelectorAll('#lines .file')].filter((file) => {
        const box = file.getBoundingClientRect();
        return box.bottom >= top && box.top <= bottom;
      });
      const pressed = (file) => file.querySelector('[data-does=load]:not([hidden], :disabled)')?.click();
      for (const file of seen) {
        if (file.dataset.state === 'waiting') pressed(file);
        const player = file.querySelector('audio, video');
        if (player) player.muted = true;
        player?.play().catch(() => {});
      }
      return seen.every((file) => file.dataset.state !== 'fetching');
    });
  const scroll = (to) => chat.page.evaluate((to) => {
    const box = document.getElementById('scroll');
    box.scrollTop = to ?? box.scrollTop + box.clientHeight * 0.9;
    return box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  }, to);
  await scroll(0);
  for (let end = false; !end; ) {
    await until('all in sight to be still', still);
    end = await scroll();
  }
}

/** What the page made of them. */
const made = (chat) =>
  chat.page.evaluate(() => {
    const lines = document.getElementById('lines');
    const tags = [...lines.querySelectorAll('*')].map(({ localName }) => localName);
    const sources = [...lines.querySelectorAll('img, audio, video, [src], [href]')];
    return {
      hacked: window.hacked,
      files: lines.querySelectorAll('.file').length,
      tags: [...new Set(tags)],
      sources: [...new Set(sources.map((it) => new URL(it.src ?? it.href).protocol))],
      handlers: [...lines.querySelectorAll('*')].flatMap((it) => it.getAttributeNames()).filter((name) => name.startsWith('on')),
      addresses: [...new Set(window.addresses.map(({ type }) => type))],
      wide: document.documentElement.scrollWidth - innerWidth,
      // Names in which something turns around or hides.
      turned: [...lines.querySelectorAll('.name, .files [aria-label], .files img')]
        .map((it) => `${it.textContent}${it.ariaLabel ?? ''}${it.alt ?? ''}`)
        .filter((words) => /[\u202a-\u202e\u2066-\u2069\u200b\0\n\r]/.test(words))
        .length,
      deaf: window.deaf,
    };
  });

story(`${FILES} hostile files run nothing, lead nowhere and ask nobody`, async (stage) => {
  const elsewhere = await canary(stage);
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  const deeds = await watch(chat, room.server.url);
  await room.api.say('@agent do your worst');
  const event = await agent.next();
  const files = [...hostile(FILES, elsewhere.url)];
  const { key } = await room.server.invite('mallory', room.gateway.id, room.room);
  await sendAll(new Person(room.server.url, room.room, key), agent, event, files);
  await until('all of them', async () => (await made(chat)).files === files.length);
  await scrollThrough(chat);
  const pictures = chat.page.locator('#lines [data-does=open]');
  for (let n = 0; n < (await pictures.count()); n += 11) {
    await pictures.nth(n).click();
    await chat.page.keyboard.press('ArrowRight');
    await chat.page.keyboard.press('Escape');
  }
  const seen = await made(chat);
  assert.equal(seen.hacked, undefined, 'a script ran');
  assert.deepEqual(deeds, []);
  assert.deepEqual(elsewhere.asked, []);
  const own = ['a', 'article', 'audio', 'bdi', 'button', 'div', 'img', 'li', 'p', 'path', 'progress', 'span', 'svg', 'time', 'ul', 'video'];
  const words = ['br', 'code', 'del', 'em', 'strong'];
  assert.deepEqual(seen.tags.filter((tag) => ![...own, ...words].includes(tag)), [], 'a name became a part of the page');
  assert.deepEqual(seen.handlers, []);
  assert.deepEqual(seen.sources.filter((protocol) => !['blob:', 'http:', 'https:', 'mailto:'].includes(protocol)), []);
  assert.deepEqual(seen.addresses.filter((type) => !SAFE.test(type)), [], 'an address with a type that could run');
  assert.ok(seen.addresses.some((type) => PLAYED.includes(type)), 'some of them are pictures indeed');
  assert.equal(seen.turned, 0, 'a name turns what stands around it');
  assert.ok(seen.wide <= 0, `the page is ${seen.wide} px too wide`);
  assert.ok(seen.deaf < DEAF, `the page answered nobody for ${seen.deaf} ms`);
  await chat.say('still here');
  await chat.saying('still here').waitFor();
  await savesSafely(chat, deeds);
});

/** What is saved is saved under a name that leads nowhere, and opened in the page it is only bytes. */
async function savesSafely(chat, deeds) {
  const buttons = chat.page.locator('#lines [data-does=save]:not([hidden])');
  // A browser asks before it saves more than ten that nobody pressed a key for.
  const apart = Math.ceil((await buttons.count()) / 9);
  for (let n = 0; n < (await buttons.count()); n += apart) {
    const saved = chat.page.waitForEvent('download');
    await buttons.nth(n).evaluate((button) => button.click());
    const name = (await saved).suggestedFilename();
    assert.ok(name.length > 0 && name.length <= 200 && !/[/\\\p{Cc}\u202a-\u202e]/u.test(name) && !name.startsWith('.'), name);
  }
  assert.ok(deeds.every((deed) => deed.startsWith('saved ')), String(deeds));
}
