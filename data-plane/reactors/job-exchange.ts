/**
 * What a job does on somebody's behalf, as routes see it: the rights are those that the accepting key has
 * when the job runs, whatever they were when the call was accepted.
 */
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import { Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';

/** Who asked for it, part of what is sealed in the job. */
export interface JobOrigin {
  readonly application_id: string;
  /** Base64 of the hash of the key it was accepted by. */
  readonly key_hash: string;
  readonly trace_id: string;
}

export class JobExchange extends Exchange {
  readonly #tenantId: string;
  readonly #origin: JobOrigin;

  constructor(tenantId: string, origin: JobOrigin) {
    const head = {
      query: '',
      contentType: undefined,
      traceId: origin.trace_id,
      idempotencyKey: undefined,
      transactionId: undefined,
    };
    super(head, {});
    this.#tenantId = tenantId;
    this.#origin = origin;
  }

  override async findApplication({
    applications,
  }: Services): Promise<CachedApplication | undefined> {
    const { application_id, key_hash } = this.#origin;
    const found = await applications.byKeyHash(Buffer.from(key_hash, 'base64'));
    const isSame = found?.tenant_id === this.#tenantId && found.application_id === application_id;
    return isSame ? found : undefined;
  }

  override unauthorized(): ApiError {
    const detail = 'The key that this call was made with is not valid any more';
    return new ApiError('unauthorized', detail);
  }

  protected override readBytes(): Buffer {
    return Buffer.alloc(0);
  }
}
