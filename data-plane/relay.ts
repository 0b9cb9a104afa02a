/**
 * Hands every path that is not hot to the control plane, so that callers see one base address. What
 * it adds (trace id, caller's address) is believed there because of the relay secret.
 */
import { Agent, type IncomingMessage, type ServerResponse } from 'node:http';
import httpProxy from 'http-proxy';
import { ApiError } from '../shared/errors.ts';
import type { AcceptedRequest } from '../shared/http/strict-request.ts';
import { endUnfinishedBy } from './end-unfinished.ts';

/** Connections kept to the control plane: management traffic is a trickle. */
const SOCKETS_MAX = 64;
/** Longer than anything the control plane does, and than a body may take to come. */
const TIMEOUT_MS = 35_000;

export interface Relay {
  /** Answers through the control plane; `onError` gets the 503 when it cannot be reached. */
  forward(
    req: IncomingMessage,
    res: ServerResponse,
    head: AcceptedRequest,
    onError: (error: ApiError) => void,
  ): void;
  close(): void;
}

/** `target` is the control plane's base address. */
export function createRelay(target: string, secret: string): Relay {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX });
  const proxy = httpProxy.createProxyServer({
    agent,
    target,
    proxyTimeout: TIMEOUT_MS,
    xfwd: false,
  });
  // Whether a connection goes on is between us and the caller: a drain ends it.
  proxy.on('proxyRes', (answer, req, res) => {
    endUnfinishedBy(answer, req);
    answer.headers.connection = res.shouldKeepAlive ? 'keep-alive' : 'close';
    delete answer.headers['keep-alive'];
  });

  return {
    forward(req, res, head, onError) {
      const headers = {
        'bt-trace-id': head.traceId,
        'sallyport-relay': secret,
        'x-forwarded-for': req.socket.remoteAddress ?? '',
      };
      const { method = '' } = req;
      // The control plane's own 100 does not get through: http-proxy waits for the final answer.
      if (head.expectsContinue) res.writeContinue();
      delete req.headers.expect;
      // To a chunked DELETE http-proxy adds a length of 0: its body would be the next request on a
      // connection that all callers share. So it is told another method than it is to send.
      req.method = 'POST';
      proxy.web(req, res, { headers, method }, (cause: Error) => {
        onError(
          new ApiError('unavailable', 'The control plane is not available; try again', {
            headers: { 'retry-after': '1' },
            cause,
          }),
        );
      });
      req.method = method;
    },
    close() {
      proxy.close();
      agent.destroy();
    },
  };
}
