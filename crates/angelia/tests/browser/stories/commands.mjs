// The slash menu: the commands that the agent of a room declares.

import assert from 'node:assert/strict';
import { PHONE, barriers } from '../stage/browser.mjs';
import { shoot } from '../stage/pictures.mjs';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

const COMMANDS = [
  { name: 'new', description: 'Begin a new conversation' },
  {
    name: 'model',
    description: 'Choose which model answers',
    options: [{ type: 3, name: 'name', description: 'which', required: true }],
  },
  { name: 'status', description: 'See how the agent is' },
  ...Array.from({ length: 12 }, (_, n) => ({ name: `skill-${n}`, description: `Skill number ${n}` })),
  { name: 'Not A Name', description: 'no provider takes it' },
];
const KNOWN = COMMANDS.length - 1;
const THUMB = 44;

const menu = (chat) => chat.page.getByRole('listbox', { name: 'Commands' });
const options = (chat) => menu(chat).getByRole('option');
const names = async (chat) => (await options(chat).allInnerTexts()).map((text) => text.split(/\s/)[0]);
const chosen = (chat) => menu(chat).getByRole('option', { selected: true });
const value = (chat) => chat.composer().inputValue();
/** What the agent gets next; it answers, so that the next one is not held. */
async function said(agent) {
  const event = await agent.begin();
  await agent.finish(event, 'Done.');
  return event.text;
}
const shut = (chat) => until('the menu to close', async () => !(await menu(chat).isVisible()));

async function typing(stage, settings = {}, commands = COMMANDS) {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway, commands);
  // They are kept a moment after the agent was greeted.
  await until('its commands', async () => !commands?.length || (await room.api.commands()).length > 0);
  const chat = await (await stage.open(room.link, settings)).ready();
  return { room, agent, chat };
}

story('a slash shows what the agent knows, and keys choose among it', async (stage) => {
  const { room, agent, chat } = await typing(stage);
  await chat.composer().focus();
  await chat.page.keyboard.type('/');
  await menu(chat).waitFor();
  assert.equal(await options(chat).count(), KNOWN);
  assert.deepEqual((await names(chat)).slice(0, 3), ['/new', '/model', '/status']);
  assert.deepEqual(await barriers(chat.page), []);
  await shoot(chat, 'commands.png');

  // The field says what is chosen, and stays where the focus is.
  const active = () => chat.composer().getAttribute('aria-activedescendant');
  assert.equal(await chosen(chat).getAttribute('id'), await active());
  await chat.page.getByRole('combobox', { name: 'Message', expanded: true }).waitFor();
  await chat.page.keyboard.press('ArrowDown');
  assert.match(await chosen(chat).innerText(), /^\/model <name>/);
  await chat.page.keyboard.press('ArrowUp');
  await chat.page.keyboard.press('ArrowUp');
  assert.match(await chosen(chat).innerText(), /skill-11/, 'from the first to the last');
  assert.equal(await chosen(chat).getAttribute('id'), await active());

  await chat.page.keyboard.type('mo');
  await until('the list to shrink', async () => (await options(chat).count()) === 1);
  await chat.page.keyboard.press('Enter');
  await shut(chat);
  assert.equal(await value(chat), '/model ');
  assert.equal(await active(), null);
  await chat.page.getByRole('textbox', { name: 'Message' }).waitFor();
  await chat.page.keyboard.type('fast');
  assert.ok(!(await menu(chat).isVisible()), 'what follows is up to the writer');
  await chat.page.keyboard.press('Enter');
  assert.equal(await said(agent), '/model fast');

  // Tab chooses, too, and what is there in full is sent at once.
  await chat.page.keyboard.type('/sta');
  await chosen(chat).waitFor();
  await chat.page.keyboard.press('Tab');
  assert.equal(await value(chat), '/status');
  await shut(chat);
  await chat.page.keyboard.press('Enter');
  assert.equal(await said(agent), '/status');
  await chat.page.keyboard.type('/new');
  await chosen(chat).waitFor();
  await chat.page.keyboard.press('Enter');
  assert.equal(await said(agent), '/new');

  // A stranger to the room is told nothing.
  const path = `${room.server.url}/chat/api/rooms/${room.room}/commands`;
  assert.equal((await fetch(path)).status, 401);
  const told = await (await fetch(path, { headers: { authorization: `Bearer ${room.key}` } })).json();
  assert.deepEqual(told.commands[1], {
    name: 'model',
    description: 'Choose which model answers',
    usage: '<name>',
  });
});

story('Escape closes the menu, and words are not commands', async (stage) => {
  const { agent, chat } = await typing(stage);
  await chat.composer().focus();
  await chat.page.keyboard.type('/s');
  await menu(chat).waitFor();
  await chat.page.keyboard.press('Escape');
  await shut(chat);
  assert.equal(await value(chat), '/s', 'what was typed stays');
  await chat.page.keyboard.type('t');
  await menu(chat).waitFor();
  await chat.page.keyboard.type(' 1');
  await shut(chat);
  await chat.composer().fill('half/whole');
  assert.ok(!(await menu(chat).isVisible()));
  await chat.composer().fill('/nosuch');
  await chat.page.keyboard.press('Enter');
  assert.equal(await said(agent), '/nosuch', 'what nobody declared is sent as it is');
});

story('the menu is used by thumb on a phone in the dark', async (stage) => {
  const { agent, chat } = await typing(stage, { viewport: PHONE, colorScheme: 'dark', hasTouch: true, isMobile: true });
  await chat.composer().tap();
  await chat.page.keyboard.type('/');
  await menu(chat).waitFor();
  for (const one of (await options(chat).all()).slice(0, 3)) {
    const { height } = await one.boundingBox();
    assert.ok(height >= THUMB, `${height} px`);
  }
  const { x, y, width } = await menu(chat).boundingBox();
  assert.ok(x >= 0 && y >= 0 && x + width <= PHONE.width, 'it is on the screen');
  assert.deepEqual(await barriers(chat.page), []);
  await shoot(chat, 'commands-phone.png');
  await options(chat).filter({ hasText: '/model' }).tap();
  await shut(chat);
  assert.equal(await value(chat), '/model ');
  const focused = await chat.page.evaluate(() => document.activeElement.id);
  assert.equal(focused, 'composer', 'the keyboard stays');
  await chat.page.keyboard.type('small');
  await chat.find('send').tap();
  assert.equal(await said(agent), '/model small');
});

story('an agent that tells no commands has no menu', async (stage) => {
  const { agent, chat } = await typing(stage, {}, null);
  const asked = chat.page.waitForResponse((response) => response.url().endsWith('/commands'));
  await chat.composer().focus();
  await chat.page.keyboard.type('/help');
  assert.deepEqual(await (await asked).json(), { commands: [] });
  assert.ok(!(await menu(chat).isVisible()));
  await chat.page.keyboard.press('Enter');
  assert.equal(await said(agent), '/help');
});
