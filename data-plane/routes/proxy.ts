/**
 * `/proxy` and every path below it, by any method: find the proxy and the caller, put the values in,
 * forward the request, hand the destination's answer back (spec: Proxies; facts 10).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import { type FailureLog, type ResponseContext, writeAnswer } from '../answer.ts';
import type { Answer } from '../exchange.ts';
import { decideCurrently, findCaller, type ProxyCaller } from '../proxy/caller.ts';
import { targetAt } from '../proxy/destination.ts';
import { isTransformed, watchedAnswer } from '../proxy/destination-answer.ts';
import { type DestinationAnswer, type Exchange, ExchangeEnded } from '../proxy/exchange.ts';
import { headerOf } from '../proxy/headers.ts';
import { transformResponse } from '../proxy/incoming-body.ts';
import { readIncomingBytes } from '../proxy/incoming-bytes.ts';
import {
  contextOf,
  type IncomingRequest,
  type Prepared,
  RequestPreparation,
} from '../proxy/prepare.ts';
import { type ProxyRequest, readProxyRequest } from '../proxy/read-request.ts';
import { refuse } from '../proxy/refuse.ts';
import { RequestBody } from '../proxy/request-body.ts';
import { deliver, writeHead } from '../proxy/response.ts';
import { send } from '../proxy/send.ts';
import { readWholeAnswer } from '../proxy/whole-answer.ts';
import type { ProxyingServices, Services } from '../services.ts';
import type { AcceptedRequest } from '../strict-request.ts';

/** A request on its connection, past the strict check. */
export interface ProxyCall {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly head: AcceptedRequest;
  readonly context: ResponseContext;
}

/** How a proxied request ended; a label of its metric. */
export type ProxyOutcome =
  | 'forwarded'
  | 'custom_response'
  | 'refused'
  | 'transform_failed'
  | 'destination_failed'
  | 'destination_timeout'
  | 'destination_reset'
  | 'caller_gone'
  | 'failed';

/** Answers the request, whatever happens. */
export async function proxy(
  call: ProxyCall,
  services: Services,
  logFailure: FailureLog,
): Promise<void> {
  let outcome: ProxyOutcome;
  try {
    if (!canForward(services)) throw new ApiError('unavailable', 'No requests are forwarded here');
    outcome = await forward(call, services);
  } catch (error) {
    outcome = await refuse(call, error, logFailure);
  }
  services.proxying?.metrics.requests.inc({ outcome });
}

function canForward(services: Services): services is ProxyingServices {
  return services.proxying !== undefined;
}

async function forward(call: ProxyCall, services: ProxyingServices): Promise<ProxyOutcome> {
  const { req, head, context } = call;
  const request = readProxyRequest(req.url ?? '', req.rawHeaders);
  const found = await findCaller(request, head.apiKey, services);
  const preparation = new RequestPreparation(incomingFrom(call), request, services);
  const { caller, decided } = await decideCurrently(
    found,
    (current) => preparation.decide(current),
    services,
  );
  if ('custom' in decided) return answerCustom(call, decided.custom);
  if (call.res.destroyed) return 'caller_gone';
  const exchange = open(call, request, caller, decided, services);
  const gone = (): void => exchange.abort(new ExchangeEnded('caller_gone'));
  call.res.once('close', gone);
  const answer = await watchedAnswer(exchange, decided.secrets, caller, head.traceId, services);
  // From here on the body is watched.
  call.res.off('close', gone);
  if (call.res.destroyed) {
    gone();
    return 'caller_gone';
  }
  const transform = caller.proxy.response_transform;
  if (transform !== null && isTransformed(answer, head.method)) {
    return answerTransformed(call, answer, caller, transform, services);
  }
  writeHead(call.res, answer, context);
  return DELIVERIES[await deliver(answer.body, call.res)];
}

function incomingFrom({ req, res, head }: ProxyCall): IncomingRequest {
  return {
    head,
    rawHeaders: req.rawHeaders,
    readBytes: () => readIncomingBytes(req, res, head),
    passBody() {
      if (head.expectsContinue) res.writeContinue();
      return new RequestBody(req, head.contentLength);
    },
  };
}

const DELIVERIES = {
  complete: 'forwarded',
  reset: 'destination_reset',
  gone: 'caller_gone',
} as const satisfies Record<string, ProxyOutcome>;

function open(
  call: ProxyCall,
  { suffix, reserved }: ProxyRequest,
  { proxy: { destination, tenant_id } }: ProxyCaller,
  { headers, body }: Exclude<Prepared, { custom: Answer }>,
  { proxying: { pools } }: ProxyingServices,
): Exchange {
  const target = targetAt(destination, suffix);
  const { origin } = destination;
  const outgoing = { origin, target, method: call.head.method, headers, body };
  return send(pools, tenant_id, outgoing, reserved, call);
}

async function answerTransformed(
  { res, context }: ProxyCall,
  { status, headers, body }: DestinationAnswer,
  caller: ProxyCaller,
  transform: NonNullable<ProxyCaller['proxy']['response_transform']>,
  services: ProxyingServices,
): Promise<ProxyOutcome> {
  const bytes = await readWholeAnswer(body, headerOf(headers, 'content-encoding'));
  const contentType = headerOf(headers, 'content-type');
  const transformed = await transformResponse(
    transform,
    { body: bytes, contentType, headers },
    contextOf(caller, context.traceId),
    services,
  );
  if ('custom' in transformed) return answerCustom({ res, context }, transformed.custom);
  writeHead(res, { status, headers: transformed.headers }, context, transformed.body.length);
  res.end(transformed.body);
  return 'forwarded';
}

/** What a transform chose to be the whole response; nothing of it is the destination's. */
function answerCustom(
  { res, context }: Pick<ProxyCall, 'res' | 'context'>,
  custom: Answer,
): ProxyOutcome {
  writeAnswer(res, custom, context);
  return 'custom_response';
}
