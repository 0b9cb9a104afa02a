/**
 * Searches tokens: a query's tree becomes one statement over columns and blind indexes. Values are
 * bound parameters, always; the text of the statement is made of constants alone. Every condition is
 * true or false, never NULL, so that NOT means not.
 */
import { ROOT_CONTAINER } from '../access/containers.ts';
import type { TenantKeys } from '../crypto/data-keys.ts';
import type { Queryable } from '../postgres/pool.ts';
import { dataTerm, metadataTerm } from './fingerprint.ts';
import {
  answerWithin,
  IS_VISIBLE,
  NEWEST_FIRST,
  PAGE_BYTES_MAX,
  type PageRow,
  type PageWindow,
  pageOfRows,
  type TokenPage,
} from './list-tokens.ts';
import { foldMetadataValue } from './metadata.ts';
import type { SearchNode } from './search-query.ts';
import type { SearchTerm } from './search-term.ts';
import { NOT_EXPIRED } from './token-row.ts';

export interface TokenSearch {
  /** Container prefixes the caller may search; `['/']` is everything. Never empty. */
  containers: readonly string[];
  query: SearchNode;
}

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** The texts of a statement under construction, and the values it is bound to. */
interface Statement {
  readonly keys: Pick<TenantKeys, 'search'>;
  /** Adds a value; returns its placeholder. */
  bind(value: unknown): string;
}

/** Where the tokens of a node can be found by an index, and how few these are: the least first. */
interface Source {
  readonly rank: number;
  sql(): string;
}

/** One page. `limit` 0 answers totals alone. */
export async function searchTokens(
  db: Queryable,
  tenantId: string,
  keys: Pick<TenantKeys, 'search'>,
  { containers, query }: TokenSearch,
  window: PageWindow,
): Promise<TokenPage> {
  const prefixes = containers.includes(ROOT_CONTAINER) ? [] : containers;
  const values: unknown[] = [tenantId, prefixes, window.limit, window.offset];
  const statement: Statement = { keys, bind: (value) => `$${values.push(value)}` };
  // Not named: there are as many texts as shapes of queries, and each plan fits its values.
  const text = searchText(query, statement) + answerWithin(window.bytes_max ?? PAGE_BYTES_MAX);
  const { rows } = await db.query<PageRow>({ text, values });
  return pageOfRows(rows);
}

function searchText(query: SearchNode, statement: Statement): string {
  const source = sourceOf(query, statement);
  // Few tokens are kept for page and total; a walk over all would only be written down.
  const candidates = source === undefined ? '' : `candidates AS MATERIALIZED (${source.sql()}),`;
  const join = source === undefined ? '' : 'JOIN candidates c ON c.id = t.id';
  return `
    WITH ${candidates}
    matching AS ${source === undefined ? 'NOT MATERIALIZED' : 'MATERIALIZED'} (
      SELECT t.id, t.created_at FROM tokens t ${join}
      WHERE t.tenant_id = $1 AND ${NOT_EXPIRED} AND ${IS_VISIBLE('t')}
        AND ${condition(query, statement)}
    ),
    total AS (SELECT count(*) AS total_items FROM matching),
    page AS (
      SELECT t.id, row_number() OVER (${NEWEST_FIRST}) AS place FROM (
        SELECT t.id, t.created_at FROM matching t ${NEWEST_FIRST} LIMIT $3 OFFSET $4
      ) t
    )`;
}

/**
 * A superset of the node's tokens by index; undefined when only a walk finds them. Of a conjunction
 * the most selective part is enough, a disjunction needs all of its parts.
 */
function sourceOf(node: SearchNode, statement: Statement): Source | undefined {
  switch (node.kind) {
    case 'and': {
      const sources = node.nodes.flatMap((part) => sourceOf(part, statement) ?? []);
      return sources.sort((a, b) => a.rank - b.rank)[0];
    }
    case 'or': {
      const sources = node.nodes.flatMap((part) => sourceOf(part, statement) ?? []);
      if (sources.length < node.nodes.length) return undefined;
      return {
        rank: Math.max(...sources.map(({ rank }) => rank)),
        sql: () => sources.map((source) => source.sql()).join(' UNION '),
      };
    }
    case 'id':
      return { rank: 0, sql: () => `SELECT ${statement.bind(node.value)}::text AS id` };
    case 'fingerprint':
      return {
        rank: 1,
        sql: () => `SELECT f.id FROM tokens f
          WHERE f.tenant_id = $1 AND f.fingerprint = ${statement.bind(node.value)}`,
      };
    case 'data':
    case 'metadata':
      return {
        // Metadata values tend to be shared by many tokens.
        rank: node.kind === 'data' ? 2 : 3,
        sql: () => `SELECT x.token_id AS id FROM token_terms x
          WHERE x.tenant_id = $1 AND x.hash = ${statement.bind(hashOf(node, statement))}`,
      };
    default:
      return undefined;
  }
}

function condition(node: SearchNode, statement: Statement): string {
  switch (node.kind) {
    case 'and':
      return `(${node.nodes.map((part) => condition(part, statement)).join(' AND ')})`;
    case 'or':
      return `(${node.nodes.map((part) => condition(part, statement)).join(' OR ')})`;
    case 'not':
      return `NOT ${condition(node.node, statement)}`;
    default:
      return `(${termCondition(node, statement)})`;
  }
}

function termCondition(term: SearchTerm, statement: Statement): string {
  const { bind } = statement;
  switch (term.kind) {
    case 'id':
    case 'type':
      return `t.${term.kind} = ${bind(term.value)}`;
    case 'fingerprint':
      return `coalesce(t.fingerprint = ${bind(term.value)}, false)`;
    case 'created_by':
    case 'modified_by':
      if (!UUID.test(term.value)) return 'false';
      return `coalesce(t.${term.kind} = ${bind(term.value)}::uuid, false)`;
    case 'container':
      if (term.isPrefix) return `starts_with(t.container, ${bind(term.path)})`;
      return `t.container = ${bind(term.path)}`;
    case 'created_at':
    case 'modified_at':
      return timeCondition(term, statement);
    default:
      return `EXISTS (SELECT 1 FROM token_terms x WHERE x.tenant_id = $1 AND x.token_id = t.id
        AND x.hash = ${bind(hashOf(term, statement))})`;
  }
}

function timeCondition(
  { kind, from_ms, before_ms }: Extract<SearchTerm, { kind: 'created_at' | 'modified_at' }>,
  { bind }: Statement,
): string {
  const at = (ms: number): string => `to_timestamp(${bind(ms)}::float8 / 1000)`;
  return [
    `t.${kind} IS NOT NULL`,
    ...(from_ms === undefined ? [] : [`t.${kind} >= ${at(from_ms)}`]),
    ...(before_ms === undefined ? [] : [`t.${kind} < ${at(before_ms)}`]),
  ].join(' AND ');
}

/** The blind index term of a value, folded as it was when it was stored. */
function hashOf(
  term: Extract<SearchTerm, { kind: 'data' | 'metadata' }>,
  { keys }: Statement,
): Buffer {
  return term.kind === 'data'
    ? dataTerm(keys.search, term.value)
    : metadataTerm(keys.search, term.name, foldMetadataValue(term.value));
}
