// The pictures the README shows, made of the demo as it is.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DESKTOP, PHONE } from '../stage/browser.mjs';
import { until } from '../stage/patience.mjs';
import { shoot } from '../stage/pictures.mjs';
import { story } from '../stage/story.mjs';

const ROOT = fileURLToPath(new URL('../../../../../', import.meta.url));
const STILL = 1_500;
const PICTURES = ['demo.png', 'demo-dark.png', 'phone.png', 'held.png', 'held-dark.png', 'rich.png', 'rich-phone.png', 'files.png', 'files-dark.png'];

story('the README has its pictures', async () => {
  for (const name of PICTURES) {
    assert.ok(
      existsSync(path.join(ROOT, 'docs/images', name)) ||
        process.env.ANGELIA_PICTURES === path.join(ROOT, 'docs/images'),
      `docs/images/${name} is missing: make it with ANGELIA_PICTURES=docs/images scripts/test-browser`,
    );
  }
});

story('the demo has its picture taken', async (stage) => {
  const demo = await stage.demo();
  const options = { viewport: DESKTOP, colorScheme: 'light', reducedMotion: 'reduce' };
  const chat = await (await stage.open(demo.link, options)).ready();
  await chat.watchGrowth('you');
  await chat.say('Hello! Is anybody there?');
  await until('the answer to grow', async () => (await chat.grown()).length >= 4);
  await chat.quiet(STILL);
  await chat.lines().then(([first]) => chat.line(first.id).click());
  await until('its story', async () => (await chat.find('story-leg').count()) >= 5);
  // What is still on its way would look different each time.
  await chat.find('stop').waitFor({ state: 'hidden' });
  // The demo names its own folders there; in a README they are somebody else's.
  await chat
    .find('story')
    .locator('code')
    .last()
    .evaluate((code) => (code.textContent = code.textContent.replace(/^.*(?=angelia explain)/, '')));
  await chat.composer().focus();
  await chat.page.mouse.move(0, 0);
  await shoot(chat, 'demo.png');
  await chat.page.emulateMedia({ colorScheme: 'dark' });
  await shoot(chat, 'demo-dark.png');

  const phone = {
    viewport: PHONE,
    isMobile: true,
    hasTouch: true,
    deviceScaleFactor: 2,
    reducedMotion: 'reduce',
  };
  const hand = await (await stage.open(demo.link, phone)).ready();
  await until('the same lines', async () => (await hand.lines()).length === 2);
  await hand.find('stop').waitFor({ state: 'hidden' });
  await hand.find('lines').evaluate((lines) => (lines.parentElement.scrollTop = 0));
  await shoot(hand, 'phone.png');
});
