// Plays by the installed package in Chromium. ECHO is the line that `echo` of crates/web prints, CHROMIUM the browser.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const echo = JSON.parse(process.env.ECHO);
const port = Number(new URL(echo.url).port);
const types = { html: 'text/html', js: 'text/javascript', wasm: 'application/wasm' };
let browser, files, relay;

before(async () => {
  files = http.createServer(async (request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname;
    const file = path.startsWith('/whitewater/')
      ? new URL(path.slice('/whitewater/'.length), import.meta.resolve('whitewater'))
      : new URL('page.html', import.meta.url);
    const bytes = await readFile(fileURLToPath(file)).catch(() => undefined);
    response.writeHead(bytes ? 200 : 404, { 'content-type': types[file.pathname.split('.').pop()] ?? 'text/plain' }).end(bytes);
  });
  await new Promise((done) => files.listen(0, '127.0.0.1', done));
  relay = await Relay.open();
  const args = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-component-update', '--disable-sync'];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
});

after(async () => {
  await browser?.close();
  files?.close();
  relay?.close();
});

/** The server behind another port, whose UDP can be cut. */
class Relay {
  isCut = false;
  static async open() {
    const relay = new Relay();
    relay.tcp = net.createServer((socket) => {
      const other = net.connect(port, '127.0.0.1');
      socket.pipe(other).pipe(socket);
      for (const end of [socket, other]) end.on('error', () => (socket.destroy(), other.destroy()));
    });
    await new Promise((done) => relay.tcp.listen(0, '127.0.0.1', done));
    relay.port = relay.tcp.address().port;
    relay.udp = dgram.createSocket('udp4');
    relay.ways = new Map();
    relay.udp.on('message', (bytes, from) => {
      if (relay.isCut) return;
      if (!relay.ways.has(from.port)) {
        const way = dgram.createSocket('udp4');
        way.on('message', (bytes) => relay.isCut || relay.udp.send(bytes, from.port, from.address));
        relay.ways.set(from.port, way);
      }
      relay.ways.get(from.port).send(bytes, port, '127.0.0.1');
    });
    await new Promise((done) => relay.udp.bind(relay.port, '127.0.0.1', done));
    return relay;
  }
  close() {
    this.tcp.close();
    this.udp.close();
    this.ways.forEach((way) => way.close());
  }
}

/** A page with the package, and `start`, which connects and notes what comes back in `seen`. */
async function open() {
  const page = await browser.newPage();
  page.on('pageerror', (error) => assert.fail(`in the page: ${error}`));
  await page.goto(`http://localhost:${files.address().port}/`);
  await page.waitForFunction(() => document.title === 'loaded');
  const direct = {
    url: `https://127.0.0.1:${port}/`, websocket: `ws://127.0.0.1:${port}/`, hash: echo.hash,
  };
  await page.evaluate((direct) => {
    globalThis.start = async (options = {}) => {
      const hash = Uint8Array.from(direct.hash.match(/../g), (byte) => parseInt(byte, 16));
      const { url = direct.url, ...others } = options;
      const began = performance.now();
      globalThis.client = await whitewater.connect(url, {
        secret: new Uint8Array(32).fill(7), protocolId: 1n, channels: ['ordered', 'unreliable'],
        certificateHashes: [hash], websocket: direct.websocket, ...others,
      });
      globalThis.seen = { texts: [], datagrams: 0, moved: [], closed: undefined };
      (async () => {
        for await (const event of client) {
          if (event.type === 'message') seen.texts.push(new TextDecoder().decode(event.data));
          if (event.type === 'datagram') seen.datagrams++;
          if (event.type === 'moved') seen.moved.push(event.transport);
          if (event.type === 'closed') seen.closed = event;
        }
        seen.isOver = true;
      })();
      return { ...client.stats(), ms: performance.now() - began };
    };
  }, direct);
  return page;
}

/** Sends so many messages and datagrams, and waits until all messages are back, in order. */
async function echoes(page, count) {
  const from = await page.evaluate((count) => {
    const from = seen.texts.length;
    for (let number = 0; number < count; number++) {
      if (!client.send(0, `${from + number}`)) throw new Error('full');
      client.sendDatagram('datagram');
    }
    return from;
  }, count);
  await page.waitForFunction((all) => seen.texts.length === all, from + count, { timeout: 15_000 });
  const texts = await page.evaluate(() => seen.texts);
  assert.deepEqual(texts, Array.from({ length: from + count }, (_, number) => `${number}`));
  return page.evaluate(() => ({ ...client.stats(), echoed: seen.datagrams, moved: seen.moved }));
}

test('a session over WebTransport carries messages and datagrams, and closes', async () => {
  const page = await open();
  const up = await page.evaluate(() => start());
  assert.equal(up.transport, 'webtransport');
  const stats = await echoes(page, 200);
  assert.ok(stats.echoed > 150, `${stats.echoed} datagrams are back`);
  assert.deepEqual([stats.tooLong, stats.queueFull, stats.reconnects], [0, 0, 0]);
  await page.evaluate(() => client.close(3, 'over'));
  await page.waitForFunction(() => seen.isOver, null, { timeout: 5000 });
  const closed = await page.evaluate(() => [seen.closed.reason, seen.closed.code, client.stats().transport]);
  assert.deepEqual(closed, ['local', 3, undefined]);
  await page.evaluate(() => transports[0].closed); // nothing stays open
  console.log(`up in ${up.ms.toFixed(0)} ms; rtt ${stats.rtt.toFixed(1)} ms`);
  await page.close();
});

test('a connect token of Rust lets a browser in by each transport', async () => {
  const { url, websocket, hash, tokens } = echo.guarded;
  for (const [transport, token] of [['webtransport', tokens[2]], ['websocket', tokens[3]]]) {
    const page = await open();
    const seen = await page.evaluate(async ({ url, websocket, transport, hash, token }) => {
      const bytes = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));
      const options = { secret: undefined, certificateHashes: [bytes(hash)], websocket, transport };
      const error = await start({ url, ...options, secret: new Uint8Array(32).fill(7) }).catch((error) => error);
      const up = await start({ url, ...options, token: bytes(token) });
      return [error.reason, error.message, up.transport];
    }, { url, websocket, transport, hash, token });
    assert.deepEqual([seen[0], seen[2]], ['denied', transport]);
    assert.match(seen[1], /token/);
    await echoes(page, 20);
    await page.close();
  }
});

test('a session goes on when its transport is ended, again and again', async () => {
  const page = await open();
  await page.evaluate(() => start());
  await echoes(page, 10);
  for (let ended = 1; ended <= 3; ended++) {
    await page.evaluate(() => transports.at(-1).close());
    const stats = await echoes(page, 50);
    assert.equal(stats.reconnects, ended);
    assert.equal(stats.transport, 'webtransport');
    assert.equal(stats.moved.length, ended);
  }
  await page.close();
});

test('a WebSocket is taken after patience where UDP is blocked', async () => {
  relay.isCut = true;
  const page = await open();
  const options = { url: `https://127.0.0.1:${relay.port}/`, websocket: `ws://127.0.0.1:${relay.port}/` };
  const up = await page.evaluate((options) => start(options), options);
  relay.isCut = false;
  assert.equal(up.transport, 'websocket');
  assert.ok(up.ms >= 1900 && up.ms < 4000, `${up.ms} ms`);
  await echoes(page, 200);
  console.log(`up in ${up.ms.toFixed(0)} ms`);
  await page.close();
});

test('a session moves to a WebSocket when UDP is cut in the middle of it', async () => {
  const page = await open();
  const options = { url: `https://127.0.0.1:${relay.port}/`, websocket: `ws://127.0.0.1:${relay.port}/` };
  assert.equal((await page.evaluate((options) => start(options), options)).transport, 'webtransport');
  await echoes(page, 10);
  relay.isCut = true;
  const began = performance.now();
  const stats = await echoes(page, 50);
  relay.isCut = false;
  assert.deepEqual([stats.transport, stats.reconnects, stats.moved], ['websocket', 1, ['websocket']]);
  console.log(`goes on after ${(performance.now() - began).toFixed(0)} ms`);
  await page.close();
});

test('a WebSocket is taken at once where there is no WebTransport', async () => {
  const page = await open();
  const up = await page.evaluate(() => {
    delete globalThis.WebTransport;
    return start();
  });
  assert.equal(up.transport, 'websocket');
  assert.ok(up.ms < 1000, `${up.ms} ms`);
  const stats = await echoes(page, 200);
  assert.ok(stats.echoed > 150, `${stats.echoed} datagrams are back`);
  await page.close();
});

test('what is sent at once waits for room, and is not lost', async () => {
  for (const transport of ['webtransport', 'websocket']) {
    const dropped = [];
    // A browser that stands still for 0.1 s, on a busy machine, has datagrams dropped, and they are sent again.
    while (!dropped.includes(0)) {
      const page = await open();
      await page.evaluate((transport) => start({ transport }), transport);
      const sent = await page.evaluate(() => {
        let sent = 0;
        while (sent < 200 && client.send(0, 'x'.repeat(1000))) sent++;
        return sent;
      });
      await page.waitForFunction((sent) => seen.texts.length === sent, sent, { timeout: 10_000 });
      const stats = await page.evaluate(() => client.stats());
      dropped.push(stats.queueFull);
      assert.ok(sent > 100 && dropped.length <= 3, `${sent} sent, ${dropped} dropped`);
      await page.close();
    }
  }
});

test('a worker plays as well', async () => {
  const page = await open();
  const back = await page.evaluate(async (hash) => {
    const code = `
      import { connect } from '${location.origin}/whitewater/index.js';
      const client = await connect('${'https://127.0.0.1:'}' + PORT + '/', { secret: new Uint8Array(32).fill(7), protocolId: 1n,
        channels: ['ordered', 'unreliable'], transport: 'webtransport', certificateHashes: [Uint8Array.from(HASH)] });
      client.send(0, 'from a worker');
      for await (const event of client) if (event.type === 'message') { postMessage(new TextDecoder().decode(event.data)); client.close(); }
    `.replace('PORT', hash.port).replace('HASH', JSON.stringify(hash.bytes));
    const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })), { type: 'module' });
    return new Promise((done, fail) => {
      worker.onmessage = (event) => done(event.data);
      worker.onerror = (event) => fail(new Error(event.message));
    });
  }, { port, bytes: echo.hash.match(/../g).map((byte) => parseInt(byte, 16)) });
  assert.equal(back, 'from a worker');
  await page.close();
});

test('a tab in the background stays in its session for longer than the timeout', async () => {
  const page = await open();
  await page.evaluate(() => start());
  await echoes(page, 10);
  // A browser without a window hides no tab: timers once a minute, as in one that has been hidden for long.
  await page.evaluate(() => {
    const real = setTimeout;
    globalThis.setTimeout = (then, ms) => real(then, Math.max(ms, 60_000));
  });
  await new Promise((done) => setTimeout(done, 25_000));
  await echoes(page, 10);
  assert.equal((await page.evaluate(() => client.stats())).reconnects, 0);
  await page.close();
});

test('a tab that was frozen for longer than the timeout is told that the session is over', async () => {
  const page = await open();
  await page.evaluate(() => start());
  await echoes(page, 10);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Debugger.enable');
  await devtools.send('Debugger.pause');
  page.evaluate(() => 0).catch(() => {}); // it stops at the next code that runs
  await new Promise((done) => setTimeout(done, 25_000));
  await devtools.send('Debugger.disable');
  await page.waitForFunction(() => seen.isOver, null, { timeout: 10_000 });
  const reason = await page.evaluate(() => seen.closed.reason);
  assert.ok(['timeout', 'server-forgot', 'peer'].includes(reason), reason);
  console.log(`closed: ${reason}`);
  await page.close();
});
