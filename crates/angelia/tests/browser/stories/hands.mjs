// With keys alone, and with ears instead of eyes.

import assert from 'node:assert/strict';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

/** More stops than the page has. */
const MOST_STOPS = 40;

/** What has the focus. */
function focused(chat) {
  return chat.page.evaluate(() => {
    const { activeElement: it } = document;
    return {
      testid: it.dataset.testid,
      id: it.dataset.messageId,
      tag: it.localName,
      name: it.getAttribute('aria-label') ?? it.innerText,
    };
  });
}

/** Whether the focus can be seen: without it something in or around its place looks different. */
function focusShows(chat) {
  return chat.page.evaluate(() => {
    const { activeElement: it } = document;
    if (it === document.body) return true;
    const look = () =>
      [it, ...it.children, it.parentElement].map((part) => {
        const { outline, boxShadow, borderColor, transform, clipPath, top } = getComputedStyle(part);
        return [outline, boxShadow, borderColor, transform, clipPath, top].join(' ');
      });
    const focused = look();
    it.blur();
    const blurred = look();
    it.focus({ preventScroll: true });
    return focused.some((part, n) => part !== blurred[n]);
  });
}

/** Presses Tab until something has the focus, and sees the focus on every stop. */
async function tabTo(chat, what, wanted, key = 'Tab') {
  for (let stops = 0; stops < MOST_STOPS; stops += 1) {
    await chat.page.keyboard.press(key);
    const here = await focused(chat);
    assert.ok(await focusShows(chat), `the focus is seen on ${JSON.stringify(here)}`);
    if (wanted(here)) return here;
  }
  return assert.fail(`${what} is not reached by ${key}`);
}

story('with keys alone: a message, its answer, its story, a reply and a stop', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  const { keyboard } = chat.page;
  await chat.page.evaluate(() => document.activeElement.blur());
  await tabTo(chat, 'the skip link', ({ testid }) => testid === 'skip');
  await keyboard.press('Enter');
  await until('the composer to have the focus', async () => (await focused(chat)).testid === 'composer');
  await keyboard.type('first line');
  await keyboard.press('Shift+Enter');
  await keyboard.type('second line');
  await keyboard.press('Enter');
  const asked = await agent.next();
  assert.equal(asked.text, 'first line\nsecond line');
  const answer = await agent.send(asked, 'an answer');
  await chat.line(answer).waitFor();

  const line = await tabTo(chat, 'the conversation', ({ testid }) => testid === 'line', 'Shift+Tab');
  assert.ok(line.id);
  await keyboard.press('End');
  assert.equal((await focused(chat)).id, answer);
  await keyboard.press('ArrowUp');
  assert.equal((await focused(chat)).id, asked.message_id);
  await keyboard.press('Enter');
  await until('its story', async () =>
    (await chat.find('story').innerText()).includes(`angelia explain ${asked.message_id}`),
  );
  if ((await focused(chat)).testid !== 'line') await keyboard.press('Escape');
  if ((await focused(chat)).testid !== 'line')
    await tabTo(chat, 'the conversation', ({ testid }) => testid === 'line', 'Shift+Tab');
  await keyboard.press('End');
  await keyboard.press('r');
  await until('the composer again', async () => (await focused(chat)).testid === 'composer');
  await keyboard.type('never mind');
  await keyboard.press('Escape');
  await keyboard.press('Enter');
  assert.equal((await agent.next()).reply_to_message_id, null, 'Escape takes the reply back');
  await tabTo(chat, 'the conversation', ({ testid, id }) => testid === 'line' && id, 'Shift+Tab');
  for (let steps = 0; (await focused(chat)).id !== answer && steps < 5; steps += 1)
    await keyboard.press('ArrowUp');
  await keyboard.press('r');
  await until('the composer once more', async () => (await focused(chat)).testid === 'composer');
  await keyboard.type('go on');
  await keyboard.press('Enter');
  const reply = await agent.next();
  assert.equal(reply.reply_to_message_id, answer);
  await agent.type(reply);
  await chat.find('stop').waitFor();
  const forth = await tabTo(chat, 'the stop button', ({ testid }) => testid === 'stop');
  assert.match(forth.name, /stop/i);
  await keyboard.press('Enter');
  await until('the interrupt', () => agent.interrupts === 1);
});

/** Keeps what a screen reader would say from now on in `spoken`. */
function listen(chat) {
  return chat.page.evaluate(() => {
    window.spoken = [];
    const hear = (node) =>
      node.parentElement?.closest('[aria-live=polite], [aria-live=assertive], [role=status], [role=alert]');
    new MutationObserver((changes) => {
      for (const { addedNodes, target, type } of changes) {
        const nodes = type === 'characterData' ? [target] : addedNodes;
        for (const node of nodes) if (hear(node)) window.spoken.push(node.textContent);
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}

story('a screen reader hears each line once, a streamed one when it stands still', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await listen(chat);
  const log = chat.find('lines');
  assert.equal(await log.getAttribute('role'), 'log');
  assert.equal(await log.getAttribute('aria-live'), 'off', 'the log itself does not speak every edit');
  await chat.say('tell me a story');
  const event = await agent.next();
  const words = ['Once', 'upon', 'a', 'time', 'there', 'was', 'a', 'spirit'];
  const id = await agent.send(event, words[0]);
  for (let n = 2; n <= words.length; n += 1) await agent.edit(event, id, words.slice(0, n).join(' '));
  await chat.shows('tell me a story', words.join(' '));
  const heard = async () =>
    (await chat.page.evaluate(() => window.spoken)).filter((said) => said.includes('Once'));
  await until('the story to be spoken', async () => (await heard()).length > 0);
  const next = await agent.send(event, 'The end.');
  await until('the end to be spoken', async () =>
    (await chat.page.evaluate(() => window.spoken)).some((said) => said.includes('The end')),
  );
  await chat.line(next).waitFor();
  assert.deepEqual(
    (await heard()).map((said) => said.replace(/^.*?: /, '')),
    [words.join(' ')],
    'whole, and once',
  );
});

story('a screen reader hears the rest of an answer that paused', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await listen(chat);
  await chat.say('what is the answer?');
  const event = await agent.next();
  const heard = async () =>
    (await chat.page.evaluate(() => window.spoken)).filter((said) => /look|42/.test(said));
  const id = await agent.send(event, 'Let me look that up.');
  await until('the beginning to be spoken', async () => (await heard()).length === 1);
  await agent.edit(event, id, 'Let me look that up. The answer is 42.');
  await until('the rest to be spoken', async () => (await heard()).length === 2);
  assert.match((await heard())[1], /: The answer is 42\.$/);
});
