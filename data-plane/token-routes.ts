/** The token operations and what carries them out, for requests and for the calls of scripts. */
import type { Operation } from '../shared/api/operation.ts';
import * as tokens from '../shared/api/tokens.ts';
import { createToken } from './routes/create-token.ts';
import { deleteToken } from './routes/delete-token.ts';
import { detokenize } from './routes/detokenize.ts';
import { getToken } from './routes/get-token.ts';
import { listTokens } from './routes/list-tokens.ts';
import { searchTokens } from './routes/search-tokens.ts';
import { tokenize } from './routes/tokenize.ts';
import { updateToken } from './routes/update-token.ts';
import type { Route } from './serve-exchange.ts';

export interface RouteEntry {
  readonly operation: Operation;
  readonly route: Route;
  /** False where the route itself finds out that a key has been used, which saves looking first. */
  readonly looksFirst?: false;
}

export const TOKEN_ROUTES: readonly RouteEntry[] = [
  { operation: tokens.createToken, route: createToken, looksFirst: false },
  { operation: tokens.listTokens, route: listTokens },
  { operation: tokens.getToken, route: getToken },
  { operation: tokens.updateToken, route: updateToken },
  { operation: tokens.deleteToken, route: deleteToken },
  { operation: tokens.searchTokens, route: searchTokens },
  { operation: tokens.tokenize, route: tokenize },
  { operation: tokens.detokenize, route: detokenize },
];
