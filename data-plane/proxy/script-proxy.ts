/**
 * `req.bt.proxy.*` of a running script: a request to a proxy that never was on a connection. It passes
 * the same checks as one that was, has the rights of the script's application, and ends with the run.
 */
import { ApiError } from '../../shared/errors.ts';
import { BODY_ROOM } from '../../shared/http/body-room.ts';
import { ScriptCallError } from '../../shared/sandbox/script-services.ts';
import type { CachedProxy } from '../config-cache/proxy-cache.ts';
import type { Answer } from '../exchange.ts';
import type { ScriptProxyCall } from '../reactors/script-call-text.ts';
import { refuseDepth } from '../reactors/script-depth.ts';
import type { ScriptCaller } from '../reactors/script-exchange.ts';
import type { ProxyingServices, Services } from '../services.ts';
import { callerWith, decideCurrently, type ProxyCaller } from './caller.ts';
import { isTransformed, receiveWhole } from './destination-answer.ts';
import {
  ANSWER_WITHIN_MS,
  type Exchange,
  ExchangeEnded,
  type ExchangeWatcher,
  sendOverUndici,
} from './exchange.ts';
import { firstHeader, returnedHeaders } from './headers.ts';
import { type Decision, sendInTurn } from './in-turn.ts';
import { transformResponse } from './incoming-body.ts';
import { contextOf, RequestPreparation } from './prepare.ts';
import { asApiError, proxyErrorAnswer } from './proxy-error.ts';
import type { ProxyOutcome } from './proxy-outcome.ts';
import { isOurs, outcomeOf, unexpected } from './refuse.ts';
import { scriptAnswerText } from './script-proxy-answer.ts';
import { readScriptRequest, type ScriptProxyRequest } from './script-proxy-request.ts';

interface Run {
  readonly caller: ScriptCaller;
  readonly services: Services;
  readonly signal: AbortSignal;
}

interface ProxyingRun extends Run {
  readonly services: ProxyingServices;
}

interface Ended {
  readonly outcome: ProxyOutcome;
  /** JSON text for the script. */
  readonly text: string;
  readonly failure?: unknown;
}

interface Asked {
  /** The proxy, once it is found: whose failures they are. */
  through?: CachedProxy;
}

/** JSON text of the answer, a `proxy_error` included. Rejects when the run is over. */
export async function proxyForScript(call: ScriptProxyCall, run: Run): Promise<string> {
  if (run.signal.aborted) throw runOver();
  const asked: Asked = {};
  const ended = await forward(call, asked, run).catch((error) => refused(error, run));
  const { outcome, text, failure } = ended;
  const { proxying } = run.services;
  proxying?.metrics.requests.inc({ outcome });
  const { through } = asked;
  if (through !== undefined) proxying?.log.failed(through, run.caller.traceId, outcome, failure);
  if (outcome === 'caller_gone') throw runOver();
  return text;
}

const runOver = (): ScriptCallError => new ScriptCallError('The run is over.');

async function forward(call: ScriptProxyCall, asked: Asked, run: Run): Promise<Ended> {
  const { caller, services, signal } = run;
  if (!canForward(services)) throw new ApiError('unavailable', 'No requests are forwarded here');
  const request = readScriptRequest(call, caller);
  const application = await caller.findApplication();
  if (application === undefined) {
    throw new ApiError('unauthorized', 'The application of the script does not exist any more');
  }
  const preparation = new RequestPreparation(request.incoming, request.asked, services);
  const found = await callerWith(application, request.asked, services);
  asked.through = found.proxy;
  const { caller: through, decided } = await decideCurrently(
    found,
    async (current) => {
      current.requireRight();
      if (runsScripts(current)) refuseDepth(caller.depth);
      return preparation.decide(current);
    },
    services,
    caller.traceId,
  );
  if ('custom' in decided) return customised(decided.custom);
  if (signal.aborted) throw new ExchangeEnded('caller_gone');
  const decision = { caller: through, decided, traceId: caller.traceId };
  const take = async (exchange: Exchange): Promise<Ended> => {
    const gone = (): void => exchange.abort(new ExchangeEnded('caller_gone'));
    signal.addEventListener('abort', gone, { once: true });
    if (signal.aborted) gone();
    try {
      return await taken(exchange, decision, request, { ...run, services });
    } finally {
      signal.removeEventListener('abort', gone);
    }
  };
  const sending = {
    decision,
    services,
    gone: () => signal,
    open: (watcher: ExchangeWatcher) => open(request, decision, watcher, services),
    take,
  };
  return BODY_ROOM.during(decided.madeBytes, () => sendInTurn(sending));
}

function canForward(services: Services): services is ProxyingServices {
  return services.proxying !== undefined;
}

function runsScripts({ proxy }: ProxyCaller): boolean {
  return proxy.request_transform !== null || proxy.response_transform !== null;
}

function open(
  { incoming: { head } }: ScriptProxyRequest,
  { caller: { proxy }, decided: { target, headers, body } }: Decision,
  watcher: ExchangeWatcher,
  { proxying: { pools } }: ProxyingServices,
): Exchange {
  const { origin } = proxy.destination;
  const outgoing = { origin, target, method: head.method, headers, body };
  return sendOverUndici(pools.dispatcher(proxy.tenant_id), outgoing, ANSWER_WITHIN_MS, watcher);
}

/** The destination's answer, whole, decoded, and transformed where the proxy says so. */
async function taken(
  exchange: Exchange,
  { caller: through, decided: { broughtOut } }: Decision,
  { incoming: { head } }: ScriptProxyRequest,
  { caller, services }: ProxyingRun,
): Promise<Ended> {
  const sent = { method: head.method, traceId: head.traceId, broughtOut };
  const answer = await receiveWhole(exchange, sent, through, services);
  const { status, headers, body } = answer;
  const transform = through.proxy.response_transform;
  if (transform === null || !isTransformed(answer, head.method)) {
    const kept = returnedHeaders(headers, false);
    return { outcome: 'forwarded', text: scriptAnswerText(status, kept, body) };
  }
  const contentType = firstHeader(headers, 'content-type');
  const transformed = await transformResponse(
    transform,
    { body, contentType, headers },
    contextOf(through, head.traceId, caller),
    services,
  );
  if ('custom' in transformed) return customised(transformed.custom);
  const kept = returnedHeaders(transformed.headers, false);
  return { outcome: 'forwarded', text: scriptAnswerText(status, kept, transformed.body) };
}

function customised({ status, headers = [], body = '' }: Answer): Ended {
  const text = scriptAnswerText(status, headers, Buffer.from(body));
  return { outcome: 'custom_response', text };
}

/** A fault of ours says no more than it says to a client, and is logged. */
function refused(error: unknown, { caller: { traceId }, services: { log }, signal }: Run): Ended {
  const isGone = error instanceof ExchangeEnded && error.reason === 'caller_gone';
  if (isGone || signal.aborted) return { outcome: 'caller_gone', text: '' };
  const known = asApiError(error);
  if (known === undefined || isOurs(known)) {
    log.error({ err: known ?? error, trace_id: traceId }, 'a proxy call of a script failed');
  }
  const apiError = known ?? unexpected();
  const { status, headers = [], body = '' } = proxyErrorAnswer(apiError);
  const text = scriptAnswerText(status, headers, Buffer.from(body));
  return { outcome: outcomeOf(apiError), text, failure: error };
}
