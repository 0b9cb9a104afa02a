/** Which engine carries a request to its destination. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  ANSWER_WITHIN_MS,
  type Exchange,
  type ExchangeWatcher,
  type OutgoingRequest,
  sendOverUndici,
} from './exchange.ts';
import type { DestinationPools } from './pools.ts';
import type { ReservedHeaders } from './read-request.ts';
import { sendReserved } from './reserved-headers.ts';

/** `caller`: whose connection must be there as long as the exchange is. */
export function send(
  pools: DestinationPools,
  tenantId: string,
  request: OutgoingRequest,
  reserved: ReservedHeaders | undefined,
  caller: { readonly req: IncomingMessage; readonly res: ServerResponse },
  watcher: ExchangeWatcher,
): Exchange {
  if (reserved === undefined) {
    return sendOverUndici(pools.dispatcher(tenantId), request, ANSWER_WITHIN_MS, watcher);
  }
  return sendReserved(pools.agents(tenantId), request, reserved, { ...caller, watcher });
}
