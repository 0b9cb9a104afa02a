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

/** What it takes to judge who may use a token, and to open it. */
export type SealedRow = Pick<
  TokenRow,
  'id' | 'type' | 'container' | 'sealed' | 'expires_at_ms' | 'cvc_sealed' | 'cvc_due_at_ms'
>;

/** A sealed row's columns of table alias `t` but its id, with what stands for its payload. */
export const sealedColumns = (sealed: string): string => `
  t.type, t.container, ${sealed} AS sealed, ${milliseconds('t.expires_at')} AS expires_at_ms`;

/** What else there is to show of a token. */
export const DETAIL_COLUMNS = `
  t.metadata::text AS metadata, t.search_indexes::text AS search_indexes,
  t.fingerprint, t.fingerprint_expression,
  t.created_by, ${milliseconds('t.created_at')} AS created_at_ms,
  t.modified_by, ${milliseconds('t.modified_at')} AS modified_at_ms`;

export const TOKEN_COLUMNS = `t.id, ${sealedColumns('t.sealed')}, ${DETAIL_COLUMNS}`;

/** The columns of a live cvc in table alias `c`. */
export const CVC_COLUMNS = `
  c.sealed AS cvc_sealed, ${milliseconds('c.due_at')} AS cvc_due_at_ms`;

/** The values of `sealedColumns` and `CVC_COLUMNS` in their order; a `type` of null is no token. */
export type SealedValues = [
  type: string | null,
  container: string,
  sealed: Buffer | null,
  expires_at_ms: number | null,
  cvc_sealed: Buffer | null,
  cvc_due_at_ms: number | null,
];
/** The same with those of `DETAIL_COLUMNS`. */
export type TokenValues = [
  ...SealedValues,
  metadata: string | null,
  search_indexes: string,
  fingerprint: string | null,
  fingerprint_expression: string | null,
  created_by: string,
  created_at_ms: number,
  modified_by: string | null,
  modified_at_ms: number | null,
];

/** Of the first values of a row; who reads by id knows it. `null`: a token whose payload was left out. */
export function sealedRowOf(
  id: string,
  values: readonly [...SealedValues, ...unknown[]],
): SealedRow | null | undefined {
  const [type, container, sealed, expires_at_ms, cvc_sealed, cvc_due_at_ms] = values;
  if (type === null) return undefined;
  if (sealed === null) return null;
  return { id, type, container, sealed, expires_at_ms, cvc_sealed, cvc_due_at_ms };
}

/** The same for all there is to show of a token. */
export function tokenRowOf(
  id: string,
  values: readonly [...TokenValues, ...unknown[]],
): TokenRow | null | undefined {
  const [type, container, sealed] = values;
  if (type === null) return undefined;
  if (sealed === null) return null;
  return {
    id,
    type,
    container,
    metadata: values[6],
    search_indexes: values[7],
    fingerprint: values[8],
    fingerprint_expression: values[9],
    sealed,
    expires_at_ms: values[3],
    created_by: values[10],
    created_at_ms: values[11],
    modified_by: values[12],
    modified_at_ms: values[13],
    cvc_sealed: values[4],
    cvc_due_at_ms: values[5],
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
