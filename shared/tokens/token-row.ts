/** A token as the database gives it to readers: column spellings, cheap types. */
import { milliseconds } from '../postgres/milliseconds.ts';
import type { EncodedToken } from './token-draft.ts';

export interface TokenRow {
  id: string;
  type: string;
  container: string;
  /** JSON texts, spliced into answers as they are. */
  metadata: string | null;
  search_indexes: string;
  fingerprint: string | null;
  fingerprint_expression: string | null;
  sealed: Buffer;
  /** Times are milliseconds since the epoch. */
  expires_at_ms: number | null;
  created_by: string;
  created_at_ms: number;
  modified_by: string | null;
  modified_at_ms: number | null;
  /** A live card verification code: already filtered by its due time. */
  cvc_sealed: Buffer | null;
  cvc_due_at_ms: number | null;
}

/** The row's columns of table alias `t`, with what stands for its sealed payload. */
export const tokenColumns = (sealed: string): string => `
  t.id, t.type, t.container, t.metadata::text AS metadata, t.search_indexes::text AS search_indexes,
  t.fingerprint, t.fingerprint_expression, ${sealed} AS sealed, ${milliseconds('t.expires_at')} AS expires_at_ms,
  t.created_by, ${milliseconds('t.created_at')} AS created_at_ms,
  t.modified_by, ${milliseconds('t.modified_at')} AS modified_at_ms`;

export const TOKEN_COLUMNS = tokenColumns('t.sealed');

/** The columns of a live cvc in table alias `c`. */
export const CVC_COLUMNS = `
  c.sealed AS cvc_sealed, ${milliseconds('c.due_at')} AS cvc_due_at_ms`;

/** `TOKEN_COLUMNS` and `CVC_COLUMNS` in their order; an `id` of null is no token. */
export type TokenValues = [
  id: string | null,
  type: string,
  container: string,
  metadata: string | null,
  search_indexes: string,
  fingerprint: string | null,
  fingerprint_expression: string | null,
  sealed: Buffer | null,
  expires_at_ms: number | null,
  created_by: string,
  created_at_ms: number,
  modified_by: string | null,
  modified_at_ms: number | null,
  cvc_sealed: Buffer | null,
  cvc_due_at_ms: number | null,
];

/** `null`: a token whose payload was left out. */
export function tokenOfValues(values: TokenValues): TokenRow | null | undefined {
  const id = values[0];
  if (id === null) return undefined;
  const sealed = values[7];
  if (sealed === null) return null;
  return {
    id,
    type: values[1],
    container: values[2],
    metadata: values[3],
    search_indexes: values[4],
    fingerprint: values[5],
    fingerprint_expression: values[6],
    sealed,
    expires_at_ms: values[8],
    created_by: values[9],
    created_at_ms: values[10],
    modified_by: values[11],
    modified_at_ms: values[12],
    cvc_sealed: values[13],
    cvc_due_at_ms: values[14],
  };
}

/** In their place in lists and duplicates, which never show a cvc (design section 12). */
export const NO_CVC_COLUMNS = 'NULL::bytea AS cvc_sealed, NULL::float8 AS cvc_due_at_ms';

/** A token is served until the moment it expires, whether or not a sweep has removed it. */
export const NOT_EXPIRED = '(t.expires_at IS NULL OR t.expires_at > clock_now())';

/** Joins the live cvc of a card token `t` as `c`. */
export const JOIN_CVC = `
  LEFT JOIN token_cvcs c ON t.type = 'card' AND c.tenant_id = t.tenant_id AND c.token_id = t.id
    AND c.due_at > clock_now()`;

/** The row that a write has left behind, without reading it back. */
export function writtenRow(
  token: EncodedToken,
  audit: Pick<TokenRow, 'created_by' | 'created_at_ms' | 'modified_by' | 'modified_at_ms'>,
): TokenRow {
  return { ...token, ...audit, cvc_sealed: null, cvc_due_at_ms: null };
}
