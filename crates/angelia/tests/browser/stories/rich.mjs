// Reactions, drafts, words of the agent, threads.

import assert from 'node:assert/strict';
import { PHONE, barriers } from '../stage/browser.mjs';
import { shoot } from '../stage/pictures.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

const THUMB = 44;

async function begun(stage, options, words = 'Please look at this') {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link, options)).ready();
  await chat.say(words);
  return { room, agent, chat, event: await agent.next() };
}

const marks = (line) => line.getByTestId('marks').locator('li');
const card = (chat) => chat.page.getByTestId('thread').locator('visible=true');
const title = (chat) => chat.page.locator('#room-name');


story('reactions of the agent are shown, and kept over a reload', async (stage) => {
  const { agent, chat, event } = await begun(stage);
  const question = chat.saying('Please look at this');
  await agent.react(event, '👀');
  await until('the eyes', async () => (await marks(question).count()) === 1);
  assert.equal(await marks(question).first().textContent(), 'Seen by the agent');
  await agent.react(event, '👀', { remove: true });
  const answer = await agent.finish(event, 'Looks good.');
  await agent.react(event, '🎉', { message_id: answer });
  await until('the tick', async () => String(await marks(question).allTextContents()) === 'Done');
  await until('it on the answer', async () => String(await marks(chat.line(answer)).allTextContents()) === '🎉');
  assert.equal(await marks(question).count(), 1);
  assert.deepEqual(await barriers(chat.page), []);
  assert.ok(!(await chat.page.locator('#spoken').textContent()).includes('Done'), 'nobody is told of a mark');
  await chat.page.reload();
  await until('both after a reload', async () => (await chat.page.getByTestId('marks').locator('li').count()) === 2);
  assert.ok(!(await question.innerText()).includes('Edited'), 'a mark is no edit');
});

story('a draft grows, and its line takes its place', async (stage) => {
  const { room, agent, chat, event } = await begun(stage);
  const draft = chat.find('draft');
  await agent.type(event, 'Reading the build log');
  await until('its words', async () => (await chat.find('typing').innerText()) === 'Reading the build log');
  await agent.draft(event, 'The build **fails**');
  await draft.getByText('fails').waitFor();
  assert.equal(await draft.locator('strong').innerText(), 'fails', 'as Markdown');
  const late = await (await stage.open(room.link)).ready();
  await late.find('draft').getByText('fails').waitFor();
  await agent.draft(event, 'The build **fails** in `rich.rs`');
  await draft.getByText('rich.rs').waitFor();
  assert.deepEqual(await barriers(chat.page), []);
  // From now on it is noted whether there was a moment with neither or with both.
  await chat.page.evaluate(() => {
    window.moments = [];
    const look = () => {
      const drafted = !document.querySelector('[data-testid=draft]').hidden;
      const said = [...document.querySelectorAll('[data-testid=text]')].some((text) =>
        text.innerText.includes('rich.rs, line 7'),
      );
      window.moments.push(`${drafted} ${said}`);
      window.looking = requestAnimationFrame(look);
    };
    look();
  });
  await agent.finish(event, 'The build **fails** in `rich.rs`, line 7.');
  await chat.saying('line 7').waitFor();
  await draft.waitFor({ state: 'hidden' });
  const moments = new Set(await chat.page.evaluate(() => window.moments));
  assert.deepEqual([...moments].sort(), ['false true', 'true false'], 'no flicker');
  await until('no more words', async () => (await chat.find('typing').innerText()) === '');
  await agent.type(event, 'Cleaning up');
  await agent.draft(event, 'Never said');
  await draft.getByText('Never said').waitFor();
  await agent.type(event, '');
  await draft.waitFor({ state: 'hidden' });
  await until('no words', async () => (await chat.find('typing').innerText()) === '');
});

story('a thread is opened, written in and left, and is there after a reload', async (stage) => {
  const { room, agent, chat, event } = await begun(stage);
  const bobs = await room.server.invite('bob', room.gateway.id, room.room);
  const bob = await (await stage.open(bobs.link)).ready();
  const thread = await agent.openThread(event, 'Broken build', event.message_id);
  assert.equal(thread, event.message_id);
  const inside = { ...event, source: { ...event.source, thread_id: thread } };
  await agent.send(inside, 'I work on it here.');
  await card(chat).getByText('1 reply').waitFor();
  await card(chat).getByText('1 new').waitFor();
  assert.equal(await chat.saying('I work on it here.').count(), 0, 'it is not said in the room');
  assert.deepEqual(await barriers(chat.page), []);

  await card(chat).click();
  await chat.shows('Please look at this', 'I work on it here.');
  assert.equal(await title(chat).innerText(), 'Broken build');
  assert.equal(await chat.page.evaluate(() => document.activeElement.id), 'composer');
  assert.deepEqual(await barriers(chat.page), []);
  await chat.say('How far are you?');
  const asked = await agent.next();
  assert.deepEqual([asked.source.chat_type, asked.source.thread_id], ['thread', thread]);
  await agent.draft(asked, 'Half of');
  await chat.find('draft').getByText('Half of').waitFor();
  assert.ok(await bob.find('draft').isHidden(), 'who is in the room does not see it');
  await agent.finish(asked, 'Half of it is done.');
  await chat.shows('Please look at this', 'I work on it here.', 'How far are you?', 'Half of it is done.');
  await card(bob).getByText('3 replies').waitFor();
  await bob.shows('Please look at this');

  await chat.page.reload();
  await chat.shows('Please look at this', 'I work on it here.', 'How far are you?', 'Half of it is done.');
  await agent.rename(event, thread, 'Mended build');
  await until('the new name', async () => (await title(chat).innerText()) === 'Mended build');
  await chat.composer().fill('half written');
  await chat.page.keyboard.press('Escape');
  await chat.shows('Please look at this');
  assert.equal(await chat.composer().inputValue(), '', 'what is half written stays in the thread');
  assert.equal(await chat.page.evaluate(() => document.activeElement.dataset.testid), 'thread');
  assert.equal(await card(chat).getByText('new').count(), 0, 'it was read');
  await chat.page.keyboard.press('Enter');
  await until('it again', async () => (await chat.composer().inputValue()) === 'half written');
  await chat.page.goBack();
  await chat.shows('Please look at this');
  // The room and its thread are two conversations.
  await chat.say('And in the room?');
  assert.equal((await agent.next()).source.thread_id ?? null, null);
});

story('a rich conversation has its picture taken, by day and on a phone at night', async (stage) => {
  const { room, agent, chat, event } = await begun(
    stage,
    { colorScheme: 'light', reducedMotion: 'reduce' },
    'The nightly build is red. Can you find out why?',
  );
  const thread = await agent.openThread(event, 'Nightly build', event.message_id);
  const inside = { ...event, source: { ...event.source, thread_id: thread } };
  await agent.react(event, '👀');
  await agent.send(inside, 'Two tests fail since yesterday.');
  await agent.send(event, 'I look into it in a thread. The short version: **two tests** fail since yesterday.');
  const done = await agent.openThread(event, 'Ideas for tests');
  await agent.type(event, 'Reading the build log');
  await agent.draft(event, 'Both fail in `parse()`: the new option\n\n- has no default\n- is read twice');
  await chat.find('draft').getByText('is read twice').waitFor();
  await card(chat).first().getByText('1 reply').waitFor();
  await chat.line(done).waitFor();
  await chat.page.mouse.move(0, 0);
  await shoot(chat, 'rich.png');

  const phone = { viewport: PHONE, isMobile: true, hasTouch: true, deviceScaleFactor: 2, colorScheme: 'dark' };
  const hand = await (await stage.open(room.link, { ...phone, reducedMotion: 'reduce' })).ready();
  const { height } = await card(hand).first().boundingBox();
  assert.ok(height >= THUMB, `${height} px`);
  await card(hand).first().tap();
  await hand.saying('Two tests fail').waitFor();
  assert.equal(await hand.page.evaluate(() => document.activeElement.id), 'thread-back');
  assert.deepEqual(await barriers(hand.page), []);
  const wide = await hand.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.ok(!wide, 'nothing is wider than the phone');
  await shoot(hand, 'rich-phone.png');
  const back = await hand.find('thread-back').boundingBox();
  assert.ok(back.height >= THUMB && back.width >= THUMB, `${back.width} × ${back.height} px`);
  await hand.find('thread-back').tap();
  await card(hand).first().waitFor();
});
