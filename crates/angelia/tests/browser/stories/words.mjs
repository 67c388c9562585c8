// What people and agents write is words, whatever it looks like.

import assert from 'node:assert/strict';
import { until } from '../stage/patience.mjs';
import { story } from '../stage/story.mjs';

const TRICKS = [
  '<script>window.hacked = 1</script>',
  '<img src=x onerror="window.hacked = 1">',
  '<svg onload="window.hacked = 1"></svg>',
  '<a href="javascript:window.hacked = 1">click</a>',
  '<style>body { display: none }</style>',
  '[click](javascript:window.hacked=1)',
  '[click](JaVaScRiPt:window.hacked=1)',
  '[click](data:text/html,<script>window.hacked=1</script>)',
  '[click](vbscript:x)',
  '![picture](http://127.0.0.1:9/x.png)',
  '<http://example.org/"onmouseover="window.hacked=1>',
  '<iframe srcdoc="<script>parent.hacked=1</script>"></iframe>',
];
/** Turns everything after it around, if it is let. */
const TURN = '\u202e';

/** Nothing of what was written became part of the page. */
async function harmless(chat) {
  const found = await chat.page.evaluate(() => ({
    hacked: window.hacked,
    foreign: [
      ...document.querySelectorAll(
        '[data-testid=text] :is(script, img, svg, style, iframe, object, form, input)',
      ),
    ].map((it) => it.outerHTML),
    handlers: [...document.querySelectorAll('[data-testid=text] *')]
      .flatMap((it) => [...it.attributes])
      .map((it) => it.name)
      .filter((name) => name.startsWith('on') || name === 'style'),
    links: [...document.querySelectorAll('[data-testid=line] a')].map((link) => ({
      protocol: link.protocol,
      rel: link.rel,
    })),
    wide: document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth,
  }));
  assert.equal(found.hacked, undefined);
  assert.deepEqual(found.foreign, []);
  assert.deepEqual(found.handlers, []);
  for (const { protocol, rel } of found.links) {
    assert.ok(['http:', 'https:', 'mailto:'].includes(protocol), protocol);
    assert.match(rel, /noopener/);
  }
  assert.ok(found.wide <= 0, `the page is ${found.wide} px too wide`);
}

story('hostile words of agents and people stay words', async (stage) => {
  const room = await stage.room();
  const agent = await stage.agent(room.gateway);
  const chat = await (await stage.open(room.link)).ready();
  await chat.say('do your worst');
  const event = await agent.next();
  const word = 'W'.repeat(10_000);
  for (const trick of TRICKS) await agent.send(event, trick);
  await agent.send(event, TRICKS.join('\n\n'));
  await agent.send(event, word);
  await agent.send(event, `${TURN}turned around`);
  for (const trick of TRICKS) {
    await room.api.say(trick);
    await until(`${trick} as it was written`, async () => (await chat.texts()).includes(trick));
  }
  await room.api.say('M'.repeat(7_000));
  const { message_id } = await room.api.say(`${TURN}turned around`);
  await room.api.say('in answer to a turned line', { reply_to: message_id });
  await chat.saying('in answer to a turned line').waitFor();
  await harmless(chat);
  // A person clicks on everything that looks like a link.
  for (const link of await chat.page.locator('[data-testid=text] a').all()) {
    await link.evaluate((it) =>
      it.addEventListener('click', (event) => event.defaultPrevented || event.preventDefault()),
    );
    await link.click();
  }
  await harmless(chat);
  await chat.page.reload();
  await chat.saying('in answer to a turned line').waitFor();
  await harmless(chat);
});

story('the server answers hostile words with its own policy', async (stage) => {
  const { server } = await stage.room();
  const answer = await fetch(`${server.url}/chat`);
  const policy = answer.headers.get('content-security-policy');
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /style-src 'self'(;|$)/);
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
});
