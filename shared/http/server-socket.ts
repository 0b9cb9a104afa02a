/** What node:http keeps on a server's socket, as far as its own events do not tell it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The answer being made, and the request being parsed. Neither is public, and nothing public tells whose
 * bytes were broken or are late; tests hold both.
 */
export interface ServerSocket extends Socket {
  _httpMessage?: ServerResponse | null;
  parser?: { incoming: IncomingMessage | null } | null;
}
