// The page reads its event stream itself, so it is held to every way a network
// can cut one. No browser is needed for that.

import assert from 'node:assert/strict';
import { story } from '../stage/story.mjs';

const { Parser } = await import(new URL('../../../../platforms/src/webchat/page/stream.js', import.meta.url));

const STREAM = [
  ': keep-alive\n\n',
  'event: message\nid: 1\ndata: {"text":"grüß dich 👋"}\n\n',
  'event: typing\r\ndata: {}\r\n\r\n',
  'data: one\ndata: two\n\n',
  'id: 7\n\n',
].join('');
const EVENTS = [
  { event: 'message', data: '{"text":"grüß dich 👋"}' },
  { event: 'typing', data: '{}' },
  { event: 'message', data: 'one\ntwo' },
];

/** What the page makes of these bytes in these pieces. */
function read(...pieces) {
  const parser = new Parser();
  const decoder = new TextDecoder();
  return pieces.flatMap((piece) => [...parser.read(decoder.decode(piece, { stream: true }))]);
}

story('an event stream may be cut anywhere', async () => {
  const bytes = new TextEncoder().encode(STREAM);
  assert.deepEqual(read(bytes), EVENTS);
  for (let cut = 1; cut < bytes.length; cut += 1) {
    assert.deepEqual(read(bytes.slice(0, cut), bytes.slice(cut)), EVENTS, `cut after ${cut} bytes`);
  }
  assert.deepEqual(read(...[...bytes].map((byte) => Uint8Array.of(byte))), EVENTS, 'byte by byte');
});
