/** Opening and closing an HTTP listener without dropping a request. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How often connections that became idle are closed while draining. */
const CLOSE_IDLE_EVERY_MS = 50;

/** Settles with the port once it listens; `host` undefined is every interface. Rejects if taken. */
export function listen(server: Server, port: number, host: string | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/**
 * Stops accepting and settles when the last answer has left. Kept-alive connections are closed as
 * they become idle; answers meanwhile should say `Connection: close`, so that clients know.
 */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
    server.close(() => {
      clearInterval(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
