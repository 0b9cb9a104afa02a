/** Requests of ours that were answered before they were whole. */
import type { ClientRequest, IncomingMessage } from 'node:http';

/**
 * To be called when the answer has ended. Neither node:http nor http-proxy ends such a request: its connection
 * would stay with it, and so would its place in the agent, of which a few dozen callers can take all.
 */
export function endUnfinished(outgoing: ClientRequest | undefined): void {
  if (outgoing?.writableFinished === false) outgoing.destroy();
}

/** Does so at the end of an answer, and reads what is left of the caller's body to nowhere. */
export function endUnfinishedBy(answer: IncomingMessage, caller: IncomingMessage): void {
  // node:http has it there; its types do not say so.
  const { req: outgoing } = answer as IncomingMessage & { readonly req: ClientRequest };
  answer.on('end', () => {
    endUnfinished(outgoing);
    caller.unpipe();
    caller.resume();
  });
}
