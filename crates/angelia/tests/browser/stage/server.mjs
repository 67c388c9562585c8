// The binary under test: as a demo, as a server with its own data, and as a command.

import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { until } from './patience.mjs';

export const BINARY = process.env.ANGELIA_BINARY;

/** Stories type faster than people. */
const WIDE_PACE = { ANGELIA_WEBCHAT__POSTS_BURST: '100000', ANGELIA_WEBCHAT__POSTS_PER_MINUTE: '100000' };
const COMMAND_WITHIN = 20_000;
const run = promisify(execFile);

/** A port nobody listens on just now. */
export function freePort() {
  return new Promise((done, failed) => {
    const probe = net.createServer().on('error', failed);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });
}

/** A process of the binary, with what it said. */
class Running {
  constructor(args, environment) {
    this.said = '';
    const env = { ...clean(process.env), ...WIDE_PACE, ...environment };
    this.process = spawn(BINARY, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (this.said += text));
    }
    this.ended = new Promise((done) => this.process.on('exit', (code, signal) => done(signal ?? code)));
    this.ended.then((how) => (this.how = how));
  }

  /** Waits for something while the process lives. */
  async until(what, check) {
    try {
      return await until(what, () => {
        if (this.how !== undefined) throw new Error(`it ended with ${this.how}`);
        return check();
      });
    } catch (error) {
      throw new Error(`${error.message}; it said:\n${this.said}`, { cause: error });
    }
  }

  async end(signal = 'SIGINT') {
    if (this.how === undefined) this.process.kill(signal);
    return this.ended;
  }
}

// What the person at this machine configured is not for the tests.
export function clean(environment) {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('ANGELIA_')));
}

/** `angelia demo`, as somebody who has just built it runs it. */
export class Demo {
  static async start(args = []) {
    const demo = new Demo();
    demo.folder = await mkdtemp(path.join(tmpdir(), 'angelia-browser-demo-'));
    const environment = { TMPDIR: demo.folder, ANGELIA_SERVER__LISTEN: `127.0.0.1:${await freePort()}` };
    demo.running = new Running(['demo', ...args], environment);
    demo.link = await demo.running.until('the demo to print its link', () => {
      return demo.running.said.match(/http:\/\/[^\s#]+\/chat#[0-9a-f,]+/)?.[0];
    });
    demo.url = new URL(demo.link).origin;
    demo.keys = new URL(demo.link).hash.slice(1).split(',');
    return demo;
  }

  /** Runs a command against the demo's server. */
  async command(...args) {
    return command(args, { ANGELIA_SERVER__DATA_DIR: await this.dataDir(), TMPDIR: this.folder });
  }

  async dataDir() {
    for (const entry of await readdir(this.folder, { recursive: true })) {
      if (path.basename(entry) === 'admin-url') return path.join(this.folder, path.dirname(entry));
    }
    throw new Error(`no server announced itself in ${this.folder}`);
  }

  async stop() {
    await this.running.end();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** `angelia serve` with data of its own, which outlives its process. */
export class Server {
  static async start(configuration = '') {
    const server = new Server();
    server.folder = await mkdtemp(path.join(tmpdir(), 'angelia-browser-'));
    server.config = path.join(server.folder, 'angelia.toml');
    const port = await freePort();
    server.url = `http://127.0.0.1:${port}`;
    await mkdir(path.join(server.folder, 'tmp'));
    await writeFile(
      server.config,
      `[server]\nlisten = "127.0.0.1:${port}"\npublic_url = "${server.url}"\nadmin_listen = "127.0.0.1:0"\n` +
        `data_dir = ${JSON.stringify(path.join(server.folder, 'data'))}\n${configuration}`,
    );
    await server.restart();
    return server;
  }

  async restart() {
    this.running = new Running(['--config', this.config, 'serve'], { TMPDIR: path.join(this.folder, 'tmp') });
    await this.running.until('the server to be ready', async () => (await fetch(`${this.url}/readyz`)).ok);
  }

  /** As the power cord does it. */
  async kill() {
    await this.running.end('SIGKILL');
  }

  async command(...args) {
    return command(['--config', this.config, ...args], {});
  }

  /** An agent's credentials. */
  async gateway(id) {
    const made = await this.command('gateway', 'create', id);
    return { id: made.gateway_id, secret: made.secret, url: this.url };
  }

  /** Invites `user` to the agent: in `room`, or to a private chat. */
  async invite(user, gateway, room) {
    const where = room ? ['--room', room] : [];
    const answered = gateway ? ['--gateway', gateway] : [];
    const made = await this.command('webchat', 'invite', ...where, '--user', user, ...answered);
    return { ...made, link: made.link ?? `${this.url}/chat#${made.key}` };
  }

  async stop() {
    await this.running.end('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function command(args, environment) {
  const options = { env: { ...clean(process.env), ...environment }, timeout: COMMAND_WITHIN };
  try {
    return JSON.parse((await run(BINARY, [...args, '--json'], options)).stdout);
  } catch (error) {
    throw new Error(`angelia ${args.join(' ')}: ${error.stderr || error.message}`, { cause: error });
  }
}
