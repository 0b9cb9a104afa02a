/**
 * Puts token data in the place of the expressions in a body, for one application under one
 * permission. All tokens of a request are read at once; nothing of a token leaves this file but what
 * the application's rules let it see.
 */
import type { Access, Transform } from '../access/access-rules.ts';
import { DeniedError } from '../access/denied-error.ts';
import type { ConfigReading } from '../config-entries/config-version.ts';
import { ApiError, fieldError } from '../errors.ts';
import type { TokensInUse, TokenView } from '../expressions/detokenization.ts';
import { compileDetokenizationBody } from '../expressions/detokenization-body.ts';
import type { BatchReader, TokenReaders } from './batch-reader.ts';
import { expressionErrorsAt } from './evaluate.ts';
import { openShown, type ShownToken, type TokenOpener } from './reveal.ts';
import { tokenJson } from './token-json.ts';
import type { SealedRow, TokenRow } from './token-row.ts';

/** Distinct tokens of one request (spec: Limits; design section 12). */
export const DETOKENIZED_TOKENS_MAX = 100;

/**
 * Sealed bytes of all tokens of one request: opening and parsing them holds up the process for
 * some 10 ms per MiB. A hundred tokens of 200 KiB fit; what is injected has a limit of its own.
 */
const SEALED_BYTES_MAX = 20 * 1024 * 1024;

/** Behind an unknown id with a dot, which may have been meant as a path: ids are taken literally. */
const MEMBER_HINT = '; a member is taken by a filter: {{ <token id> | json: "$.number" }}';

export interface DetokenizeContext {
  tenant_id: string;
  access: Access;
  /** `token:use` for reactors and proxies, `token:read` for a caller who sees the result. */
  permission: 'token:use' | 'token:read';
  readers: TokenReaders;
  opener: TokenOpener;
  /** Throws when the configuration read along is not the one decided on. */
  confirm(reading: ConfigReading): void;
  /** Told what was brought out, before anything is made of it; waited for. */
  accessed(tokens: readonly SealedRow[]): undefined | Promise<void>;
  /** Told what each expression yielded, where somebody looks for it. */
  made?: TellMade | undefined;
}

/** Takes what expressions yielded; of whole tokens their data. */
export type TellMade = (values: readonly unknown[]) => void;

/** What it takes to find out whether tokens may be used, without opening one. */
type CheckContext = Omit<DetokenizeContext, 'opener' | 'accessed' | 'made'>;

export interface Detokenized {
  /** Shares objects with the body: do not change it. */
  value: unknown;
  /** The tokens that were used. Empty: nothing was read, so `confirm` was not called. */
  token_ids: readonly string[];
}

/**
 * The body with its expressions replaced; a promise only where it has any. `path` is what errors call the body,
 * its members are named below it. Throws 400 for malformed expressions, more than 100 tokens, unknown tokens, and what an
 * expression cannot do with its token; 403 for tokens that the permission does not cover.
 */
export function detokenize(
  body: unknown,
  path: string,
  context: DetokenizeContext,
): Detokenized | Promise<Detokenized> {
  const root = path === '' ? 'body' : path;
  const compiled = expressionErrorsAt(root, () => compileDetokenizationBody(body, path));
  const { tokenIds } = compiled;
  if (tokenIds.length === 0) return { value: body, token_ids: tokenIds };
  checkTokenCount(tokenIds.length, root);
  return readTokenViews(compiled, context).then((views) => {
    const made = context.made && [];
    const value = expressionErrorsAt(root, () => compiled.evaluate(views, made));
    if (made !== undefined) context.made?.(made);
    return { value, token_ids: tokenIds };
  });
}

/** Throws 400 at `path` above the number of distinct tokens that a request may use. */
export function checkTokenCount(count: number, path: string): void {
  if (count > DETOKENIZED_TOKENS_MAX) {
    throw fieldError(
      path,
      `At most ${DETOKENIZED_TOKENS_MAX} tokens may be detokenized in a single request`,
    );
  }
}

/**
 * What expressions see of the tokens, by id. Throws 400 when some do not exist, 403 when the permission
 * does not cover some, both naming them.
 */
export async function readTokenViews(
  { tokenIds, usesWhole }: TokensInUse,
  context: DetokenizeContext,
): Promise<ReadonlyMap<string, TokenView>> {
  const { opener, readers } = context;
  const views = new Map<string, TokenView>();
  const rows: SealedRow[] = [];
  const show = (row: SealedRow, view: TokenView): void => {
    rows.push(row);
    views.set(row.id, view);
  };
  const { tenant_id } = context;
  if (usesWhole) {
    for (const { row, transform } of await readPermitted(tokenIds, readers.whole, context)) {
      const shown = openShown(opener, tenant_id, row, transform);
      show(row, new WholeToken(tenant_id, row, shown instanceof Promise ? await shown : shown));
    }
  } else {
    for (const { row, transform } of await readPermitted(tokenIds, readers.sealed, context)) {
      const shown = openShown(opener, tenant_id, row, transform);
      show(row, new DataOfToken(shown instanceof Promise ? await shown : shown));
    }
  }
  const telling = context.accessed(rows);
  if (telling !== undefined) await telling;
  return views;
}

/** A row, not opened, and how its token may be used. */
export interface PermittedToken<Row> {
  readonly row: Row;
  readonly transform: Transform;
}

async function readPermitted<Row extends SealedRow>(
  tokenIds: readonly string[],
  reader: BatchReader<Row>,
  context: CheckContext,
): Promise<PermittedToken<Row>[]> {
  const { tenant_id } = context;
  const readings = await reader.submitAll(tokenIds.map((id) => ({ tenant_id, id })));
  const rows: Row[] = [];
  for (const reading of readings) {
    context.confirm(reading);
    if (reading.token !== undefined) rows.push(reading.token);
  }
  refuseMissing(tokenIds, rows);
  const permitted = decideAll(rows, context);
  checkSize(rows);
  return permitted;
}

/**
 * The tokens of a body that is to be detokenized later. Throws what `detokenize` throws, as far as that
 * can be known without opening a token. Without any, `confirm` was not called.
 */
export async function checkDetokenization(
  body: unknown,
  path: string,
  context: CheckContext,
): Promise<PermittedToken<SealedRow>[]> {
  const { tokenIds } = expressionErrorsAt(path, () => compileDetokenizationBody(body, path));
  checkTokenCount(tokenIds.length, path);
  return readPermitted(tokenIds, context.readers.sealed, context);
}

function refuseMissing(tokenIds: readonly string[], rows: readonly SealedRow[]): void {
  if (rows.length === tokenIds.length) return;
  const found = new Set(rows.map((row) => row.id));
  throw missingTokens(tokenIds.filter((id) => !found.has(id)));
}

export function missingTokens(missing: readonly string[]): ApiError {
  const hint = missing.some((id) => id.includes('.')) ? MEMBER_HINT : '';
  return new ApiError(
    'bad_request',
    `Failed to detokenize some tokens: ${missing.join(', ')}${hint}`,
  );
}

/** How each may be used. Using a token that one may not even see masked makes no sense: 403. */
function decideAll<Row extends SealedRow>(
  rows: readonly Row[],
  { access, permission }: CheckContext,
): PermittedToken<Row>[] {
  const permitted: PermittedToken<Row>[] = [];
  const refused: Row[] = [];
  for (const row of rows) {
    const transform = access.decide(permission, row.container);
    if (transform === undefined || (transform === 'redact' && permission === 'token:use')) {
      refused.push(row);
    } else {
      permitted.push({ row, transform });
    }
  }
  if (refused.length === 0) return permitted;
  const ids = refused.map(({ id }) => id).join(', ');
  const detail = `The key lacks the permission ${permission} for some tokens: ${ids}`;
  throw new DeniedError(permission, detail, { tokens: refused });
}

function checkSize(rows: readonly SealedRow[]): void {
  const bytes = rows.reduce((sum, row) => sum + row.sealed.length, 0);
  if (bytes > SEALED_BYTES_MAX) {
    throw new ApiError('bad_request', 'The tokens are too large to be used in a single request');
  }
}

/** The data of a token; parsed when an expression first looks. */
class DataOfToken implements TokenView {
  protected readonly shown: ShownToken;
  #data: unknown;

  constructor(shown: ShownToken) {
    this.shown = shown;
  }

  get data(): unknown {
    const text = this.shown.data;
    this.#data ??= text === undefined ? null : JSON.parse(text);
    return this.#data;
  }

  get token(): unknown {
    throw new Error('a token that was not read whole');
  }
}

/** A token as a read answers it. */
class WholeToken extends DataOfToken {
  readonly #tenantId: string;
  readonly #row: TokenRow;
  #token: unknown;

  constructor(tenantId: string, row: TokenRow, shown: ShownToken) {
    super(shown);
    this.#tenantId = tenantId;
    this.#row = row;
  }

  override get token(): unknown {
    const { payload, data } = this.shown;
    this.#token ??= JSON.parse(tokenJson(this.#tenantId, this.#row, payload, data));
    return this.#token;
  }
}
