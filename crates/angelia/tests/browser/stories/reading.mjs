// Reading: what is on the screen stays there, and what was half written too.

import assert from 'node:assert/strict';
import { until } from '../stage/patience.mjs';
import { Person } from '../stage/person.mjs';
import { story } from '../stage/story.mjs';

const MANY = 30;
/** More than the page shows at first, and after one click. */
const LONG = 420;
/** Posts at the same time, which is quicker. */
const HANDS = 30;

/** How far the conversation is scrolled, and how far it is from its end. */
function where(chat) {
  return chat.find('lines').evaluate((lines) => {
    const box = lines.parentElement;
    return { top: box.scrollTop, below: box.scrollHeight - box.scrollTop - box.clientHeight };
  });
}

story('who reads back is not moved, who is at the end stays there', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  for (let n = 1; n <= MANY; n += 1) await room.api.say(`line ${n}`);
  const chat = await (await stage.open(room.link)).ready();
  await chat.saying(`line ${MANY}`).waitFor();
  await until('the end to be in sight', async () => (await where(chat)).below < 5);
  const event = await agent.next();
  const id = await agent.send(event, 'at the end', null);
  for (let n = 2; n <= 5; n += 1) await agent.edit(event, id, 'at the end\n\n'.repeat(n));
  await until(
    'the whole of it',
    async () => (await chat.text(id).innerText()).match(/at the end/g).length === 5,
  );
  await until('the end to be in sight still', async () => (await where(chat)).below < 5);

  await chat.find('lines').hover();
  await chat.page.mouse.wheel(0, -100_000);
  await until('the beginning', async () => (await where(chat)).top === 0);
  const later = await agent.send(event, 'meanwhile', null);
  await chat.find('newer').waitFor();
  for (let n = 2; n <= 4; n += 1) await agent.edit(event, later, 'meanwhile\n\n'.repeat(n));
  await until(
    'the whole of it',
    async () => (await chat.text(later).textContent()).match(/meanwhile/g).length === 4,
  );
  assert.equal((await where(chat)).top, 0, 'the reader stays where they read');
  await chat.find('newer').click();
  await until('the end to be in sight again', async () => (await where(chat)).below < 5);
  await chat.find('newer').waitFor({ state: 'hidden' });
});

story('what is half written survives a reload, each room for itself', async (stage) => {
  const [one, two] = [await stage.room(), await stage.room()];
  const chat = await (await stage.open(`${one.link},${two.key}`)).ready();
  await chat.enter(one.room);
  await chat.composer().fill('half a thought');
  await chat.enter(two.room);
  await until('an empty composer', async () => (await chat.composer().inputValue()) === '');
  await chat.composer().fill('another');
  await chat.page.reload();
  await chat.ready();
  await until('the other half', async () => (await chat.composer().inputValue()) === 'another');
  await chat.enter(one.room);
  await until('the half thought', async () => (await chat.composer().inputValue()) === 'half a thought');
});

story('what comes while a room is added is not read yet', async (stage) => {
  const room = await stage.room();
  const bob = await room.server.invite('bob', room.gateway.id, room.room);
  const chat = await (await stage.open(room.link)).ready();
  await chat.page.getByRole('button', { name: 'Add a room' }).click();
  await new Person(room.server.url, room.room, bob.key).say('psst');
  await until('the title to tell', async () => (await chat.page.title()).startsWith('(1)'));
  await chat.page.getByRole('button', { name: 'Back to the rooms' }).click();
  await chat.shows('psst');
  await until('it to be read', async () => !(await chat.page.title()).startsWith('('));
});

story('a long room is shown whole, click by click, and a quote finds its line', async (stage) => {
  const room = await stage.room();
  const { message_id } = await room.api.say('the very first');
  for (let n = 0; n < LONG; n += HANDS)
    await Promise.all(Array.from({ length: HANDS }, (_, hand) => room.api.say(`line ${n + hand}`)));
  await room.api.say('the last, about the first', { reply_to: message_id });
  const whole = (await room.api.lines()).map((line) => line.text);
  const chat = await (await stage.open(room.link)).ready();
  const earlier = chat.page.getByRole('button', { name: 'Show earlier lines' });
  await chat.saying('the last, about the first').waitFor();
  for (const shown of [400, whole.length]) {
    await earlier.click();
    await until(`${shown} lines`, async () => {
      assert.deepEqual(await chat.texts(), whole.slice(-shown));
      return true;
    });
  }
  assert.equal(await earlier.isVisible(), false, 'nothing is left to show');

  await chat.page.reload();
  await chat.saying('the last, about the first').getByRole('button', { name: /^In answer to/ }).click();
  await until('the quoted line in sight', () =>
    chat.line(message_id).evaluate((line) => {
      const { top, bottom } = line.getBoundingClientRect();
      return document.activeElement === line && top >= 0 && bottom <= innerHeight;
    }),
  );
  assert.deepEqual(await chat.texts(), whole);
});

story('a small step up lets go of an answer that grows, writing goes back to the end', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('tell me much');
  const event = await agent.next();
  let text = 'paragraph\n\n'.repeat(60);
  const id = await agent.send(event, text);
  await until('the end to be in sight', async () => {
    const { top, below } = await where(chat);
    return top > 0 && below < 5;
  });
  await chat.find('lines').hover();
  await chat.page.mouse.wheel(0, -30);
  // A wheel glides: the step is done when several looks find the same place.
  const places = [];
  const { top } = await until('a small step', async () => {
    const now = await where(chat);
    places.push(now.top);
    return now.below >= 20 && places.length > 3 && new Set(places.slice(-4)).size === 1 && now;
  });
  const grow = async (word) => {
    text += `${word}\n\n`.repeat(5);
    await agent.edit(event, id, text);
    await until(`${word} on the page`, async () => (await chat.text(id).textContent()).includes(word));
    // The frame after the one in which the text grew.
    await chat.page.evaluate(
      () => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen))),
    );
  };
  await grow('more');
  await grow('still more');
  assert.ok(Math.abs((await where(chat)).top - top) < 5, 'the reader stays where they read');

  await chat.say('enough');
  await chat.saying('enough').waitFor();
  await until('what was written to be in sight', async () => (await where(chat)).below < 5);
  await grow('the end');
  assert.ok((await where(chat)).below < 5, 'and the end stays in sight');
});
