// Measures how soon the effect of an input is back in Chromium, at the same time as `latency` of crates/web measures a native client and WebTransport
// without a browser. PROGRAM is that example, CHROMIUM the browser. Arguments: seconds, inputs a second, round trip in ms, and losses in %.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const [seconds = 60, hz = 60, rtt = 60, ...rest] = process.argv.slice(2).map(Number);
const losses = rest.length ? rest : [0, 5, 10];
const types = { html: 'text/html', js: 'text/javascript', wasm: 'application/wasm' };
const files = http.createServer(async (request, response) => {
  const path = new URL(request.url, 'http://localhost').pathname;
  const file = path.startsWith('/whitewater/')
    ? new URL(path.slice('/whitewater/'.length), import.meta.resolve('whitewater'))
    : new URL('page.html', import.meta.url);
  const bytes = await readFile(fileURLToPath(file)).catch(() => undefined);
  response.writeHead(bytes ? 200 : 404, { 'content-type': types[file.pathname.split('.').pop()] ?? 'text/plain' }).end(bytes);
});
await new Promise((done) => files.listen(0, '127.0.0.1', done));
const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });

/** In the page: connects. */
async function connect({ url, hash }) {
  globalThis.client = await whitewater.connect(url, {
    secret: new Uint8Array(32).fill(7), protocolId: 1n, channels: ['ordered', 'unreliable'], transport: 'webtransport',
    certificateHashes: [Uint8Array.from(hash.match(/../g), (byte) => parseInt(byte, 16))],
  });
}

/** In the page: sends an input of 32 bytes in each tick, and returns how long each took to be back, in ms. */
async function play({ hz, seconds }) {
  const [back, ticks, begun] = [[], Math.round(hz * seconds), performance.now()];
  (async () => {
    for await (const { type, data } of client.events()) {
      if (type === 'message') back.push(performance.now() - new DataView(data.buffer, data.byteOffset).getFloat64(0));
    }
  })();
  const wait = (until) => new Promise((done) => setTimeout(done, until - performance.now()));
  for (let tick = 0; tick < ticks; tick++) {
    const input = new Uint8Array(32);
    new DataView(input.buffer).setFloat64(0, performance.now());
    client.send(0, input);
    await wait(begun + ((tick + 1) * 1000) / hz);
  }
  const end = performance.now() + 3000;
  while (back.length < ticks && performance.now() < end) await wait(performance.now() + 10);
  const stats = client.stats();
  client.kick();
  return { back, stats };
}

/** All clients at one loss. */
async function measure(loss) {
  const program = spawn(process.env.PROGRAM, [loss, rtt, hz, seconds], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value);
  const { url, hash } = await next(); // of the server behind a relay
  const page = await browser.newPage();
  await page.goto(`http://localhost:${files.address().port}/`);
  await page.waitForFunction(() => document.title === 'loaded');
  await page.evaluate(connect, { url, hash });
  program.stdin.write('\n');
  const { back, stats } = await page.evaluate(play, { hz, seconds });
  const others = [await next(), await next()];
  program.stdin.end();
  await page.close();
  back.sort((one, other) => one - other);
  const at = (share) => back[Math.floor(back.length * share)];
  const mean = back.reduce((sum, ms) => sum + ms, 0) / back.length;
  if (stats.reconnects > 0 || stats.transportError) console.error('Chromium:', stats);
  return [...others, { name: 'browser', mean, p50: at(0.5), p99: at(0.99), back: back.length }];
}

const names = { native: 'native', quic: 'WebTransport without a browser', browser: `Chromium ${browser.version()}` };
try {
  console.log(`${hz} inputs a second for ${seconds} s, round trip ${rtt} ms; ms until the effect is back: mean / median / 99th percentile\n`);
  console.log(`| lost each way | ${Object.values(names).join(' | ')} | Chromium's mean beside native |`);
  console.log('|---:|---:|---:|---:|---:|');
  for (const loss of losses) {
    const clients = await measure(loss);
    const cells = clients.map(({ mean, p50, p99 }) => [mean, p50, p99].map((ms) => ms.toFixed(1)).join(' / '));
    console.log(`| ${loss} % | ${cells.join(' | ')} | ${(clients[2].mean - clients[0].mean).toFixed(1)} ms |`);
    for (const { name, back } of clients) if (back !== Math.round(hz * seconds)) console.error(`${names[name]}: ${back} of ${hz * seconds} are back`);
  }
} finally {
  await browser.close();
  files.close();
}
