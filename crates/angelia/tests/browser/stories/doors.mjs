// Getting in, not getting in, and being shown out.

import assert from 'node:assert/strict';
import http from 'node:http';
import { barriers } from '../stage/browser.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

/** A request that the server refuses is told by the browser as an error. */
const REFUSED = /status of 401/;

story('without an invitation there is a kind word and no way in', async (stage) => {
  const { server, link, room } = await stage.room();
  const chat = await stage.open(`${server.url}/`);
  assert.equal(new URL(chat.page.url()).pathname, '/chat');
  await chat.shown('angelia webchat invite');
  assert.equal(await chat.composer().isVisible(), false);
  assert.equal(await chat.page.getByRole('button', { name: /^Enter / }).count(), 0, 'no room is open');
  for (const path of ['me', `rooms/${room}/messages`, `rooms/${room}/events`]) {
    assert.equal((await fetch(`${server.url}/chat/api/${path}`)).status, 401, path);
  }
  await chat.page.getByRole('textbox').fill('not a link');
  await chat.page.keyboard.press('Enter');
  await chat.shown('not an invitation link');
  await chat.page.getByRole('textbox').fill(link);
  await chat.page.keyboard.press('Enter');
  await chat.ready();
  await chat.say('I am in');
  await chat.saying('I am in').waitFor();
});

story('a link that was taken back says so at once', async (stage) => {
  stage.expected.push(REFUSED);
  const { server, link, room, user } = await stage.room();
  const chat = await (await stage.open(link)).ready();
  await chat.say('still here');
  await until('it to be delivered', async () => (await chat.lines())[0]?.state === 'stored');
  await server.command('webchat', 'revoke', '--room', room, '--user', user);
  await chat.shown('no longer opens');
  await chat.page.reload();
  await chat.shown('no longer opens');
});

story('a new link of the same person goes on with what the old one had begun', async (stage) => {
  stage.expected.push(REFUSED);
  const { server, gateway, link, room, user } = await stage.room();
  const chat = await (await stage.open(link)).ready();
  await chat.composer().fill('a long letter, half written');
  await server.command('webchat', 'revoke', '--room', room, '--user', user);
  await chat.shown('no longer opens');
  const again = await server.invite(user, gateway.id, room);
  await chat.page.evaluate((hash) => (location.hash = hash), again.key);
  const letter = async () => (await chat.composer().inputValue()) === 'a long letter, half written';
  await until('the letter', letter);
  await until('one room', async () => (await chat.find('room').count()) === 1);
  await chat.find('send').click();
  await chat.shows('a long letter, half written');
});

story('the page works behind a path', async (stage) => {
  const { server, key } = await stage.room();
  const proxy = http.createServer((request, response) => {
    if (!request.url.startsWith('/talk/')) return response.writeHead(404).end();
    const { method, headers } = request;
    const onward = http.request(server.url + request.url.slice(5), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    response.on('close', () => onward.destroy());
    onward.on('error', () => response.destroy());
    return request.pipe(onward);
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  try {
    const chat = await (await stage.open(`http://127.0.0.1:${proxy.address().port}/talk/#${key}`)).ready();
    assert.equal(new URL(chat.page.url()).pathname, '/talk/chat');
    await chat.say('from behind');
    await until('it to be on the server', async () => (await chat.lines())[0]?.state === 'stored');
    await chat.page.close();
  } finally {
    proxy.close();
    proxy.closeAllConnections();
  }
});

story('a room that was made open takes guests, and takes them again', async (stage) => {
  stage.expected.push(REFUSED);
  const server = await stage.server('[webchat]\nopen_rooms = ["lobby"]\n');
  const gateway = await server.gateway('gw-open');
  await server.invite('ann', gateway.id, 'lobby');
  const agent = await stage.agent(gateway);
  const chat = await stage.open(`${server.url}/chat`);
  const name = chat.page.getByRole('textbox', { name: /name/i });
  await name.fill('bob');
  await chat.page.getByRole('button', { name: /enter/i }).click();
  await chat.ready();
  await chat.say('hello from the street');
  assert.equal((await agent.next()).source.user_name, 'guest-bob');
  await server.command('webchat', 'revoke', '--room', 'lobby', '--user', 'guest-bob');
  await chat.shown('Your visit is over');
  await chat.page.getByRole('button', { name: 'Enter again' }).click();
  // Names of guests are not given twice.
  await name.fill('bob-again');
  await chat.page.getByRole('button', { name: 'Enter lobby' }).click();
  await chat.ready();
  await chat.say('here I am again');
  assert.equal((await agent.next()).text, 'here I am again');
});

story('the guide turns to connected when an agent dials in', async (stage) => {
  const demo = await stage.demo();
  const chat = await (await stage.open(demo.link)).ready();
  await chat.enter('hermes');
  const lines = await chat.find('guide-lines').innerText();
  const value = (name) =>
    lines.match(new RegExp(`${name}=['"]?([^'"\\s]+)`))?.[1] ?? assert.fail(`no ${name} in ${lines}`);
  assert.match(await chat.find('guide-state').innerText(), /waiting/i);
  const credentials = {
    url: value('GATEWAY_RELAY_URL')
      .replace(/^ws/, 'http')
      .replace(/\/relay\/?$/, ''),
    id: value('GATEWAY_RELAY_ID'),
    secret: value('GATEWAY_RELAY_SECRET'),
  };
  const agent = await stage.agent(credentials);
  await until('the guide to say connected', async () =>
    /connected/i.test(await chat.find('guide-state').innerText()),
  );
  await until('the header to say so', async () =>
    /connected/i.test(await chat.find('agent-state').innerText()),
  );
  await chat.say('welcome');
  await agent.send(await agent.next(), 'glad to be here');
  await chat.saying('glad to be here').waitFor();
  agent.hangUp();
  await until('the header to say that it left', async () =>
    /away/i.test(await chat.find('agent-state').innerText()),
  );
});

/** A browser that keeps nothing. */
function forbidStorage() {
  Object.defineProperty(window, 'localStorage', {
    get() {
      throw new DOMException('forbidden', 'SecurityError');
    },
  });
}

story('a browser that keeps nothing lets people in all the same, and says so', async (stage) => {
  const room = await stage.room();
  const chat = await stage.open('about:blank');
  await chat.page.addInitScript(forbidStorage);
  await chat.page.goto(room.link);
  await chat.ready();
  assert.equal(new URL(chat.page.url()).hash, '');
  await chat.find('tab-only').waitFor();
  await chat.say('I am in');
  await chat.shows('I am in');
  await until('it to be on the server', async () => (await chat.lines())[0].state === 'stored');
  assert.deepEqual(await barriers(chat.page), []);
  await chat.find('tab-only').getByRole('button').click();
  await chat.find('tab-only').waitFor({ state: 'hidden' });
});

story('a full browser takes a further invitation', async (stage) => {
  const [one, two] = [await stage.room(), await stage.room()];
  const chat = await (await stage.open(one.link)).ready();
  await until('the room to be known', async () => (await chat.find('room').innerText()).includes(one.room));
  await chat.page.addInitScript(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException('full', 'QuotaExceededError');
    };
  });
  await chat.page.goto('about:blank');
  await chat.page.goto(two.link);
  await until('both rooms', async () => {
    const names = (await chat.find('room').allInnerTexts()).join();
    return names.includes(one.room) && names.includes(two.room);
  });
  await chat.find('tab-only').waitFor();
});

story('a link that was cut or mistyped says what to do', async (stage) => {
  stage.expected.push(REFUSED);
  const { link, server } = await stage.room();
  const chat = await stage.open(link.slice(0, -3));
  await chat.shown('This link is not whole');
  assert.equal(new URL(chat.page.url()).hash, '', 'half a key is a secret too');

  const unknown = await stage.open(`${server.url}/chat#${'0123456789abcdef'.repeat(2)}`);
  await unknown.shown('This link opens no room here');
  await until('its name', async () => (await unknown.find('room').innerText()).includes('Unknown room'));
  assert.deepEqual(await barriers(unknown.page), []);
  await unknown.page.getByRole('button', { name: 'Forget this room on this device' }).last().click();
  await unknown.page.getByRole('button', { name: 'Forget it' }).click();
  await unknown.shown('You need an invitation');
  const focused = () => unknown.page.evaluate(() => document.activeElement.id);
  await until('the focus on what is there now', async () => (await focused()) === 'welcome-head');
});
