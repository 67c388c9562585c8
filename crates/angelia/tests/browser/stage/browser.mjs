// One real browser for all stories, and a fresh profile in it for each window.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const INSTALLED = path.join(process.env.ANGELIA_TEST_ENV, 'browser', 'node_modules');
const { chromium } = await import(pathToFileURL(path.join(INSTALLED, 'playwright-core', 'index.mjs')));
const AXE = readFileSync(path.join(INSTALLED, 'axe-core', 'axe.min.js'), 'utf8');

// The sandbox needs privileges a container does not give; the rest keeps the
// browser from talking to anybody but the server under test.
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A microphone that beeps, and nobody who has to be asked for it.
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
];
export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 360, height: 740 };

let browser;

export async function launch() {
  const env = { ...process.env, FONTCONFIG_FILE: fileURLToPath(new URL('fonts.conf', import.meta.url)) };
  browser = await chromium.launch({ executablePath: process.env.ANGELIA_CHROMIUM, args: FLAGS, env });
}

export async function close() {
  await browser?.close();
}

/** A profile of its own: no storage, no cache, no history. */
export function profile(options = {}) {
  return browser.newContext({ viewport: DESKTOP, locale: 'en-GB', timezoneId: 'UTC', ...options });
}

/** What axe finds wrong: rules whose breach keeps people out. */
export async function barriers(page) {
  // Evaluated through the debugger, which the page's own policy does not bind.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`);
}
