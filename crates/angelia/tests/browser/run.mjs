// The web chat in a real browser, against the real binary. scripts/test-browser
// says which one and where the browser is.

import { readdirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { close, launch } from './stage/browser.mjs';
import { clearShared, perform, stories } from './stage/story.mjs';

// Stories mostly wait for each other's ends, and two cores are enough for a few at once.
const AT_ONCE = 4;
const ONE_STORY_WITHIN = 120_000;

const folder = new URL('stories/', import.meta.url);
for (const file of readdirSync(folder).sort()) await import(new URL(file, folder));

describe('the web chat', { concurrency: AT_ONCE }, () => {
  before(launch);
  after(async () => {
    await close();
    await clearShared();
  });
  for (const story of stories) it(story.name, { timeout: ONE_STORY_WITHIN }, () => perform(story));
});
