// Somebody with an agent of their own, at the page of a demo: reads the lines
// to paste, waits for the agent and speaks to it.
//
// Whoever runs this plays the shell: it writes the demo's link to standard
// input and gets back, one JSON object a line, `lines` to run, `connected`, and
// the `answer` that the page shows.

import { createInterface } from 'node:readline';
import { close, launch, profile } from './stage/browser.mjs';
import { Chat } from './stage/chat.mjs';
import { until } from './stage/patience.mjs';

const ROOM = 'hermes';
const QUESTION = 'hello-from-the-page';
// An agent in Python starts slowly, and a first turn is slower, on a busy machine.
const AGENT_WITHIN = 120_000;

const tell = (news) => process.stdout.write(`${JSON.stringify(news)}\n`);
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { value: link } = await input.next();

await launch();
const chat = await Chat.open(await profile(), link);
await chat.ready();
await chat.enter(ROOM);
await chat.find('guide-lines').waitFor();
const state = () => chat.find('guide-state').innerText();
tell({ state: await state(), lines: await chat.find('guide-lines').innerText() });

await until('the agent on the page', async () => (await state()) === 'connected', AGENT_WITHIN);
tell({ connected: true, agent: await chat.find('agent-state').innerText() });

await chat.say(QUESTION);
const others = async () => (await chat.lines()).filter((line) => line.author === 'agent');
const answered = async () => (await others()).some((line) => line.text.includes(QUESTION));
await until('an answer on the page', answered, AGENT_WITHIN);
tell({ answer: (await others()).map((line) => line.text), faults: await chat.faultsBut([]) });
await close();
process.exit();
