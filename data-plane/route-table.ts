/** The data plane's operations and what carries them out. Every other path goes to the control plane. */
import findMyWay from 'find-my-way';
import * as reactors from '../shared/api/reactors.ts';
import * as transactions from '../shared/api/transactions.ts';
import { getReactorResult } from './routes/get-reactor-result.ts';
import { react } from './routes/react.ts';
import { reactAsync } from './routes/react-async.ts';
import {
  commitTransaction,
  createTransaction,
  rollbackTransaction,
} from './routes/transactions.ts';
import { type RouteEntry, TOKEN_ROUTES } from './token-routes.ts';

export interface RouteMatch extends RouteEntry {
  params: Record<string, string | undefined>;
}

const ROUTES: readonly RouteEntry[] = [
  ...TOKEN_ROUTES,
  { operation: transactions.createTransaction, route: createTransaction },
  { operation: transactions.commitTransaction, route: commitTransaction },
  { operation: transactions.rollbackTransaction, route: rollbackTransaction },
  { operation: reactors.react, route: react },
  { operation: reactors.reactAsync, route: reactAsync },
  { operation: reactors.getReactorResult, route: getReactorResult },
];

/** A token id of 400 characters, each at most 12 when percent-encoded. */
const PARAM_LENGTH_MAX = 4_800;

export interface RouteTable {
  /** HEAD is served like GET (RFC 9110 section 9.3.2). */
  find(method: string, path: string): RouteMatch | undefined;
  /** The methods of a path; empty when it is not a path of this plane. */
  methodsOf(path: string): string[];
}

export function createRouteTable(): RouteTable {
  const router = findMyWay({ maxParamLength: PARAM_LENGTH_MAX });
  for (const entry of ROUTES) {
    const { method, path } = entry.operation;
    router.on(method, path.replace(/\{(\w+)\}/g, ':$1'), () => {}, entry);
  }
  const methods = new Set(ROUTES.map((entry) => entry.operation.method));

  return {
    find(method, path) {
      const wanted = method === 'HEAD' ? 'GET' : method;
      const found = router.find(wanted as findMyWay.HTTPMethod, path);
      if (found === null) return undefined;
      return { ...(found.store as RouteEntry), params: found.params };
    },
    methodsOf: (path) => [...methods].filter((method) => router.find(method, path) !== null),
  };
}
