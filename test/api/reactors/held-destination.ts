/** Where scripts of tests fetch from: something can be made to happen before an answer. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HeldDestination {
  readonly url: string;
  readonly paths: string[];
  readonly requests: number;
  /** Awaited before an answer. */
  hold: (() => Promise<unknown>) | undefined;
  /** Holds the next request alone: until `release`, after it has come. */
  holdNext(): { readonly held: Promise<void>; release(): void };
  stop(): Promise<void>;
}

export async function startHeldDestination(): Promise<HeldDestination> {
  const paths: string[] = [];
  const server: Server = createServer(async (req, res) => {
    paths.push(req.url ?? '');
    await destination.hold?.();
    res.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const destination: HeldDestination = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    get requests() {
      return paths.length;
    },
    hold: undefined,
    holdNext() {
      const held = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      destination.hold = () => {
        destination.hold = undefined;
        held.resolve();
        return released.promise;
      };
      return { held: held.promise, release: released.resolve };
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return destination;
}
