/**
 * What a request transform brings out of the vault by itself, through `req.bt`: its destination should
 * not answer it back either. Also what is brought out for the reactors and proxies that it calls, and by
 * their scripts: they all work with the services that are made here.
 */
import * as tokens from '../../shared/api/tokens.ts';
import type { TellMade } from '../../shared/tokens/detokenize.ts';
import { readMembers } from '../reactors/script-call-text.ts';
import type { ScriptCalls } from '../reactors/script-calls.ts';
import type { Services } from '../services.ts';
import type { BroughtOut } from './brought-out.ts';

/** Of a call and its answer, which are parsed to be searched: some 10 ms. */
const CALL_LENGTH_MAX = 1024 * 1024;

const READ_ONE = tokens.getToken.operationId;
const READ_MANY: readonly string[] = [
  tokens.listTokens.operationId,
  tokens.searchTokens.operationId,
];

/**
 * The same services; what they bring out is collected: the tokens that scripts read with them, and what
 * their expressions yield. Collected for whoever collects with the given ones, too.
 */
export function collecting(broughtOut: BroughtOut, services: Services): Services {
  const { reactions } = services;
  if (reactions === undefined) return services;
  const scriptCalls: ScriptCalls = (caller, routes) => {
    const serve = reactions.scriptCalls(caller, routes);
    return async (request, signal) => {
      const answer = await serve(request, signal);
      collect(broughtOut, request, answer);
      return answer;
    };
  };
  const madeInRun: TellMade = (values) => {
    services.madeInRun?.(values);
    broughtOut.add(values);
  };
  return { ...services, madeInRun, reactions: { ...reactions, scriptCalls } };
}

function collect(broughtOut: BroughtOut, request: string, answer: string): void {
  const { operation } = readMembers(request);
  const isOne = operation === READ_ONE;
  if ((!isOne && !READ_MANY.includes(String(operation))) || broughtOut.isTooMuch) return;
  if (request.length + answer.length > CALL_LENGTH_MAX) {
    broughtOut.addTooMuch();
    return;
  }
  const { status, body } = JSON.parse(answer) as { status: number; body?: unknown };
  if (status !== 200) return;
  if (isOne) broughtOut.add(dataOf(body));
  else for (const token of Object.values(dataOf(body) ?? [])) broughtOut.add(dataOf(token));
}

/** The clear or masked data of a token, or the tokens of a page: their member has one name. */
function dataOf(value: unknown): object | undefined {
  return typeof value === 'object' && value !== null ? Reflect.get(value, 'data') : undefined;
}
