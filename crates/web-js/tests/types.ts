// Compiled, not run: what programs write against the types of the package.
import { type Closed, type Event, ClosedError, connect, load } from 'whitewater';

export async function play(token: Uint8Array): Promise<Closed> {
  await load(new URL('https://cdn.example.org/whitewater_js_bg.wasm'));
  const client = await connect('https://game.example.org:4433/', {
    token, protocolId: 7n, channels: ['ordered', { kind: 'unreliable', maxMessage: 1000 }], user: 'name', signal: AbortSignal.timeout(3000),
  });
  const isTaken: boolean = client.send(0, 'text') && client.sendDatagram(new Uint8Array([1]));
  if (!isTaken) client.kick(1, 'full');
  const rtt: number = client.stats().rtt;
  for await (const event of client) {
    const data: Uint8Array | undefined = read(event);
    if (event.type === 'closed') return event;
    if (data && rtt > 0) client.pump();
  }
  throw new Error('closed is always the last');
}

function read(event: Event): Uint8Array | undefined {
  return event.type === 'message' || event.type === 'datagram' ? event.data : undefined;
}

export const why = (error: unknown): string => (error instanceof ClosedError ? error.reason : 'a wrong option');

// @ts-expect-error There is no such kind.
void connect('https://host/', { channels: ['fast'] });
