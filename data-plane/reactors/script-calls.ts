/**
 * What `req.bt` of a running script is answered: each call runs the very route that HTTP runs, with the
 * rights that the script's application has at that moment. Whatever is not listed here cannot be called,
 * whatever the text that comes out of the sandbox says.
 */
import { react as reactOperation } from '../../shared/api/reactors.ts';
import type { Logger } from '../../shared/observability/logger.ts';
import { ScriptCallError, type ScriptService } from '../../shared/sandbox/script-services.ts';
import { proxyForScript } from '../proxy/script-proxy.ts';
import { type Route, serveExchange } from '../serve-exchange.ts';
import type { Services } from '../services.ts';
import { type RouteEntry, TOKEN_ROUTES } from '../token-routes.ts';
import { answerText, errorText } from './script-call-answer.ts';
import { notACall, readMembers, readProxyCall, readScriptCall } from './script-call-text.ts';
import { refuseDepth } from './script-depth.ts';
import { type ScriptCaller, ScriptExchange } from './script-exchange.ts';

/** `req.bt.proxy.*`: any method and path below `/proxy`, so it is no operation with a template. */
const PROXY = 'proxy';

/** Carried out by the very functions that HTTP requests run through. */
export interface ScriptRoutes {
  readonly services: Services;
  /** The route of `POST /reactors/{id}/react`. */
  readonly react: Route;
}

/** The `bt` service of one run. */
export type ScriptCalls = (caller: ScriptCaller, routes: ScriptRoutes) => ScriptService;

/**
 * How many calls a run may make and for how long is the sandbox's to enforce. A call that is under way
 * when the run ends is carried out, like a request whose client has gone.
 */
export function createScriptCalls(log: Logger): ScriptCalls {
  return (caller, { services, react }) =>
    async (request, signal) => {
      const members = readMembers(request);
      if (members.operation === PROXY) {
        return proxyForScript(readProxyCall(members), { caller, services, signal });
      }
      const call = readScriptCall(members);
      const entry = entryOf(call.operation, react);
      if (signal.aborted) throw new ScriptCallError('The run is over.');
      const exchange = new ScriptExchange(entry.operation, call, caller);
      try {
        if (entry.route === react) refuseDepth(caller.depth);
        return answerText(await serveExchange(exchange, entry, services));
      } catch (error) {
        return errorText(error, caller.traceId, log);
      } finally {
        exchange.over();
      }
    };
}

function entryOf(operationId: string, react: Route): RouteEntry {
  if (operationId === reactOperation.operationId)
    return { operation: reactOperation, route: react };
  const entry = TOKEN_ROUTES.find(({ operation }) => operation.operationId === operationId);
  if (entry === undefined) throw notACall();
  return entry;
}
