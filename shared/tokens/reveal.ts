/**
 * Opens stored tokens and shapes what a caller sees of them: clear, masked or nothing, as the access
 * decision says. A row that does not open was moved or changed: the alarm rises, nothing is shown.
 */
import type { Transform } from '../access/access-rules.ts';
import { type DataKeys, openWith, type TenantKeys } from '../crypto/data-keys.ts';
import { SealBrokenError } from '../crypto/envelope.ts';
import { cvcLabel, type TokenPayload, tokenLabel, unpackPayload } from './sealed-payload.ts';
import { tokenJson, withMember } from './token-json.ts';
import type { SealedRow, TokenRow } from './token-row.ts';

export interface TokenOpener {
  /** What is sealed in the row. Throws `SealBrokenError` after raising the alarm. */
  open(tenantId: string, row: SealedRow): TokenPayload | Promise<TokenPayload>;
  /** The row's live cvc; `undefined` when it has none. */
  openCvc(tenantId: string, row: SealedRow): string | undefined | Promise<string | undefined>;
}

/** `onBroken` counts values that did not open: the alarm of a moved or forged row. */
export function createTokenOpener(dataKeys: DataKeys, onBroken: () => void): TokenOpener {
  function alarmed<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof SealBrokenError) onBroken();
      throw error;
    }
  }

  /** Without an await when the keys are at hand, which is the hot path. */
  function openSealed<T>(
    tenantId: string,
    sealed: Buffer,
    label: Buffer,
    read: (opened: Buffer) => T,
  ): T | Promise<T> {
    const keys: TenantKeys | undefined = dataKeys.cached(tenantId);
    const opened = keys === undefined ? undefined : alarmed(() => openWith(keys, sealed, label));
    if (opened !== undefined) return read(opened);
    return dataKeys.open(tenantId, sealed, label).then(read, (error: unknown) =>
      alarmed(() => {
        throw error;
      }),
    );
  }

  return {
    open: (tenantId, row) =>
      openSealed(tenantId, row.sealed, tokenLabel(tenantId, row), unpackPayload),
    openCvc(tenantId, row) {
      if (row.cvc_sealed === null || row.cvc_due_at_ms === null) return undefined;
      const label = cvcLabel(tenantId, row.id, row.cvc_due_at_ms);
      return openSealed(tenantId, row.cvc_sealed, label, (opened) => opened.toString('utf8'));
    },
  };
}

/** What a caller sees of a token's data, and what else is sealed with it. */
export interface ShownToken {
  readonly payload: TokenPayload;
  /** JSON text; `undefined` when nothing of it may be seen. */
  readonly data: string | undefined;
}

/**
 * Opens a stored token as `transform` lets it be seen. Only a revealed one shows a live cvc. A promise
 * only where there is something to wait for, as on the hot path there is not.
 */
export function openShown(
  opener: TokenOpener,
  tenantId: string,
  row: SealedRow,
  transform: Transform,
): ShownToken | Promise<ShownToken> {
  const payload = opener.open(tenantId, row);
  if (payload instanceof Promise || (transform === 'reveal' && row.cvc_sealed !== null)) {
    return openInTurn(opener, tenantId, row, transform, payload);
  }
  return { payload, data: dataOf(payload, transform) };
}

async function openInTurn(
  opener: TokenOpener,
  tenantId: string,
  row: SealedRow,
  transform: Transform,
  opening: TokenPayload | Promise<TokenPayload>,
): Promise<ShownToken> {
  const payload = await opening;
  const data = dataOf(payload, transform);
  if (transform !== 'reveal' || data === undefined) return { payload, data };
  const cvc = await opener.openCvc(tenantId, row);
  return { payload, data: cvc === undefined ? data : withMember(data, 'cvc', `"${cvc}"`) };
}

function dataOf({ data, masked }: TokenPayload, transform: Transform): string | undefined {
  if (transform === 'redact') return undefined;
  return transform === 'mask' ? masked : data;
}

/** The answer's JSON of a stored token under `transform`; a promise only where there is one to wait for. */
export function revealToken(
  opener: TokenOpener,
  tenantId: string,
  row: TokenRow,
  transform: Transform,
): string | Promise<string> {
  const shown = openShown(opener, tenantId, row, transform);
  const json = ({ payload, data }: ShownToken) => tokenJson(tenantId, row, payload, data);
  return shown instanceof Promise ? shown.then(json) : json(shown);
}
