/**
 * A TCP port in front of a test's Redis that can keep answers back, as a network or a server does that is
 * slow and not gone, and that counts what is asked through it.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface SlowRelay {
  /** As `REDIS_URL`, through here. */
  readonly url: string;
  /** Every answer takes so much longer from now on. */
  delayAnswers(ms: number): void;
  /** How many commands were sent so far. */
  asked(): number;
  /** How many pieces of answers were passed on so far. */
  answered(): number;
  close(): Promise<void>;
}

/** A command of RESP begins as an array: `*2`. */
const COMMAND = /^\*\d+\r$/gm;

export async function startSlowRelay(url: string): Promise<SlowRelay> {
  const { port: serverPort } = new URL(url);
  const sockets = new Set<Socket>();
  let delay_ms = 0;
  let asked = 0;
  let answered = 0;

  const server = createServer((client) => {
    const redis = connect(Number(serverPort), '127.0.0.1');
    const kept: { readonly chunk: Buffer; readonly due: number }[] = [];
    const passOn = (): void => {
      for (
        let next = kept[0];
        next !== undefined && next.due <= performance.now();
        next = kept[0]
      ) {
        kept.shift();
        answered += 1;
        client.write(next.chunk);
      }
      const [waiting] = kept;
      if (waiting !== undefined) setTimeout(passOn, waiting.due - performance.now()).unref();
    };
    client.on('data', (chunk) => {
      asked += chunk.toString('latin1').match(COMMAND)?.length ?? 0;
      redis.write(chunk);
    });
    redis.on('data', (chunk) => {
      // In order, also when answers are faster again.
      const due = Math.max(performance.now() + delay_ms, kept.at(-1)?.due ?? 0);
      kept.push({ chunk, due });
      if (kept.length === 1) passOn();
    });
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delayAnswers: (ms) => {
      delay_ms = ms;
    },
    asked: () => asked,
    answered: () => answered,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
