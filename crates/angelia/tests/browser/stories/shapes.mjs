// Small screens, dark rooms, and what keeps people out.

import assert from 'node:assert/strict';
import { barriers, PHONE } from '../stage/browser.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

const TOUCH = { hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
/** A thumb's width, in px. */
const THUMB = 44;

const MARKDOWN = `# A title

Some *words*, a [link](https://example.org), \`code\`:

\`\`\`rust
let a_very_long_line_of_code = that_goes_on("and on and on and on and on and on and on and on");
\`\`\`

- one
- two

> quoted

| a | b | c | d | e | f |
|---|---|---|---|---|---|
| wide | tables | are | hard | on | phones |`;

/** Fills a conversation with what a page finds hard. */
async function conversation(stage, options) {
  const room = await stage.room({ direct: true });
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link, options)).ready();
  await chat.say(
    'Show me what you can do, with https://example.org/a/rather/long/address/that/does/not/break/anywhere.html',
  );
  const event = await agent.next();
  const answer = await agent.send(event, MARKDOWN);
  await chat.line(answer).waitFor();
  await chat.line(event.message_id).waitFor();
  return { room, agent, chat, event, answer };
}

async function fits(chat) {
  const wide = await chat.page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than the screen`);
}

async function clear(chat, where) {
  assert.deepEqual(await barriers(chat.page), [], where);
}

for (const width of [PHONE.width, 320]) {
  story(`on a phone of ${width} px nothing is too wide, and sheets open by touch`, async (stage) => {
    const { chat, event } = await conversation(stage, { viewport: { ...PHONE, width }, ...TOUCH });
    await fits(chat);
    const small = await chat.page.evaluate((thumb) => {
      const seen = [...document.querySelectorAll('button, textarea, input')].filter(
        (it) => it.checkVisibility({ visibilityProperty: true }) && !it.closest('[inert]'),
      );
      return seen
        .filter((it) => !it.closest('[data-testid=line]'))
        .map((it) => ({ it, box: it.getBoundingClientRect() }))
        .filter(({ box }) => box.width > 0 && (box.height < thumb || box.width < thumb))
        .map(({ it, box }) => `${it.id || it.className}: ${box.width}×${box.height}`);
    }, THUMB);
    assert.deepEqual(small, [], 'everything is as large as a thumb');
    await clear(chat, 'the conversation');

    await chat.page.locator('#rooms-button').tap();
    await until('the rooms to be there', () => inside(chat, 'rooms'));
    await fits(chat);
    await clear(chat, 'the rooms');
    await chat.find('room').first().tap();
    await until('the rooms to be gone', async () => !(await inside(chat, 'rooms')));

    const fromHeader = () => chat.page.locator('#story-button').tap();
    const fromLine = async () => {
      await chat.line(event.message_id).tap();
      await chat.line(event.message_id).getByRole('button', { name: 'What happened' }).tap();
    };
    for (const ask of [fromHeader, fromLine]) {
      await ask();
      await until('the story to be there', () => inside(chat, 'story'));
      await until('its legs', async () => (await chat.find('story-leg').count()) >= 4);
      await fits(chat);
      await clear(chat, 'the story');
      await chat.page.getByRole('button', { name: 'Close what happened' }).tap();
      await until('the story to be gone', async () => !(await inside(chat, 'story')));
    }

    await chat.composer().tap();
    await chat.composer().pressSequentially('one');
    await chat.page.keyboard.press('Enter');
    await chat.composer().pressSequentially('two');
    await chat.find('send').tap();
    await until('both in one message', async () => (await chat.texts()).includes('one\ntwo'));
  });
}

/** Whether a part of the page is on the screen and within reach. */
async function inside(chat, id) {
  return chat.find(id).evaluate((element) => {
    const box = element.getBoundingClientRect();
    const x = Math.min(Math.max(box.left + box.width / 2, 0), innerWidth - 1);
    const onTop = document.elementFromPoint(x, Math.min(box.top + 10, innerHeight - 1));
    return (
      !element.inert &&
      box.width > 0 &&
      box.left >= -1 &&
      box.right <= innerWidth + 1 &&
      element.contains(onTop)
    );
  });
}

story('in the dark the colours are others, and as easy to read', async (stage) => {
  const { chat, event } = await conversation(stage, { colorScheme: 'light' });
  const colours = () =>
    chat.page.evaluate(() => {
      const of = (it) => [getComputedStyle(it).backgroundColor, getComputedStyle(it).color];
      return [
        document.body,
        document.querySelector('[data-testid=composer]'),
        document.querySelector('[data-testid=text]'),
      ].map(of);
    });
  await chat.line(event.message_id).click();
  await until('its legs', async () => (await chat.find('story-leg').count()) >= 4);
  await clear(chat, 'light');
  const light = await colours();
  await chat.page.emulateMedia({ colorScheme: 'dark' });
  await until('other colours', async () => (await colours())[0][0] !== light[0][0]);
  const dark = await colours();
  for (const [n, [, words]] of light.entries()) assert.notEqual(dark[n][1], words);
  await chat.find('stop').waitFor({ state: 'hidden' });
  await clear(chat, 'dark');
  await chat.page.setViewportSize(PHONE);
  await clear(chat, 'dark, on a phone');
});

story('the invitation and the guide keep nobody out', async (stage) => {
  const demo = await stage.demo();
  for (const colorScheme of ['light', 'dark']) {
    const stranger = await stage.open(`${demo.url}/chat`, { colorScheme });
    await stranger.shown('angelia webchat invite');
    await clear(stranger, `the invitation, ${colorScheme}`);
    const chat = await (await stage.open(demo.link, { colorScheme })).ready();
    await chat.enter('hermes');
    await chat.find('guide-lines').waitFor();
    await clear(chat, `the guide, ${colorScheme}`);
  }
});
