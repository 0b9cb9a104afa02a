/** The data plane's operations and what carries them out. Every other path goes to the control plane. */
import findMyWay from 'find-my-way';
import type { Operation } from '../shared/api/operation.ts';
import * as reactors from '../shared/api/reactors.ts';
import * as tokens from '../shared/api/tokens.ts';
import { createToken } from './routes/create-token.ts';
import { deleteToken } from './routes/delete-token.ts';
import { detokenize } from './routes/detokenize.ts';
import { getToken } from './routes/get-token.ts';
import { listTokens } from './routes/list-tokens.ts';
import { react } from './routes/react.ts';
import { searchTokens } from './routes/search-tokens.ts';
import { tokenize } from './routes/tokenize.ts';
import { updateToken } from './routes/update-token.ts';
import type { Route } from './serve-exchange.ts';

export interface RouteEntry {
  operation: Operation;
  route: Route;
}

export interface RouteMatch extends RouteEntry {
  params: Record<string, string | undefined>;
}

const ROUTES: RouteEntry[] = [
  { operation: tokens.createToken, route: createToken },
  { operation: tokens.listTokens, route: listTokens },
  { operation: tokens.getToken, route: getToken },
  { operation: tokens.updateToken, route: updateToken },
  { operation: tokens.deleteToken, route: deleteToken },
  { operation: tokens.searchTokens, route: searchTokens },
  { operation: tokens.tokenize, route: tokenize },
  { operation: tokens.detokenize, route: detokenize },
  { operation: reactors.react, route: react },
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
      const { operation, route } = found.store as RouteEntry;
      return { operation, route, params: found.params };
    },
    methodsOf: (path) => [...methods].filter((method) => router.find(method, path) !== null),
  };
}
