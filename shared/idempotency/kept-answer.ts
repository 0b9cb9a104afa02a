/**
 * An answer as it is kept for a day: sealed with the tenant's key, bound to the scope of its
 * idempotency key. With it goes what the caller needed to be shown it, which is asked for again.
 *
 * Layout before sealing: byte length of the head (4 bytes, big-endian) | head as JSON | body.
 */
import type { Transform } from '../access/access-rules.ts';
import type { Permission } from '../access/permissions.ts';
import type { DataKeys } from '../crypto/data-keys.ts';
import { seal, sealLabel } from '../crypto/envelope.ts';
import type { IdempotencyClaim } from './claim.ts';

/** That a permission showed so much of a container. */
export interface UsedRight {
  readonly permission: Permission;
  readonly container: string;
  readonly transform: Transform;
}

export interface KeptAnswer {
  readonly status: number;
  /** Flat name, value list. */
  readonly headers?: readonly string[] | undefined;
  readonly body?: string | undefined;
  readonly rights?: readonly UsedRight[] | undefined;
  /** The reactor whose answer it is. */
  readonly reactor_id?: string | undefined;
  /** Where in the body the moment of the effect is to be written, which was not known yet. */
  readonly effect_at_index?: number | undefined;
}

const LENGTH_BYTES = 4;

/** With the moment it is due, if it is due before its day is over: who moves that opens nothing. */
function label({ tenant_id, scope }: IdempotencyClaim, due_at_ms: number | null): Buffer {
  const due = due_at_ms === null ? [] : [String(due_at_ms)];
  return sealLabel('idempotency', tenant_id, scope, ...due);
}

/** Without names: there is one for every kept answer. */
type Head = [
  status: number,
  hasBody: boolean,
  headers: readonly string[] | null,
  rights: readonly (readonly [permission: Permission, container: string, transform: Transform])[],
  reactor_id: string | null,
  effect_at_index: number | null,
];

export function sealAnswer(
  claim: IdempotencyClaim,
  answer: KeptAnswer,
  due_at_ms: number | null = null,
): Buffer {
  const { status, headers = null, body, rights = [] } = answer;
  const head: Head = [
    status,
    body !== undefined,
    headers,
    rights.map(({ permission, container, transform }) => [permission, container, transform]),
    answer.reactor_id ?? null,
    answer.effect_at_index ?? null,
  ];
  const headText = JSON.stringify(head);
  const text = headText + (body ?? '');
  const packed = Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(text));
  packed.writeUInt32BE(Buffer.byteLength(headText), 0);
  packed.write(text, LENGTH_BYTES);
  return seal(claim.keys.current, packed, label(claim, due_at_ms));
}

/** The answer, byte for byte; `effect_at_ms` and `due_at_ms` are the moments its row names. */
export async function openAnswer(
  dataKeys: Pick<DataKeys, 'open'>,
  claim: IdempotencyClaim,
  sealed: Buffer,
  effect_at_ms: number | null,
  due_at_ms: number | null = null,
): Promise<KeptAnswer> {
  const packed = await dataKeys.open(claim.tenant_id, sealed, label(claim, due_at_ms));
  const headEnd = LENGTH_BYTES + packed.readUInt32BE(0);
  const head = JSON.parse(packed.toString('utf8', LENGTH_BYTES, headEnd)) as Head;
  const [status, hasBody, headers, rights, reactor_id, effect_at_index] = head;
  const body = packed.toString('utf8', headEnd);
  return {
    status,
    headers: headers ?? undefined,
    body: hasBody ? writeEffectTime(body, effect_at_index, effect_at_ms) : undefined,
    rights: rights.map(([permission, container, transform]) => ({
      ...{ permission, container, transform },
    })),
    reactor_id: reactor_id ?? undefined,
  };
}

/** The index at which `created_at` of a token's JSON has its value: behind it nothing has its name. */
export function createdAtIndex(tokenJson: string): number {
  const member = '"created_at":"';
  return tokenJson.lastIndexOf(member) + member.length;
}

/** The body with the moment in the place that was left for it: any time of the same length. */
export function writeEffectTime(
  body: string,
  index: number | null,
  effect_at_ms: number | null,
): string {
  if (index === null || effect_at_ms === null) return body;
  const time = new Date(effect_at_ms).toISOString();
  return body.slice(0, index) + time + body.slice(index + time.length);
}
