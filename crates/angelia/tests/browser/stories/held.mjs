// Lines that are written while the agent works: they wait until it has finished.

import assert from 'node:assert/strict';
import { PHONE, barriers } from '../stage/browser.mjs';
import { shoot } from '../stage/pictures.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

const WAITS = 'Waits until the agent has finished';
const THUMB = 44;

/** A room with an agent that marks its turns and is given what comes meanwhile when it has finished. */
async function busy(stage, options) {
  const room = await stage.room();
  await room.server.command('gateway', 'set', room.gateway.id, '--while-busy', 'collect');
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link, options)).ready();
  await chat.say('Please water the plants');
  const event = await agent.begin();
  return { room, agent, chat, event };
}

const states = (chat, text) => chat.saying(text).locator('.state');
const sendNow = (chat, text) => chat.saying(text).getByRole('button', { name: 'Send now' });

/** Waits until the line that says this is held, or is not. */
async function isHeld(chat, text, held = true) {
  await until(`“${text}” to ${held ? 'be held' : 'be held no more'}`, async () => {
    const words = await states(chat, text).innerText();
    return held ? words.includes(WAITS) : /on the server/i.test(words) && !words.includes(WAITS);
  });
}

story('a line that is held says so, after a reload too, and goes when the agent has finished', async (stage) => {
  const { room, agent, chat, event } = await busy(stage);
  await chat.say('And the cactus');
  await isHeld(chat, 'And the cactus');
  await sendNow(chat, 'And the cactus').waitFor();
  assert.equal(agent.inbound.length, 0, 'it waits');
  await isHeld(chat, 'Please water the plants', false);
  await chat.page.reload();
  await isHeld(chat, 'And the cactus');
  await until('its story to say why', async () =>
    /held.*\n?.*it goes as soon as the agent has finished/is.test(await chat.find('story').innerText()),
  );
  const held = (await chat.lines()).at(-1).id;
  const story = await room.api.story(held);
  assert.ok(story.held_at && !story.pushed_at, JSON.stringify(story));
  await agent.finish(event, 'Watered.');
  const next = await agent.begin();
  assert.equal(next.text, 'And the cactus');
  await isHeld(chat, 'And the cactus', false);
  await agent.finish(next, 'That one too.');
  await chat.shows('Please water the plants', 'And the cactus', 'Watered.', 'That one too.');
  assert.equal(agent.interrupts, 0, 'nobody was in a hurry');
  const { messages } = await room.server.command('explain', held);
  assert.ok(messages[0].held_at < messages[0].pushed_at, JSON.stringify(messages));
  assert.equal((await room.api.story(event.message_id)).interrupted_at, null);
});

story('Send now stops the agent, and the line goes', async (stage) => {
  const { room, agent, chat, event } = await busy(stage);
  await chat.say('Stop, not the cactus!');
  await sendNow(chat, 'Stop, not the cactus!').click();
  await until('the agent to be told', () => agent.interrupts === 1);
  await until('the button to tell', async () => /stopping/i.test(await chat.find('stop').innerText()));
  assert.equal(agent.inbound.length, 0, 'not before it has ended what it does');
  await agent.finish(event, 'Interrupted.');
  const next = await agent.begin();
  assert.equal(next.text, 'Stop, not the cactus!');
  await isHeld(chat, 'Stop, not the cactus!', false);
  assert.equal(await chat.find('stop').innerText(), 'Stop', 'this one can be stopped as well');
  await agent.finish(next, 'The cactus is dry.');
  await chat.saying('The cactus is dry.').waitFor();
  const [first, second] = [await room.api.story(event.message_id), await room.api.story(next.message_id)];
  assert.ok(first.interrupted_at && !first.held_at, JSON.stringify(first));
  assert.ok(second.held_at && !second.interrupted_at, JSON.stringify(second));
  await chat.saying('Please water the plants').click();
  await until('its story', async () => /asked to stop/i.test(await chat.find('story').innerText()));
});

story('two lines that are held go together, and both are told of', async (stage) => {
  const { agent, chat, event } = await busy(stage);
  await chat.say('the cactus');
  await chat.say('and the fern');
  for (const text of ['the cactus', 'and the fern']) await isHeld(chat, text);
  await agent.finish(event, 'Watered.');
  const both = await agent.begin();
  assert.equal(both.text, 'the cactus\nand the fern');
  for (const text of ['the cactus', 'and the fern']) await isHeld(chat, text, false);
  await agent.finish(both, 'Both are.');
  await chat.saying('Both are.').waitFor();
  assert.equal(agent.inbound.length, 0, 'once');
  await chat.saying('the cactus').first().click();
  await until('its story', async () =>
    /went with the next line/i.test(await chat.find('story').innerText()),
  );
});

story('an agent that asks is answered at once', async (stage) => {
  const { agent, chat, event } = await busy(stage);
  await agent.send(event, 'Which watering can?');
  await chat.saying('Which watering can?').waitFor();
  await chat.say('The green one');
  // Somebody who answers within a moment may see it held, until the agent is seen to wait for it.
  const answer = await agent.next();
  assert.equal(answer.text, 'The green one');
  await isHeld(chat, 'The green one', false);
  assert.equal(agent.interrupts, 0);
  await agent.finish(event, 'Watered, with the green one.');
  await chat.saying('Watered, with the green one.').waitFor();
});

story('others see that a line is held, and only its author can hurry it', async (stage) => {
  const { room, agent, chat, event } = await busy(stage);
  const bob = await room.server.invite('bob', room.gateway.id, room.room);
  const other = await (await stage.open(bob.link)).ready();
  await chat.say('And the cactus');
  await isHeld(chat, 'And the cactus');
  await until('bob to see it', async () => (await states(other, 'And the cactus').innerText()).includes(WAITS));
  assert.equal(await sendNow(other, 'And the cactus').count(), 0);
  assert.equal(await sendNow(chat, 'And the cactus').count(), 1);
  await agent.finish(event, 'Watered.');
  await agent.finish(await agent.begin(), 'That one too.');
  await states(other, 'And the cactus').waitFor({ state: 'hidden' });
});

story('a line whose agent has gone waits for the agent, and is held no more', async (stage) => {
  const { agent, chat } = await busy(stage);
  await chat.say('And the cactus');
  await isHeld(chat, 'And the cactus');
  agent.hangUp();
  await isHeld(chat, 'And the cactus', false);
});

story('what is held is said once, and hurried with keys alone', async (stage) => {
  const { agent, chat, event } = await busy(stage);
  await chat.page.evaluate(() => {
    window.spoken = [];
    const heard = (changes) =>
      changes.forEach(({ addedNodes }) => window.spoken.push(...[...addedNodes].map((it) => it.textContent)));
    new MutationObserver(heard).observe(document.getElementById('spoken'), { childList: true });
  });
  await chat.say('the cactus');
  await chat.say('and the fern');
  await isHeld(chat, 'and the fern');
  const spoken = () => chat.page.evaluate(() => window.spoken.filter((words) => /waits until/i.test(words)));
  await until('it to be said', async () => (await spoken()).length > 0);
  await sendNow(chat, 'and the fern').focus();
  await chat.page.keyboard.press('Enter');
  await until('the agent to be told', () => agent.interrupts === 1);
  await agent.finish(event, 'Interrupted.');
  await agent.begin();
  await isHeld(chat, 'and the fern', false);
  const at = await chat.page.evaluate(() => document.activeElement.dataset.testid);
  assert.equal(at, 'line', 'whoever pressed the button is still at its line');
  assert.equal((await spoken()).length, 1);
});

story('a held line on a phone of 320 px, in the light and in the dark', async (stage) => {
  const touch = { isMobile: true, hasTouch: true, reducedMotion: 'reduce' };
  const { chat } = await busy(stage, { viewport: { ...PHONE, width: 320 }, colorScheme: 'light', ...touch });
  await chat.say('And the cactus, which stands at the window behind the curtain');
  await isHeld(chat, 'And the cactus');
  const wide = await chat.page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than the screen`);
  const { height } = await sendNow(chat, 'And the cactus').boundingBox();
  assert.ok(height >= THUMB, `${height} px are less than a thumb`);
  assert.deepEqual(await barriers(chat.page), [], 'light');
  await shoot(chat, 'held.png');
  await chat.page.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await barriers(chat.page), [], 'dark');
  await shoot(chat, 'held-dark.png');
});
