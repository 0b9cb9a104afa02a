/**
 * A call that a running script makes through `req.bt`, as routes see it: the rights of the script's
 * application, a body that is here already, and never a transaction.
 */
import type { Operation } from '../../shared/api/operation.ts';
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import { type CallingRun, Exchange, type ExchangeHead } from '../exchange.ts';

/** The run that calls, and whose rights its calls have. */
export interface ScriptCaller extends CallingRun {
  readonly traceId: string;
  /** The script's application as it is now; `undefined` when it is gone. */
  findApplication(): CachedApplication | undefined | Promise<CachedApplication | undefined>;
}

/** What of a call is the script's: the text inside is whatever its author likes. */
export interface ScriptRequest {
  readonly id: string | undefined;
  /** Raw query text without `?`. */
  readonly query: string;
  /** JSON text; empty without a body. */
  readonly body: string;
}

export class ScriptExchange extends Exchange {
  readonly #caller: ScriptCaller;
  readonly #body: string;

  constructor(operation: Operation, { id, query, body }: ScriptRequest, caller: ScriptCaller) {
    const head: ExchangeHead = {
      query,
      contentType: operation.mediaType ?? 'application/json',
      traceId: caller.traceId,
      idempotencyKey: undefined,
      transactionId: undefined,
    };
    super(head, { id }, caller);
    this.#caller = caller;
    this.#body = body;
  }

  override findApplication(): ReturnType<ScriptCaller['findApplication']> {
    return this.#caller.findApplication();
  }

  override unauthorized(): ApiError {
    const detail = 'The application of the reactor does not exist any more, or its time is over';
    return new ApiError('unauthorized', detail);
  }

  protected override readBytes(limitBytes: number): Buffer {
    const bytes = Buffer.from(this.#body);
    if (bytes.length > limitBytes) {
      throw new ApiError('payload_too_large', `The body is over ${limitBytes} bytes`);
    }
    return bytes;
  }
}
