/** The filters that lists of configuration share: ids and a name. */
import { readIds } from '../shared/http/list-parameters.ts';
import type { QueryParams } from '../shared/http/query.ts';
import { readNamePattern } from './name-pattern.ts';
import { isUuid } from './serve-operation.ts';

export interface ListFilter {
  /** Only these, in this order. */
  ids: string[] | undefined;
  /** For the operator `~` on the name. */
  pattern: string | undefined;
}

/** Reads `id` and `name`; throws 400 for what no filter can be. */
export function readListFilter(query: QueryParams): ListFilter {
  // What is no UUID is nobody's id: it matches nothing.
  const ids = readIds(query)
    ?.map((id) => id.toLowerCase())
    .filter(isUuid);
  return { ids, pattern: readNamePattern(query) };
}
