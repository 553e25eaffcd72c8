// Plays by the installed package in Node, over a WebSocket. ECHO is the line that `echo` of crates/web prints.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import WebSocket from 'ws';
import { Client, ClosedError, connect, load } from 'whitewater';

const echo = JSON.parse(process.env.ECHO);
const options = {
  secret: new Uint8Array(32).fill(7), protocolId: 1n, channels: ['ordered', 'unreliable'], transport: 'websocket',
  websocket: echo.websocket,
};

test('the module loads from bytes, and says what the browser lacks', async () => {
  const wasm = new URL('whitewater_js_bg.wasm', import.meta.resolve('whitewater'));
  await load(await readFile(fileURLToPath(wasm)));
  assert.equal(globalThis.WebSocket, undefined, 'this test is for a Node without WebSocket');
  await assert.rejects(connect(echo.url, options), /none of the transports/);
  globalThis.WebSocket = WebSocket;
});

test('messages and datagrams come back, and closing ends the events', async () => {
  const client = await connect(echo.url, options);
  assert.ok(client instanceof Client);
  for (let number = 0; number < 200; number++) {
    assert.equal(client.send(0, `message ${number}`), true);
    assert.equal(client.sendDatagram(Uint8Array.of(number)), true);
  }
  client.send(1, 'unreliable');
  const [texts, types] = [[], new Set()];
  let datagrams = 0;
  for await (const event of client.events()) {
    types.add(event.type);
    if (event.type === 'datagram') datagrams++;
    if (event.type === 'message' && event.channel === 0) texts.push(new TextDecoder().decode(event.data));
    if (texts.length === 200 && datagrams === 200 && client.isDelivered(0)) client.close(5, 'done');
    if (event.type === 'closed') assert.deepEqual([event.reason, event.code], ['local', 5]);
  }
  assert.deepEqual(texts, Array.from({ length: 200 }, (_, number) => `message ${number}`));
  assert.equal(datagrams, 200);
  assert.ok(types.has('closed'));
  assert.equal(client.stats().state, 'closed');
  assert.throws(() => client.send(0, 'late'), /closed/);
  assert.equal((await client.next()).type, 'closed');
});

test('a full channel takes no more until it is writable', async () => {
  const client = await connect(echo.url, options);
  const data = new Uint8Array(10_000);
  let sent = 0;
  while (client.send(0, data)) sent++;
  assert.ok(sent > 1, `${sent}`);
  for await (const event of client.events()) {
    if (event.type === 'writable') break;
  }
  assert.equal(client.send(0, data), true);
  assert.throws(() => client.send(0, new Uint8Array(2 << 20)), /bytes/);
  assert.throws(() => client.send(9, data), /no channel 9/);
  client.kick();
});

test('who may not join is told why', async () => {
  const wrong = { ...options, secret: new Uint8Array(32) };
  const error = await connect(echo.url, wrong).catch((error) => error);
  assert.ok(error instanceof ClosedError);
  assert.deepEqual([error.reason, error.code], ['denied', undefined]);
  await assert.rejects(connect(echo.url, { ...options, secret: undefined }), /token, secret and insecure/);
  await assert.rejects(connect(echo.url, { ...options, channels: ['fast'] }), /kind fast/);
  await assert.rejects(connect('http://127.0.0.1/', { ...options, websocket: undefined }), /not a URL/);
});

test('a connect token of Rust lets one session in, and nothing else does', async () => {
  const { guarded } = echo;
  const bytes = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));
  const { secret, ...open } = { ...options, websocket: guarded.websocket };
  const denied = async (options, why) => {
    const error = await connect(guarded.url, options).catch((error) => error);
    assert.ok(error instanceof ClosedError, `${error}`);
    assert.equal(error.reason, 'denied');
    assert.match(error.message, why);
  };
  await denied({ ...open, secret }, /token/);
  await denied({ ...open, insecure: true }, /suite/);
  const forged = bytes(guarded.tokens[1]);
  forged[forged.length >> 1] ^= 1;
  await denied({ ...open, token: forged }, /token|secret/);
  await assert.rejects(connect(guarded.url, { ...open, token: forged.slice(0, 9) }), /token/);
  const token = bytes(guarded.tokens[0]);
  const client = await connect(guarded.url, { ...open, token });
  client.send(0, 'with a token');
  for await (const event of client.events()) {
    if (event.type !== 'message') continue;
    assert.equal(new TextDecoder().decode(event.data), 'with a token');
    break;
  }
  await denied({ ...open, token }, /token/); // it has been used
  client.close();
});

test('nobody there ends in a timeout, and a signal ends it sooner', async () => {
  const nowhere = { ...options, websocket: 'ws://127.0.0.1:9/', deadline: 500 };
  const error = await connect(echo.url, nowhere).catch((error) => error);
  assert.equal(error.reason, 'connect-timeout');
  const signal = AbortSignal.timeout(100);
  await assert.rejects(connect(echo.url, { ...nowhere, deadline: 10_000, signal }), { name: 'TimeoutError' });
});

test('a session goes on over another socket', async () => {
  const sockets = [];
  globalThis.WebSocket = class extends WebSocket {
    constructor(url) {
      super(url);
      sockets.push(this);
    }
  };
  const client = await connect(echo.url, options);
  client.send(0, 'before');
  const seen = [];
  for await (const event of client.events()) {
    if (event.type === 'message') {
      seen.push(new TextDecoder().decode(event.data));
      if (seen.length === 2) client.close();
      else sockets[0].terminate();
    }
    if (event.type === 'moved') client.send(0, 'after');
  }
  assert.deepEqual(seen, ['before', 'after']);
  assert.equal(client.stats().reconnects, 1);
});
