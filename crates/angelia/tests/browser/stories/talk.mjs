// Saying something and seeing what comes of it.

import assert from 'node:assert/strict';
import { NO_NETWORK } from '../stage/chat.mjs';
import { Person } from '../stage/person.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

/** Words that have not changed for this long stand still. */
const STILL = 1_500;

/** The demo's rooms, as their keys tell them. */
async function roomsOf(demo) {
  const rooms = {};
  for (const key of demo.keys) {
    const answer = await fetch(`${demo.url}/chat/api/me`, { headers: { authorization: `Bearer ${key}` } });
    const me = await answer.json();
    rooms[me.room] = new Person(demo.url, me.room, key);
  }
  return rooms;
}

story('the demo streams an answer, and the page tells which way it took', async (stage) => {
  const demo = await stage.demo();
  const chat = await (await stage.open(demo.link)).ready();
  assert.equal(new URL(chat.page.url()).hash, '', 'no key stays in the address');
  await chat.watchGrowth('you');
  await chat.say('Hello there');
  await until('the answer to grow before our eyes', async () => (await chat.grown()).length >= 4);
  await chat.quiet(STILL);

  const { lobby } = await roomsOf(demo);
  const [question, answer] = (await lobby.lines()).slice(-2);
  assert.equal(question.text, 'Hello there');
  assert.equal(answer.from_agent, true);
  const rendered = await chat.page.evaluate((html) => {
    return new DOMParser().parseFromString(html, 'text/html').body.textContent.replace(/\s+/g, ' ').trim();
  }, answer.html);
  const shown = (await chat.text(answer.message_id).textContent()).replace(/\s+/g, ' ').trim();
  assert.equal(shown, rendered, 'what stands still is what the server has');

  await chat.line(question.message_id).click();
  const explained = (await demo.command('explain', question.message_id)).messages[0];
  const [reply] = explained.replies;
  const times = [
    explained.appended_at,
    explained.pushed_at,
    explained.settled_at,
    reply.accepted_at,
    reply.finished_at,
  ];
  await until('every leg with its time', async () => {
    const legs = (await chat.find('story-leg').allInnerTexts()).join('\n');
    for (const at of times) {
      const after = at - explained.received_at;
      const words = after < 1000 ? `+${after} ms` : `+${(after / 1000).toFixed(1)} s`;
      assert.ok(legs.includes(words), `${words} in ${legs}`);
    }
    return /\d+ changes/.test(legs);
  });
  // As it works in any directory, beside a demo with its own data.
  const command = new RegExp(`ANGELIA_SERVER__DATA_DIR=/\\S+ /\\S+ explain ${question.message_id}`);
  assert.match(await chat.find('story').innerText(), command);
});

story('a slow agent is stopped, says so, and writes no further word', async (stage) => {
  const demo = await stage.demo();
  const chat = await (await stage.open(demo.link)).ready();
  await chat.enter('dm:you');
  await chat.watchGrowth('you');
  await chat.say('Think about the sea');
  await until('it to think aloud', async () => (await chat.grown()).length >= 2);
  await chat.find('stop').click();
  await until('it to say that it stopped', async () => /stopp/i.test((await chat.grown()).at(-1)));
  await chat.quiet(2_500);
  await chat.find('stop').waitFor({ state: 'hidden' });
  const { 'dm:you': direct } = await roomsOf(demo);
  const last = (await direct.lines()).at(-1);
  assert.match(last.text, /stopp/i);
});

story('a reply carries what it answers, both ways', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('What is the capital of Arcadia?');
  const asked = await agent.next();
  const answer = await agent.send(asked, 'There is **none**.');
  await chat.line(answer).waitFor();
  assert.equal(await chat.text(answer).locator('strong').innerText(), 'none');
  await chat.shown('What is the capital of Arcadia?');
  await chat.line(answer).hover();
  await chat.line(answer).getByTestId('reply').click();
  await chat.say('Then who governs it?');
  const reply = await agent.next();
  assert.equal(reply.reply_to_message_id, answer);
  const line = chat.line(reply.message_id);
  await until('the reply to quote its answer', async () => (await line.innerText()).includes('There is'));
});

story('an agent that types is seen typing, until it writes', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('hello');
  const event = await agent.next();
  await chat.find('stop').waitFor();
  await agent.type(event);
  await until('it to be seen typing', async () => (await chat.find('typing').innerText()) !== '');
  await agent.send(event, 'done');
  await until('it to be done', async () => (await chat.find('typing').innerText()) === '');
  await chat.find('stop').waitFor({ state: 'hidden' });
});

story('the stop button reaches the agent', async (stage) => {
  const room = await stage.room({ direct: true });
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('count to a million');
  const event = await agent.next();
  const id = await agent.send(event, 'one');
  await agent.edit(event, id, 'one two');
  await chat.find('stop').click();
  await until('the interrupt', () => agent.interrupts === 1);
  await agent.edit(event, id, 'one two. Stopped.');
  await chat.find('stop').waitFor({ state: 'hidden' });
  assert.equal(agent.inbound.length, 0, 'a stop is no message');
});

story('a stop that did not get through can be pressed again', async (stage) => {
  stage.expected.push(NO_NETWORK);
  const room = await stage.room({ direct: true });
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  let refused = 0;
  await chat.page.route('**/interrupt', (route) => (refused++ ? route.continue() : route.abort('failed')));
  await chat.say('think');
  await agent.next();
  await chat.find('stop').click();
  await until('the order to be lost', () => refused === 1);
  await chat.page.getByRole('button', { name: 'Stop', exact: true }).click();
  await until('the interrupt', () => agent.interrupts === 1);
});

story('a story that comes late is not told in another room', async (stage) => {
  const [one, two] = [await stage.room(), await stage.room()];
  await one.api.say('a secret of one room');
  const chat = await (await stage.open(two.link)).ready();
  let tell;
  const late = new Promise((go) => (tell = go));
  await chat.page.route('**/story', async (route) => {
    await late;
    await route.continue();
  });
  const asked = chat.page.waitForRequest('**/story');
  await chat.page.evaluate((hash) => (location.hash = hash), one.key);
  await asked;
  await chat.enter(two.room);
  const told = chat.page.waitForResponse('**/story');
  tell();
  await (await told).finished();
  // One more turn of the page, which would draw it.
  await chat.page.evaluate(() => new Promise((seen) => setTimeout(seen, 100)));
  assert.doesNotMatch(await chat.find('story').innerText(), /secret|explain/);
});

story('nobody is offered to stop what the agent does for somebody else', async (stage) => {
  const room = await stage.room();
  const bob = await room.server.invite('bob', room.gateway.id, room.room);
  const agent = await stage.agent(room.gateway);
  const ann = await (await stage.open(room.link)).ready();
  const other = await (await stage.open(bob.link)).ready();
  await ann.say('@agent work for ann');
  const event = await agent.next();
  await agent.type(event);
  for (const chat of [ann, other])
    await until('it to be seen typing', async () => (await chat.find('typing').innerText()) !== '');
  await ann.find('stop').waitFor();
  assert.equal(await other.find('stop').isVisible(), false);
  const id = await agent.send(event, 'for ann');
  for (const chat of [ann, other]) await chat.line(id).waitFor();
  assert.equal(await ann.find('stop').isVisible(), true);
  assert.equal(await other.find('stop').isVisible(), false);
});

story('a reload shows the same lines in the same order and state', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('first');
  const event = await agent.next();
  const early = await agent.send(event, 'an early answer');
  await chat.line(early).waitFor();
  await chat.say('second');
  await agent.next();
  await room.api.say('from elsewhere');
  // The edit is the newest event, but its line keeps its place.
  await agent.edit(event, early, 'an early answer, changed late');
  const texts = ['first', 'an early answer, changed late', 'second', 'from elsewhere'];
  await chat.shows(...texts);
  const before = await until('nothing to be on its way', async () => {
    const lines = await chat.lines();
    return lines.every((line) => line.id && line.state !== 'sending') && lines;
  });
  await chat.page.reload();
  await chat.shows(...texts);
  assert.deepEqual(await chat.lines(), before);
});

story('an agent with a name is called by it', async (stage) => {
  const room = await stage.room();
  await room.server.command('gateway', 'set', room.gateway.id, '--display-name', 'Iris');
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('Who are you?');
  const event = await agent.begin();
  await until('the page to tell who is at work', async () =>
    (await chat.page.locator('#typing').textContent()).includes('Iris is at work'),
  );
  await agent.finish(event, 'I am the one you asked.');
  await until('an answer of hers', async () =>
    (await chat.page.locator('article .author, .line .author').allTextContents()).includes('Iris'),
  );
});
