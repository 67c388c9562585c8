// The newcomer's first minute after the build, with a watch: the README's
// command, its link in a browser, a question, and an answer that streams in.
// scripts/first-run calls it in the folder of a checkout.

import { spawn } from 'node:child_process';
import { close, launch, profile } from './stage/browser.mjs';
import { Chat } from './stage/chat.mjs';
import { until } from './stage/patience.mjs';
import { clean } from './stage/server.mjs';

const WITHIN_SECONDS = 5;
/** Words that have not changed for this long are the whole answer. */
const STILL = 1_500;
/** Texts an answer must have had on the page before it counts as streamed. */
const STEPS = 3;

const began = performance.now();
const seconds = () => (performance.now() - began) / 1000;
const leg = (name, at) => console.log(`first-run: ${at.toFixed(2).padStart(6)} s  ${name}`);

// In a group of its own, because cargo runs the demo as its child.
const demo = spawn('cargo', ['run', '--release', '--', 'demo'], {
  env: clean(process.env),
  stdio: ['ignore', 'pipe', 'pipe'],
  detached: true,
});
let said = '';
for (const stream of [demo.stdout, demo.stderr])
  stream.setEncoding('utf8').on('data', (text) => (said += text));
const ended = new Promise((done) => demo.on('exit', done));

try {
  // Somebody's browser is open already; here it starts beside the demo, and its start counts.
  const opened = launch().then(() => leg('a browser is open', seconds()));
  const link = await until('a link', () => {
    if (demo.exitCode !== null) throw new Error('the demo ended');
    return said.match(/http:\/\/[^\s#]+\/chat#[0-9a-f,]+/)?.[0];
  });
  leg('the demo printed its link', seconds());
  await opened;
  const chat = await (await Chat.open(await profile(), link)).ready();
  leg('the chat is open', seconds());
  await chat.watchGrowth('you');
  await chat.say('Hello, is anybody there?');
  leg('a question is written', seconds());
  await until('the first words of an answer', async () => (await chat.grown()).length > 0);
  leg('the answer begins', seconds());
  await chat.quiet(STILL);
  const { steps, finished } = await chat.page.evaluate(() => ({
    steps: window.grown.length,
    finished: performance.timeOrigin + window.lastGrown,
  }));
  const total = (finished - performance.timeOrigin - began) / 1000;
  leg(`the answer stands, after ${steps} steps`, total);
  if (steps < STEPS) throw new Error(`the answer came in ${steps} steps: that is no stream`);
  if (total >= WITHIN_SECONDS)
    throw new Error(`${total.toFixed(2)} s is too long: ${WITHIN_SECONDS} s are promised`);
} catch (error) {
  console.error(`first-run: ${error.message}\n${said}`);
  process.exitCode = 1;
} finally {
  await close();
  if (demo.exitCode === null) process.kill(-demo.pid, 'SIGINT');
  await ended;
}
