/** `/logs`: what was done in the tenant, and by whom (facts 4.2). */
import type Router from '@koa/router';
import * as api from '../../shared/api/logs.ts';
import { toPage } from '../../shared/api/pagination.ts';
import { ENTITY_TYPES, type EntityType } from '../../shared/audit/audit-entry.ts';
import { fieldError } from '../../shared/errors.ts';
import { type Paging, readPaging } from '../../shared/http/list-parameters.ts';
import type { QueryParams } from '../../shared/http/query.ts';
import { parseExpiresAt } from '../../shared/tokens/expires-at.ts';
import type { ControlPlane } from '../control-plane.ts';
import { omitNulls } from '../omit-nulls.ts';
import type { RequestState } from '../request-state.ts';
import { addOperation, type Carry } from '../serve-operation.ts';
import { type LogPlace, parseCursor, printCursor } from './log-cursor.ts';
import { countLogs, type LogFilter, type LogRow, listLogs } from './log-store.ts';

export function addLogRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, api.listLogEntityTypes, async () =>
    ENTITY_TYPES.map((value) => ({ display_name: displayName(value, true), value })),
  );
  addOperation(router, plane, api.listLogs, list(plane));
}

function list({ pool }: ControlPlane): Carry<typeof api.listLogs> {
  return async ({ caller: { tenant_id }, query }) => {
    const filter = readFilter(query);
    const paging = readPaging(query);
    const start = readStart(query);
    const from = start ?? readOffset(paging);
    // One more than asked for tells whether there is a next page.
    const rows = await listLogs(pool, tenant_id, filter, { limit: paging.size + 1, from });
    const shown = rows.slice(0, paging.size);
    const last = shown.at(-1);
    const next =
      rows.length > shown.length && last !== undefined ? { next: printCursor(last) } : {};
    const data = shown.map(logOf);
    if (start !== undefined) return { pagination: { page_size: paging.size, ...next }, data };
    const { pagination } = toPage(data, await countLogs(pool, tenant_id, filter), paging);
    return { pagination: { ...pagination, ...next }, data };
  };
}

/** Kinds that the API has besides (facts 4.2). Here cards and bank accounts are tokens: no rows. */
const KINDS_WITHOUT_ROWS = ['bank', 'card'];

function readFilter(query: QueryParams): LogFilter {
  return {
    entity_type: readEntityType(query),
    entity_id: readOne(query, 'entity_id'),
    start_date: readDate(query, 'start_date'),
    end_date: readDate(query, 'end_date'),
  };
}

/** An empty page for a misspelt kind would read as if nothing had happened. */
function readEntityType(query: QueryParams): string | undefined {
  const type = readOne(query, 'entity_type');
  const known: readonly string[] = [...ENTITY_TYPES, ...KINDS_WITHOUT_ROWS];
  if (type === undefined || known.includes(type)) return type;
  throw fieldError('entity_type', `Must be one of ${ENTITY_TYPES.join(', ')}`);
}

/** An empty one is as good as none: some clients send the names of all their parameters. */
function readOne(query: QueryParams, name: string): string | undefined {
  const [value, ...others] = query.all(name);
  if (others.length > 0) throw fieldError(name, 'May be given once');
  return value === '' ? undefined : value;
}

function readDate(query: QueryParams, name: string): Date | undefined {
  const text = readOne(query, name);
  if (text === undefined) return undefined;
  const date = parseExpiresAt(text);
  if (date === undefined) throw fieldError(name, 'Must be an ISO 8601 date or date-time');
  return date;
}

function readStart(query: QueryParams): LogPlace | undefined {
  const text = readOne(query, 'start');
  if (text === undefined) return undefined;
  const place = parseCursor(text);
  if (place === undefined) throw fieldError('start', 'Must be `next` of an earlier page');
  return place;
}

function readOffset({ page, size }: Paging): number {
  const offset = (page - 1) * size;
  if (offset + size > api.LOG_TOTAL_MAX) {
    const advice = `Pages end at ${api.LOG_TOTAL_MAX} logs: go on with \`start\``;
    throw fieldError('page', `${advice}, the \`next\` of a page`);
  }
  return offset;
}

const PAST_TENSES = {
  create: 'created',
  read: 'retrieved',
  update: 'updated',
  delete: 'deleted',
  use: 'used',
  regenerate: 'regenerated',
} as const;

function logOf({ denied, micros: _, ...row }: LogRow): api.Log {
  const name = displayName(row.entity_type, false);
  const message = denied
    ? `${name} ${row.operation} denied`
    : `${name} ${PAST_TENSES[row.operation]}`;
  return omitNulls<api.Log>({ ...row, message });
}

/** `Reactor formula`, or in title case as names of types. */
function displayName(type: EntityType, titleCase: boolean): string {
  const words = type.split('_');
  const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
  return words.map((word, index) => (titleCase || index === 0 ? capital(word) : word)).join(' ');
}
