/**
 * One request on its way through the data plane: what a route sees of it, wherever it comes from, and
 * whether the configuration it is judged by was confirmed to be current. Here it comes by HTTP; the
 * calls of a running script are in reactors/script-exchange.ts.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Via } from '../shared/audit/audit-entry.ts';
import type { ConfigReading } from '../shared/config-entries/config-version.ts';
import { ApiError } from '../shared/errors.ts';
import { mayBeRead, readBody } from '../shared/http/read-body.ts';
import type { AcceptedRequest } from '../shared/http/strict-request.ts';
import type { IdempotencyClaim } from '../shared/idempotency/claim.ts';
import { JSON_DEPTH_MAX } from '../shared/json-scan.ts';
import { parseJson } from '../shared/json-text.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { Services } from './services.ts';
import { StaleConfigError } from './version-gate.ts';

/**
 * What a route answers. `headers` is a flat name, value list, names in lower case; `body` is JSON text
 * unless a `content-type` among them says otherwise.
 */
export interface Answer {
  status: number;
  body?: string;
  headers?: readonly string[];
}

/** The limit of depth is that of `data`, which lies one level down in its request. */
const BODY_DEPTH_MAX = JSON_DEPTH_MAX + 1;

/** What routes read of a request's head. */
export type ExchangeHead = Pick<
  AcceptedRequest,
  'query' | 'contentType' | 'traceId' | 'idempotencyKey' | 'transactionId'
>;

/** A right that may be taken back while something is under way. */
export interface Right {
  /** Rejects when it is gone by now, as a request would be refused: 401, 403 or 404. */
  current(): Promise<unknown>;
}

/** The run of a script that a call comes out of. */
export interface CallingRun {
  /** Whose code it is. */
  readonly via: Via;
  /** By which it runs; what the call starts needs it too. */
  readonly right: Right;
  /** 1 for a run that an HTTP request has started, 2 for one that such a run has started, … */
  readonly depth: number;
  /** On the monotonic clock of the machine: what the call starts must end by then. */
  readonly ends_at_ms: number;
}

export abstract class Exchange {
  readonly head: ExchangeHead;
  /** Decoded path parameters. */
  readonly params: Readonly<Record<string, string | undefined>>;
  /** Absent for a request that came by HTTP. */
  readonly callingRun: CallingRun | undefined;
  /** Whether Postgres said, after this request arrived, that its configuration is current. */
  confirmed = false;
  /** Set before its route runs when it has an idempotency key that means something there. */
  idempotency: IdempotencyClaim | undefined;
  #body: Promise<unknown> | undefined;
  #release: (() => void) | undefined;

  constructor(
    head: ExchangeHead,
    params: Readonly<Record<string, string | undefined>>,
    callingRun?: CallingRun,
  ) {
    this.head = head;
    this.params = params;
    this.callingRun = callingRun;
  }

  /** Whose rights it has, as last known; `undefined` when nobody's. */
  abstract findApplication(
    services: Services,
  ): CachedApplication | undefined | Promise<CachedApplication | undefined>;

  /** Why it has nobody's rights. */
  abstract unauthorized(): ApiError;

  /** Whether it came without a body. */
  get isBodyless(): boolean {
    return false;
  }

  /** At most `limitBytes` of body; throws 413 above. */
  protected abstract readBytes(limitBytes: number): Promise<Buffer> | Buffer;

  /** Whether something is held until it is over. */
  get isHolding(): boolean {
    return this.#release !== undefined;
  }

  /** Calls `release` when it is over. Holds one thing. */
  hold(release: () => void): void {
    this.#release = release;
  }

  /** Called when its route has ended and its answer was written, whether or not anybody waited for it. */
  over(): void {
    const release = this.#release;
    this.#release = undefined;
    release?.();
  }

  /** The JSON body of at most `limitBytes`; read and parsed once, also when a route runs again. */
  json(limitBytes: number): Promise<unknown> {
    this.#body ??= this.#readJson(limitBytes);
    return this.#body;
  }

  async #readJson(limitBytes: number): Promise<unknown> {
    const reading = this.readBytes(limitBytes);
    const bytes = reading instanceof Promise ? await reading : reading;
    return parseJson(bytes, BODY_DEPTH_MAX);
  }

  /**
   * Holds what the database answered against what the route was decided on. Throws
   * `StaleConfigError` when the configuration moved on, 401 when the application's time is over.
   */
  confirm(application: CachedApplication, reading: ConfigReading): void {
    if (reading.config_version !== application.config_version) throw new StaleConfigError(reading);
    const { expires_at_ms } = application;
    if (expires_at_ms !== null && expires_at_ms <= reading.now_ms) throw this.unauthorized();
    this.confirmed = true;
  }
}

export class HttpExchange extends Exchange {
  declare readonly head: AcceptedRequest;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    head: AcceptedRequest,
    params: Readonly<Record<string, string | undefined>>,
  ) {
    super(head, params);
    this.#req = req;
    this.#res = res;
  }

  /**
   * What is held is given back when the answer has left, or its caller; not while the route still works for
   * a caller who has gone, or callers who come and go would hold nothing.
   */
  override over(): void {
    if (!this.isHolding || this.#res.closed) super.over();
    else this.#res.once('close', () => super.over());
  }

  /** Every wrong key gets the same answer. */
  override findApplication({
    applications,
  }: Services): CachedApplication | undefined | Promise<CachedApplication | undefined> {
    const { apiKey } = this.head;
    if (apiKey === undefined) return undefined;
    return applications.cached(apiKey) ?? applications.load(apiKey);
  }

  override unauthorized(): ApiError {
    return new ApiError('unauthorized', 'A missing or invalid BT-API-KEY was provided');
  }

  override get isBodyless(): boolean {
    const { chunked, contentLength = 0 } = this.head;
    return !chunked && contentLength === 0;
  }

  protected override readBytes(limitBytes: number): Promise<Buffer> | Buffer {
    const { head } = this;
    if (head.expectsContinue && mayBeRead(head, limitBytes)) this.#res.writeContinue();
    return readBody(this.#req, { limitBytes, contentEncoding: head.contentEncoding });
  }
}
