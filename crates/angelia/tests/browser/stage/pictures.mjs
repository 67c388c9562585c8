// Pictures of what a tab shows.

import assert from 'node:assert/strict';
import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

/** A README with heavier pictures opens slowly. */
const LARGEST = 200_000;

/** Takes a picture, where scripts/test-browser wants pictures. */
export async function shoot(chat, name) {
  const folder = process.env.ANGELIA_PICTURES;
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, name);
  await chat.page.screenshot({ path: file, caret: 'hide', animations: 'disabled' });
  const { size } = statSync(file);
  assert.ok(size < LARGEST, `${name} has ${size} bytes: too many for a README`);
}
