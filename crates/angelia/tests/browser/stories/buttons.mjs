// Questions of the agent with buttons, and what it takes back.

import assert from 'node:assert/strict';
import { PHONE, barriers } from '../stage/browser.mjs';
import { shoot } from '../stage/pictures.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

const QUESTION = 'May I run this?';
const ASKS = `${QUESTION}\n\n\`\`\`\nrm -r build\n\`\`\``;
const OPTIONS = [
  { id: 'once', label: 'Allow Once', style: 'primary' },
  { id: 'session', label: 'Allow Session' },
  { id: 'deny', label: 'Deny', style: 'danger' },
];
const THUMB = 44;
/** A request that the server refuses is told by the browser as an error. */
const REFUSED = /status of 40[39]/;

const buttons = (chat) => chat.page.getByRole('group', { name: 'Your answer' }).getByRole('button');
const button = (chat, name) => chat.page.getByRole('button', { name, exact: true });
const gone = (chat) => until('the buttons to go', async () => (await buttons(chat).count()) === 0);

/** A room in which the agent works on what Ann said, and asks her. */
async function asked(stage, options) {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link, options)).ready();
  await chat.say('Please clean up');
  const event = await agent.begin();
  const prompt = await agent.ask(event, ASKS, OPTIONS);
  await button(chat, 'Allow Once').waitFor();
  return { room, agent, chat, event, prompt };
}

story('a press reaches the agent, and the question shows what was chosen', async (stage) => {
  const { room, agent, chat, event, prompt } = await asked(stage);
  assert.deepEqual(await buttons(chat).allInnerTexts(), OPTIONS.map(({ label }) => label));
  assert.deepEqual(await barriers(chat.page), []);
  await shoot(chat, 'buttons.png');
  await chat.page.reload();
  await button(chat, 'Allow Once').click();
  const { prompt_response: pressed, source } = await agent.next();
  assert.equal(pressed.prompt_id, prompt);
  assert.deepEqual([pressed.option_id, pressed.label, source.user_id], ['once', 'Allow Once', 'ann']);
  await gone(chat);
  await chat.saying(QUESTION).getByText('→ Allow Once (ann)').waitFor();
  await agent.finish(event, 'Done.');
  await chat.saying('Done.').waitFor();
  await chat.page.reload();
  await chat.saying(QUESTION).getByText('→ Allow Once (ann)').waitFor();
  assert.equal(await buttons(chat).count(), 0);
  assert.equal(agent.inbound.length, 0, 'once');
  const lines = await room.api.lines();
  assert.ok(!JSON.stringify(lines).includes('"prompt"'), 'no number of ours is shown');
});

story('an approval is for whoever asked, and a question for everybody', async (stage) => {
  stage.expected.push(REFUSED);
  const { room, agent, chat, event } = await asked(stage);
  const invitation = await room.server.invite('bob', room.gateway.id, room.room);
  const bobs = await (await stage.open(invitation.link)).ready();
  await button(bobs, 'Deny').click();
  await bobs.shown('Only the person whose request this is');
  await button(chat, 'Deny').click();
  assert.equal((await agent.next()).prompt_response.option_id, 'deny');
  await gone(bobs);
  await agent.ask(event, 'Which one?', [{ id: 'c0', label: 'Red' }, { id: 'c1', label: 'Blue' }], 'clarify');
  await button(bobs, 'Blue').click();
  const { prompt_response: pressed, source } = await agent.next();
  assert.deepEqual([pressed.option_id, source.user_id], ['c1', 'bob']);
  await chat.saying('Which one?').getByText('→ Blue (bob)').waitFor();
  await gone(chat);
});

story('buttons are pressed by keyboard, and by thumb on a phone in the dark', async (stage) => {
  const { agent, chat } = await asked(stage, { viewport: PHONE, colorScheme: 'dark' });
  for (const one of await buttons(chat).all()) {
    const { height } = await one.boundingBox();
    assert.ok(height >= THUMB, `${height} px`);
  }
  assert.deepEqual(await barriers(chat.page), []);
  await shoot(chat, 'buttons-phone.png');
  await button(chat, 'Allow Session').focus();
  await chat.page.keyboard.press('Enter');
  assert.equal((await agent.next()).prompt_response.option_id, 'session');
  await gone(chat);
  const focused = await chat.page.evaluate(() => document.activeElement.className);
  assert.match(focused, /line/, 'whoever pressed is still at the line');
});

story('what the agent takes back is gone, for those who come later as well', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('Tell me a secret');
  const event = await agent.begin();
  const secret = await agent.send(event, 'The key is under the mat.');
  await chat.saying('The key is under the mat.').waitFor();
  await agent.delete(event, secret);
  await until('it to go', async () => (await chat.saying('under the mat').count()) === 0);
  await assert.rejects(agent.delete(event, event.message_id), /no such message of yours/);
  await agent.finish(event, 'Forget it.');
  await chat.page.reload();
  await chat.shows('Tell me a secret', 'Forget it.');
});
