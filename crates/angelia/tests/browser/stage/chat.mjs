// One tab with the chat in it: what people see there and what they do.

import assert from 'node:assert/strict';
import { PATIENCE, until } from './patience.mjs';

/** What the browser itself says when a network is gone; no fault of the page. */
const LOST = ['INTERNET_DISCONNECTED', 'CONNECTION_REFUSED', 'CONNECTION_RESET', 'EMPTY_RESPONSE', 'FAILED'];
const BROKEN = ['INCOMPLETE_CHUNKED_ENCODING', 'NETWORK_CHANGED', 'NETWORK_IO_SUSPENDED', 'ABORTED'];
export const NO_NETWORK = new RegExp(`net::ERR_(${[...LOST, ...BROKEN].join('|')})`);

export class Chat {
  /** A new tab of a profile; what goes wrong in it is kept in `faults`. */
  static async open(profile, link) {
    const chat = new Chat();
    chat.profile = profile;
    chat.faults = [];
    chat.page = await profile.newPage();
    chat.page.setDefaultTimeout(PATIENCE);
    chat.page.on('pageerror', (error) => chat.faults.push(`thrown: ${error.message}`));
    chat.page.on('console', (message) => {
      if (message.type() === 'error')
        chat.faults.push(`console: ${message.text()} (${message.location().url})`);
    });
    await chat.page.addInitScript(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => {
        window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
      });
    });
    await chat.page.goto(link);
    return chat;
  }

  find(id) {
    return this.page.getByTestId(id);
  }

  composer() {
    return this.find('composer');
  }

  /** Waits until the room is there and the page follows it. */
  async ready() {
    await this.composer().waitFor();
    await until('the composer to take words', () => this.composer().isEnabled());
    return this;
  }

  async say(text) {
    await this.composer().fill(text);
    await this.find('send').click();
  }

  async enter(room) {
    await this.page.locator(`[data-testid=room][data-room="${room}"]`).click();
  }

  /** The line of a message. */
  line(id) {
    return this.page.locator(`[data-testid=line][data-message-id="${id}"]`);
  }

  /** The line that says this. */
  saying(text) {
    return this.find('line').filter({ has: this.page.getByTestId('text').filter({ hasText: text }) });
  }

  text(id) {
    return this.line(id).getByTestId('text');
  }

  /** Everything the conversation shows, in its order. */
  lines() {
    return this.page.evaluate(() =>
      [...document.querySelectorAll('[data-testid=line]')].map((line) => ({
        id: line.dataset.messageId,
        author: line.dataset.author,
        state: line.dataset.state,
        text: line.querySelector('[data-testid=text]')?.innerText.trim() ?? '',
        files: [...line.querySelectorAll('[data-testid=file]')].map((file) => file.innerText.trim()),
      })),
    );
  }

  async texts() {
    return (await this.lines()).map((line) => line.text);
  }

  /** Waits until these are the lines, no more and no fewer. */
  async shows(...texts) {
    await until(`the lines ${JSON.stringify(texts)}`, async () => {
      assert.deepEqual(await this.texts(), texts);
      return true;
    });
  }

  async shown(text) {
    await until(`“${text}” on the page`, async () =>
      (await this.page.locator('body').innerText()).includes(text),
    );
  }

  /** From now on every text that the newest line of somebody else has had is kept. */
  async watchGrowth(own) {
    await this.page.evaluate((own) => {
      window.grown = [];
      const look = () => {
        const lines = [...document.querySelectorAll('[data-testid=line]')];
        const newest = lines.findLast((line) => line.dataset.author !== own);
        const text = newest?.querySelector('[data-testid=text]')?.innerText;
        if (text === undefined || text === window.grown.at(-1)) return;
        window.grown.push(text);
        window.lastGrown = performance.now();
      };
      new MutationObserver(look).observe(document.body, {
        subtree: true,
        childList: true,
        characterData: true,
      });
    }, own);
  }

  grown() {
    return this.page.evaluate(() => window.grown);
  }

  /** Waits until no text has changed for that long. */
  async quiet(ms) {
    await until('the words to stand still', () =>
      this.page.evaluate((ms) => window.grown.length > 0 && performance.now() - window.lastGrown > ms, ms),
    );
  }

  /** What the page did that it should not have done. */
  async faultsBut(expected) {
    const violations = this.page.isClosed() ? [] : await this.page.evaluate(() => window.violations);
    return [...this.faults, ...violations].filter(
      (fault) => !expected.some((pattern) => pattern.test(fault)),
    );
  }
}
