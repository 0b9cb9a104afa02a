/** Opening and closing an HTTP listener without dropping a request. */
import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

/**
 * How long kept-alive connections stay open while draining: a caller that is busy sends its next request
 * within this time and is told by its answer to go; closing earlier resets what is just arriving.
 */
const IDLE_GRACE_MS = 500;
/** How often connections that became idle are closed after that. */
const CLOSE_IDLE_EVERY_MS = 50;

/** The open connections of each listener. */
const connections = new WeakMap<Server, Set<Socket>>();

/** Settles with the port once it listens; `host` undefined is every interface. Rejects if taken. */
export function listen(server: Server, port: number, host: string | undefined): Promise<number> {
  connections.set(server, trackConnections(server));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function trackConnections(server: Server): Set<Socket> {
  const sockets = new Set<Socket>();
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

/**
 * Stops accepting and settles when the last answer has left. Kept-alive connections are closed as
 * they become idle; answers meanwhile should say `Connection: close`, so that clients know.
 */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout;
    let closed = false;
    const closeIdle = (): void => {
      if (closed) return;
      if (!isSending(server)) server.closeIdleConnections();
      closeIdleIn(CLOSE_IDLE_EVERY_MS);
    };
    // Timers run before what has arrived is read: a request in between would be reset, not answered.
    const closeIdleIn = (delay_ms: number): void => {
      timer = setTimeout(() => setImmediate(closeIdle), delay_ms);
    };
    closeIdleIn(IDLE_GRACE_MS);
    // Not http's own `close`, which closes idle connections at once.
    NetServer.prototype.close.call(server, () => {
      closed = true;
      clearTimeout(timer);
      resolve();
    });
  });
}

/** To Node a connection is idle from the end of its answer, though the bytes may still wait to go. */
function isSending(server: Server): boolean {
  return [...(connections.get(server) ?? [])].some((socket) => socket.writableLength > 0);
}
