// The package `whitewater`: index.d.ts describes what it exports, README.md how to use it.
import init, { Session } from './whitewater_js.js';

let loading;

/** Loads the wasm file. */
export function load(source) {
  loading ??= start(source).catch((error) => {
    loading = undefined; // it may be tried again
    throw error;
  });
  return loading;
}

async function start(source) {
  let from = source ?? new URL('whitewater_js_bg.wasm', import.meta.url);
  if (from instanceof URL && from.protocol === 'file:') {
    // Node fetches no files. The name is not written as an import, or bundlers for browsers would look for it.
    const fs = 'node:fs/promises';
    from = await (await import(/* @vite-ignore */ /* webpackIgnore: true */ fs)).readFile(from);
  }
  await init({ module_or_path: from });
}

/** Why there is no session. */
export class ClosedError extends Error {
  constructor({ reason, code, text, data, message }) {
    super(message);
    this.name = 'ClosedError';
    this.reason = reason;
    this.code = code;
    this.text = text;
    this.data = data;
  }
}

/** Connects; resolves when the session is up. */
export async function connect(url, options = {}) {
  const { signal } = options;
  signal?.throwIfAborted();
  await load(options.wasm);
  signal?.throwIfAborted();
  const client = new Client(PRIVATE, new Session(complete(url, options)));
  const abort = () => client.kick();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    const first = await client.next();
    signal?.throwIfAborted();
    if (first.type !== 'connected') throw new ClosedError(first);
    return client;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

const PRIVATE = Symbol('private');

/** A session that is or was up. */
export class Client {
  #session;
  #changed;
  #isSoon = false;
  #isOver = false;

  constructor(key, session) {
    if (key !== PRIVATE) throw new TypeError('a client is made by connect()');
    this.#session = session;
  }

  send(channel, data) {
    const isTaken = this.#session.send(channel, bytes(data));
    this.#soon();
    return isTaken;
  }

  sendDatagram(data) {
    const isTaken = this.#session.sendDatagram(bytes(data));
    this.#soon();
    return isTaken;
  }

  async *events() {
    while (!this.#isOver) yield await this.next();
  }

  [Symbol.asyncIterator]() {
    return this.events();
  }

  /** The next event. After `closed`, it is that one again. */
  async next() {
    for (;;) {
      const event = this.take();
      if (event) return event;
      if (this.#isOver) return this.#isOver;
      // One promise for all who wait.
      this.#changed ??= this.#session.changed().finally(() => (this.#changed = undefined));
      await this.#changed;
    }
  }

  /** The next event, if one is there already. */
  take() {
    const event = this.#session.take();
    if (event?.type === 'closed') this.#isOver = event;
    if (event) this.#soon(); // what was read makes room, which the server is told
    return event;
  }

  pump() {
    this.#session.pump();
  }

  isDelivered(channel) {
    return this.#session.isDelivered(channel);
  }

  close(code = 0, text = '') {
    this.#session.close(code, text);
  }

  kick(code = 0, text = '') {
    this.#session.kick(code, text);
  }

  stats() {
    return this.#session.stats();
  }

  get user() {
    return this.#session.user();
  }

  get ticket() {
    return this.#session.ticket();
  }

  /** Sends after the running code, so that what it sends together leaves together. */
  #soon() {
    if (this.#isSoon || this.#isOver) return;
    this.#isSoon = true;
    queueMicrotask(() => {
      this.#isSoon = false;
      this.#session.pump();
    });
  }
}

function complete(url, options) {
  const {
    websocket, certificateHashes = [], patience = 2000, transport = 'any', protocolId = 0n, token, secret, insecure = false,
    user = new Uint8Array(), ticket = new Uint8Array(), deadline = 10_000, channels = ['ordered'],
  } = options;
  return {
    url: String(url), websocket: websocket && String(websocket), certificateHashes: certificateHashes.map(bytes), patience, transport,
    protocolId: BigInt(protocolId), token: token && bytes(token), secret: secret && bytes(secret), insecure, user: bytes(user),
    ticket: bytes(ticket), deadline,
    channels: channels.map((channel) => (typeof channel === 'string' ? { kind: channel } : channel)),
  };
}

const encoder = new TextEncoder();

/** Texts are sent as UTF-8. */
function bytes(data) {
  if (data instanceof Uint8Array) return data;
  if (typeof data === 'string') return encoder.encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new TypeError('data is bytes or a string');
}
