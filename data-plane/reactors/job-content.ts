/**
 * What the jobs of asynchronous reactions carry, sealed: ids and expressions as they were given, never a
 * value of a token.
 */
import type { RequestParameter } from '../../shared/api/reactor-formulas.ts';
import type { DataKeys, TenantKeys } from '../../shared/crypto/data-keys.ts';
import { seal, sealLabel } from '../../shared/crypto/envelope.ts';
import type { JobKind } from '../../shared/jobs/job-store.ts';
import { stringifyJson } from '../../shared/json-text.ts';
import type { JobOrigin } from './job-exchange.ts';

/** Of the kind `react`; the id of the job is that of the request. */
export interface QueuedReaction extends JobOrigin {
  readonly reactor_id: string;
  /** As accepted: what is edited while a call waits is not what was called. */
  readonly code: string;
  readonly code_version: string;
  /** They belong to the code. `null` for a reactor with code of its own. */
  readonly request_parameters: RequestParameter[] | null;
  readonly args?: unknown;
  /** Tokens that had a cvc which the code was to see. */
  readonly cvc_token_ids: readonly string[];
  readonly timeout_ms: number;
  /** `null`: whoever asked will ask for the result. */
  readonly callback_url: string | null;
}

/** Of the kind `callback`: delivers a stored result. */
export interface QueuedCallback extends JobOrigin {
  /** Names the result, and is the `webhook-id` of each delivery. */
  readonly request_id: string;
  readonly callback_url: string;
}

export interface JobContents {
  readonly react: QueuedReaction;
  readonly callback: QueuedCallback;
}

export interface JobName<K extends JobKind = JobKind> {
  readonly tenant_id: string;
  readonly id: string;
  readonly kind: K;
}

const label = ({ tenant_id, id, kind }: JobName): Buffer => sealLabel('job', tenant_id, id, kind);

export function sealJob<K extends JobKind>(
  { current }: TenantKeys,
  name: JobName<K>,
  content: JobContents[K],
): Buffer {
  return seal(current, Buffer.from(stringifyJson(content)), label(name));
}

/** Throws `SealBrokenError` when the tenant is gone, or this is not what was sealed for the job. */
export async function openJob<K extends JobKind>(
  dataKeys: DataKeys,
  name: JobName<K>,
  sealed: Buffer,
): Promise<JobContents[K]> {
  const opened = await dataKeys.open(name.tenant_id, sealed, label(name));
  return JSON.parse(opened.toString('utf8')) as JobContents[K];
}
