/**
 * `/proxy` and every path below it, by any method that is served (OPTIONS is answered here, for browsers): find the proxy and the caller, put the values in,
 * forward the request, hand the destination's answer back (spec: Proxies; facts 10).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import { ANSWER_ROOM, BODY_ROOM } from '../../shared/http/body-room.ts';
import type { AcceptedRequest } from '../../shared/http/strict-request.ts';
import type { FailureLog } from '../../shared/observability/failure-log.ts';
import { type ResponseContext, writeAnswer } from '../answer.ts';
import type { CachedProxy } from '../config-cache/proxy-cache.ts';
import { endTogether } from '../end-together.ts';
import type { Answer } from '../exchange.ts';
import { decideCurrently, findCaller, type ProxyCaller } from '../proxy/caller.ts';
import { isTransformed, isWhole, receive, type WholeAnswer } from '../proxy/destination-answer.ts';
import {
  type DestinationAnswer,
  type Exchange,
  ExchangeEnded,
  type ExchangeWatcher,
} from '../proxy/exchange.ts';
import { firstHeader } from '../proxy/headers.ts';
import { type Decision, sendInTurn } from '../proxy/in-turn.ts';
import { transformResponse } from '../proxy/incoming-body.ts';
import { readIncomingBytes } from '../proxy/incoming-bytes.ts';
import { contextOf, type IncomingRequest, RequestPreparation } from '../proxy/prepare.ts';
import type { ProxyOutcome } from '../proxy/proxy-outcome.ts';
import { type ProxyRequest, readProxyRequest } from '../proxy/read-request.ts';
import { refuse } from '../proxy/refuse.ts';
import { RequestBody } from '../proxy/request-body.ts';
import { deliver, writeHead } from '../proxy/response.ts';
import { send } from '../proxy/send.ts';
import type { ProxyingServices, Services } from '../services.ts';

/** A request on its connection, past the strict check. */
export interface ProxyCall {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly head: AcceptedRequest;
  readonly context: ResponseContext;
  /** The proxy, once it is found: whose failures they are. */
  through?: CachedProxy;
}

/** Answers the request, whatever happens. */
export async function proxy(
  call: ProxyCall,
  services: Services,
  logFailure: FailureLog,
): Promise<void> {
  let outcome: ProxyOutcome;
  let failure: unknown;
  try {
    if (!canForward(services)) throw new ApiError('unavailable', 'No requests are forwarded here');
    outcome = await forward(call, services);
  } catch (error) {
    failure = error;
    outcome = await refuse(call, error, logFailure);
  }
  const { through, head } = call;
  services.proxying?.metrics.requests.inc({ outcome });
  if (through !== undefined) services.proxying?.log.failed(through, head.traceId, outcome, failure);
}

function canForward(services: Services): services is ProxyingServices {
  return services.proxying !== undefined;
}

async function forward(call: ProxyCall, services: ProxyingServices): Promise<ProxyOutcome> {
  const { req, head } = call;
  const request = readProxyRequest(req.url ?? '', req.rawHeaders);
  const finding = findCaller(request, head.apiKey, services);
  const found = finding instanceof Promise ? await finding : finding;
  call.through = found.proxy;
  const preparation = new RequestPreparation(incomingFrom(call), request, services);
  const { traceId } = head;
  const { caller, decided } = await decideCurrently(
    found,
    (current) => preparation.decide(current),
    services,
    traceId,
  );
  if ('custom' in decided) return answerCustom(call, decided.custom);
  if (call.res.destroyed) return 'caller_gone';
  // A few bytes with expressions become megabytes, and a destination may keep thousands of them waiting.
  BODY_ROOM.hold(decided.madeBytes, call.res);
  const decision = { caller, decided, traceId };
  const received = await sendInTurn({
    decision,
    services,
    gone: () => signalOf(call.res),
    open: (watcher) => open(call, request, decision, watcher, services),
    take: (exchange) => answerOf(exchange, call, decision, services),
  });
  return passAnswer(call, received, services);
}

/** An answer that has begun, and by what it came. */
interface Received {
  readonly caller: ProxyCaller;
  readonly exchange: Exchange;
  readonly answer: DestinationAnswer | WholeAnswer;
}

function passAnswer(
  call: ProxyCall,
  { caller, exchange, answer }: Received,
  services: ProxyingServices,
): ProxyOutcome | Promise<ProxyOutcome> {
  if (call.res.destroyed) {
    exchange.abort(new ExchangeEnded('caller_gone'));
    return 'caller_gone';
  }
  if (!isWhole(answer)) return answerStream(call, answer);
  ANSWER_ROOM.hold(answer.body.length, call.res);
  const transform = caller.proxy.response_transform;
  const isPlain = transform === null || !isTransformed(answer, call.head.method);
  if (isPlain) return answerWhole(call, answer);
  return answerTransformed(call, answer, caller, transform, services);
}

/** Aborted when the connection of the caller is closed. */
function signalOf(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => controller.abort());
  if (res.destroyed) controller.abort();
  return controller.signal;
}

/** Ends the exchange when its caller goes; from here on that is for whoever delivers the body. */
async function answerOf(
  exchange: Exchange,
  { res, head: { method, traceId } }: ProxyCall,
  { caller, decided: { broughtOut } }: Decision,
  services: ProxyingServices,
): Promise<Received> {
  const gone = (): void => exchange.abort(new ExchangeEnded('caller_gone'));
  res.on('close', gone);
  if (res.destroyed) gone();
  const hasTransform = caller.proxy.response_transform !== null;
  const isNeeded = (answer: DestinationAnswer) => hasTransform && isTransformed(answer, method);
  try {
    const sent = { method, traceId, broughtOut };
    const answer = await receive(exchange, sent, caller, services, isNeeded);
    return { caller, exchange, answer };
  } finally {
    res.off('close', gone);
  }
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
  { reserved }: ProxyRequest,
  { caller: { proxy }, decided: { target, headers, body } }: Decision,
  watcher: ExchangeWatcher,
  { proxying: { pools } }: ProxyingServices,
): Exchange {
  const { origin } = proxy.destination;
  const outgoing = { origin, target, method: call.head.method, headers, body };
  return send(pools, proxy.tenant_id, outgoing, reserved, call, watcher);
}

function answerStream(
  { res, context }: ProxyCall,
  answer: DestinationAnswer,
): ProxyOutcome | Promise<ProxyOutcome> {
  try {
    writeHead(res, answer, context);
  } catch (error) {
    answer.body.abort();
    throw error;
  }
  const delivering = deliver(answer.body, res);
  if (typeof delivering === 'string') return DELIVERIES[delivering];
  return delivering.then((delivery) => DELIVERIES[delivery]);
}

async function answerTransformed(
  call: ProxyCall,
  { status, headers, body }: WholeAnswer,
  caller: ProxyCaller,
  transform: NonNullable<ProxyCaller['proxy']['response_transform']>,
  services: ProxyingServices,
): Promise<ProxyOutcome> {
  const transformed = await transformResponse(
    transform,
    { body, contentType: firstHeader(headers, 'content-type'), headers },
    contextOf(caller, call.context.traceId),
    services,
  );
  if (call.res.destroyed) return 'caller_gone';
  if ('custom' in transformed) return answerCustom(call, transformed.custom);
  return answerWhole(call, { status, ...transformed });
}

function answerWhole(
  { res, context }: Pick<ProxyCall, 'res' | 'context'>,
  { status, headers, body }: WholeAnswer,
): ProxyOutcome {
  writeHead(res, { status, headers }, context, body.length);
  endTogether(res, body);
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
