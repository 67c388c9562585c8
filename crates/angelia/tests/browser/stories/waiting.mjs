// Lines that wait: for the network, for the server, for an answer that got lost.

import assert from 'node:assert/strict';
import { NO_NETWORK } from '../stage/chat.mjs';
import { pause, until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

/** Longer than the page's second try lets wait. */
const RETRY = 2_500;

/** Waits until the lines that say these are in this state. */
async function are(chat, state, ...texts) {
  await until(`${texts.join(', ')} to be ${state}`, async () => {
    const lines = (await chat.lines()).filter((line) => texts.includes(line.text));
    assert.deepEqual(
      lines.map((line) => [line.text, line.state]),
      texts.map((text) => [text, state]),
    );
    return true;
  });
}

/** What the server has, each line in its order. */
const kept = async (room) => (await room.api.lines()).map((line) => line.text);

story('what is written offline is kept, and sent once and in order afterwards', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('before');
  await are(chat, 'stored', 'before');
  await chat.profile.setOffline(true);
  await chat.say('one');
  await chat.say('two');
  await are(chat, 'kept', 'one', 'two');
  assert.match(await chat.find('connection').innerText(), /reconnect|offline/i);
  await chat.profile.setOffline(false);
  await are(chat, 'stored', 'before', 'one', 'two');
  assert.deepEqual(await kept(room), ['before', 'one', 'two']);
  for (const text of ['before', 'one', 'two']) assert.equal((await agent.next()).text, text);
  await chat.page.reload();
  await chat.shows('before', 'one', 'two');
  assert.deepEqual(await kept(room), ['before', 'one', 'two'], 'a reload sends nothing again');
  assert.equal(agent.inbound.length, 0);
});

story('a line whose answer got lost is not said twice', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const room = await stage.room();
  const chat = await (await stage.open(room.link)).ready();
  let lost = 0;
  // The line must not come back over the stream before it was posted again.
  await chat.page.route('**/events*', (route) => (lost < 2 ? route.abort('failed') : route.continue()));
  await chat.page.reload();
  await chat.page.route('**/messages', async (route) => {
    if (route.request().method() !== 'POST' || lost === 2) return route.continue();
    lost += 1;
    await route.fetch();
    await route.abort('connectionreset');
  });
  await chat.say('said once');
  await are(chat, 'stored', 'said once');
  assert.equal(lost, 2, 'two answers were lost');
  await chat.shows('said once');
  assert.deepEqual(await kept(room), ['said once']);
});

story('what waits outlives a reload', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const room = await stage.room();
  const chat = await (await stage.open(room.link)).ready();
  const refuse = (route) => (route.request().method() === 'POST' ? route.abort('failed') : route.continue());
  await chat.page.route('**/messages', refuse);
  await chat.say('one');
  await chat.say('two');
  await are(chat, 'kept', 'one', 'two');
  await chat.page.reload();
  await are(chat, 'kept', 'one', 'two');
  assert.deepEqual(await kept(room), []);
  await chat.page.unroute('**/messages', refuse);
  await are(chat, 'stored', 'one', 'two');
  assert.deepEqual(await kept(room), ['one', 'two']);
});

story('a killed server finds its readers and their lines again', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const server = await stage.server();
  const room = await stage.room({ server });
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('before');
  await are(chat, 'stored', 'before');
  await server.kill();
  await chat.say('while nobody listened');
  await are(chat, 'kept', 'while nobody listened');
  await server.restart();
  await are(chat, 'stored', 'before', 'while nobody listened');
  await room.api.say('from elsewhere');
  await chat.shows('before', 'while nobody listened', 'from elsewhere');
  assert.deepEqual(await kept(room), ['before', 'while nobody listened', 'from elsewhere']);
});

story('two tabs share what waits, and send it once', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const room = await stage.room();
  const one = await (await stage.open(room.link)).ready();
  const other = await (await stage.tab(one.profile, `${room.server.url}/chat`)).ready();
  await one.profile.setOffline(true);
  await one.say('from one tab');
  await are(one, 'kept', 'from one tab');
  await other.say('from the other');
  await are(other, 'kept', 'from the other');
  await one.profile.setOffline(false);
  for (const tab of [one, other]) {
    await until('both lines in both tabs', async () => {
      const lines = await tab.lines();
      assert.deepEqual(lines.map((line) => line.text).sort(), ['from one tab', 'from the other']);
      return lines.every((line) => line.state === 'stored');
    });
  }
  assert.deepEqual((await kept(room)).sort(), ['from one tab', 'from the other']);
  assert.deepEqual(await one.texts(), await other.texts(), 'both tabs show one order');
});

story('a tick says where the line is, and no more', async (stage) => {
  const room = await stage.room();
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('is anybody there?');
  await are(chat, 'stored', 'is anybody there?');
  const state = await chat.saying('is anybody there?').locator('.state').innerText();
  assert.match(state, /on the server/i);
  assert.doesNotMatch(state, /deliver/i, 'the agent is away, and has nothing yet');
});

story('what is written before there is an agent is kept for the first one', async (stage) => {
  const server = await stage.server();
  await server.command('tenant', 'create', 'new');
  await server.command('route', 'add', '--tenant', 'new', '--allow', 'any', 'webchat:porch');
  const chat = await (await stage.open((await server.invite('zoe', undefined, 'porch')).link)).ready();
  await until('the header to say that there is none yet', async () =>
    /no agent yet: messages are kept/i.test(await chat.find('agent-state').innerText()),
  );
  await chat.say('is anybody there yet?');
  await are(chat, 'stored', 'is anybody there yet?');
  const made = await server.command('gateway', 'create', '--tenant', 'new', 'first');
  const agent = await stage.agent({ id: made.gateway_id, secret: made.secret, url: server.url });
  const asked = await agent.next();
  assert.equal(asked.text, 'is anybody there yet?');
  await agent.send(asked, 'now I am');
  await chat.saying('now I am').waitFor();
});

story('why a line reached no agent is told wherever its writer looks', async (stage) => {
  const room = await stage.room();
  await room.server.invite('bob', room.gateway.id, room.room);
  // An invitation's own route gives the agent every word.
  await room.server.command('route', 'remove', `webchat:${room.room}`);
  const route = ['--tenant', 'default', '--gateway', room.gateway.id, '--allow', 'any'];
  await room.server.command('route', 'add', `webchat:${room.room}`, ...route);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('just between us');
  const told = async (browser) => {
    await are(browser, 'undelivered', 'just between us');
    assert.match(await browser.saying('just between us').innerText(), /reached no agent: .*@agent/i);
  };
  await told(chat);
  await chat.page.reload();
  await told(chat);
  await told(await (await stage.open(room.link)).ready());
});

story('a line that was forgotten with its room is not sent', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const room = await stage.room();
  const chat = await (await stage.open(room.link)).ready();
  let [down, tries] = [true, 0];
  await chat.page.route('**/messages', (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    tries += 1;
    return down ? route.abort('failed') : route.continue();
  });
  await chat.say('take this back');
  await are(chat, 'kept', 'take this back');
  await chat.page.getByRole('button', { name: /^Forget .* on this device$/ }).click();
  await chat.shown('would be lost');
  await chat.page.getByRole('button', { name: 'Forget it' }).click();
  await chat.shown('You need an invitation');
  down = false;
  const before = tries;
  // Whatever still waits is sent at once when the network comes back.
  await chat.profile.setOffline(true);
  await chat.profile.setOffline(false);
  await pause(RETRY);
  assert.equal(tries, before, 'nobody tries any more');
  assert.deepEqual(await kept(room), []);
  assert.doesNotMatch(await chat.page.evaluate(() => Object.keys(localStorage).join()), /outbox/);
});

story('what is written before the room is known waits for it, and looks in no way revoked', async (stage) => {
  const room = await stage.room();
  const chat = await stage.open('about:blank');
  let meet;
  const asked = new Promise((go) => (meet = go));
  await chat.page.route('**/chat/api/me', async (route) => {
    await asked;
    await route.continue();
  });
  const posts = [];
  chat.page.on('request', (it) => it.method() === 'POST' && posts.push(new URL(it.url()).pathname));
  await chat.page.goto(room.link);
  await chat.ready();
  await chat.say('quick one');
  await chat.saying('quick one').waitFor();
  assert.equal(await chat.page.getByRole('alert').isVisible(), false);
  meet();
  await are(chat, 'stored', 'quick one');
  assert.deepEqual(posts, [`/chat/api/rooms/${room.room}/messages`]);
  assert.deepEqual(await kept(room), ['quick one']);
});

story('a refused post is no proof that the invitation is', async (stage) => {
  stage.expected.push(/status of 401/);
  const room = await stage.room();
  const chat = await (await stage.open(room.link)).ready();
  let refused = 0;
  await chat.page.route('**/messages', (route) => {
    if (route.request().method() !== 'POST' || (refused += 1) > 1) return route.continue();
    return route.fulfill({ status: 401, json: { error: 'who are you?' } });
  });
  await chat.say('let me in');
  await are(chat, 'stored', 'let me in');
  assert.equal(await chat.page.getByRole('alert').isVisible(), false);
  assert.deepEqual(await kept(room), ['let me in']);
});
