/** Bytes to send; a string is sent as UTF-8. */
export type Data = Uint8Array | ArrayBuffer | ArrayBufferView | string;

/** How the messages of a channel arrive; both ends of a session have the same channels. */
export type ChannelKind =
  /** All arrive, in the order of sending. */
  | 'ordered'
  /** All arrive, in any order. */
  | 'unordered'
  /** Those arrive that are newer than everything before. */
  | 'sequenced'
  /** Some may be lost. */
  | 'unreliable'
  /** All bytes arrive in order, without boundaries. */
  | 'stream';

export interface ChannelOptions {
  kind: ChannelKind;
  /** How its messages travel; as the server has it. Default: `kcp` for `ordered` and `stream`, `packets` for the others. */
  carrier?: 'kcp' | 'packets';
  /** Longest message in bytes; as the server has it. Default: 1 MiB. */
  maxMessage?: number;
  /** Most messages in packets that wait to be read; as the server has it. Default: 256. */
  receiveBuffer?: number;
  /** Most messages in a packet; as the server has it. Default: 64. */
  messagesPerPacket?: number;
}

export interface Options {
  /** A connect token of your matchmaker, encoded. One of `token`, `secret` and `insecure` is needed, whichever the server uses. */
  token?: Uint8Array;
  /** 32 bytes that the server has as well. Whoever can read your page has them. */
  secret?: Uint8Array;
  /** No encryption of sessions; WebTransport and `wss` still encrypt the way to the server. Such a session ends with its transport. */
  insecure?: boolean;
  /** The channels, by number from 0, the most urgent first. Default: `['ordered']`. */
  channels?: readonly (ChannelKind | ChannelOptions)[];
  /** The number of your game and its version; as the server has it. Default: 0. */
  protocolId?: bigint | number;
  /** What to tell the server's program in the handshake: at most 256 bytes. */
  user?: Data;
  /** `ticket` of the last session with this server; it saves a round trip. */
  ticket?: Uint8Array;
  /** SHA-256 of certificates to accept besides those that browsers trust, for development. */
  certificateHashes?: readonly (Uint8Array | ArrayBuffer)[];
  /** Which transports to use. Default: `any`, a WebSocket where WebTransport is not to be had. */
  transport?: 'any' | 'webtransport' | 'websocket';
  /** Where the server takes WebSockets. Default: at the same host and port, by `wss`. */
  websocket?: string | URL;
  /** ms until the WebSocket is tried as well. Default: 2000. */
  patience?: number;
  /** ms to connect in, 100 to 120,000. Default: 10,000. */
  deadline?: number;
  /** Gives up connecting. */
  signal?: AbortSignal;
  /** The wasm file, if it is not beside the module: as for {@link load}. */
  wasm?: WasmSource;
}

/** Where the wasm file is, or what is in it. */
export type WasmSource = string | URL | Request | Response | BufferSource | WebAssembly.Module;

/** Why a session has ended, or was never up. */
export type Reason =
  /** Closed here. */
  | 'local'
  /** Closed by the server's program. */
  | 'peer'
  /** Nobody has answered, or no transport was to be had. */
  | 'connect-timeout'
  /** The server refuses: another protocol or channels, no room, a wrong token or secret. */
  | 'denied'
  /** The server's program refuses. */
  | 'rejected'
  /** Nothing was heard for 20 s. */
  | 'timeout'
  /** The server does not know the session any more. */
  | 'server-forgot'
  | 'dead-link' | 'slow-peer' | 'replaced' | 'no-memory' | 'protocol';

export interface Closed {
  type: 'closed';
  reason: Reason;
  /** The code of `close`, for `local`, `peer` and `rejected`. */
  code: number | undefined;
  /** The text of the server's program; empty if it gave none. */
  text: string;
  /** What the server's program said when it rejected us; empty otherwise. */
  data: Uint8Array;
  /** The reason as a sentence. */
  message: string;
}

export type Event =
  | { type: 'message'; channel: number; data: Uint8Array }
  | { type: 'datagram'; data: Uint8Array }
  /** A channel that was full has room again, or everything has arrived on one that `isDelivered` was asked about. */
  | { type: 'writable' }
  /** The transport was lost, and another one carries the session. */
  | { type: 'moved'; transport: Transport | undefined }
  /** The server sends us to another one: connect there with this token, whose URL your page has to know. */
  | { type: 'redirected'; token: Uint8Array }
  | Closed;

export type Transport = 'webtransport' | 'websocket';

export interface Stats {
  state: 'idle' | 'hello' | 'connect' | 'up' | 'closing' | 'closed';
  /** What carries the session now; undefined while it is opened again. */
  transport: Transport | undefined;
  /** Round trip in ms, smoothed. */
  rtt: number;
  /** Share of packets that got lost on the way to the server, 0 to 1; undefined while it is unknown. */
  loss: number | undefined;
  bytesSent: number;
  bytesReceived: number;
  /** Datagrams given to the browser. */
  datagramsSent: number;
  datagramsReceived: number;
  /** Datagrams dropped because the path carries only shorter ones. */
  tooLong: number;
  /** Datagrams dropped because the browser had had 64 KiB to send for 0.1 s. */
  queueFull: number;
  /** How often a lost transport was replaced. */
  reconnects: number;
  /** The last error of a transport, in the browser's words. */
  transportError: string;
}

/** Connects to `https://host:port/`. Resolves when the session is up. Rejects with a {@link ClosedError} if it cannot be, with the reason of
 * `signal` if that aborts, and with an `Error` that names the option if one is wrong. */
export function connect(url: string | URL, options?: Options): Promise<Client>;

/** Loads the wasm file before it is needed, or from elsewhere than beside the module. */
export function load(source?: WasmSource): Promise<void>;

/** A session. It needs no calls to stay up; what you send leaves after the code that sends it. */
export class Client implements AsyncIterable<Event> {
  private constructor();
  /** Queues a message. Returns false, and queues nothing, if the channel is full: send it after `writable`, or later. Throws if it is too long,
   * if there is no such channel, or if the session is closed. */
  send(channel: number, data: Data): boolean;
  /** Queues a datagram, which may be lost. Returns false if too many wait; throws if it is too long or the session is closed. */
  sendDatagram(data: Data): boolean;
  /** What happens, until `closed`, which is the last. What nobody reads waits; the server sends no more once too much does. */
  events(): AsyncGenerator<Event, void, void>;
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, void>;
  /** The next event. After `closed`, it is that one again. */
  next(): Promise<Event>;
  /** The next event, if one is there already: for a loop of frames. */
  take(): Event | undefined;
  /** Does at once what would be done soon. */
  pump(): void;
  /** Whether everything sent on a reliable channel has arrived. */
  isDelivered(channel: number): boolean;
  /** Closes the session once everything has arrived, with a code below 0xff00. */
  close(code?: number, text?: string): void;
  /** The same at once: what has not arrived is lost. */
  kick(code?: number, text?: string): void;
  stats(): Stats;
  /** What the server's program said in the handshake. */
  readonly user: Uint8Array;
  /** For `ticket` of the next session with this server. */
  readonly ticket: Uint8Array;
}

/** Why there is no session. */
export class ClosedError extends Error {
  private constructor();
  readonly name: 'ClosedError';
  readonly reason: Reason;
  readonly code: number | undefined;
  readonly text: string;
  readonly data: Uint8Array;
}
