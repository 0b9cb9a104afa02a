/**
 * One request on its way through the data plane: its accepted head, its body read once, and whether
 * the configuration it is judged by was confirmed to be current.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConfigReading } from '../shared/config-entries/config-version.ts';
import { ApiError } from '../shared/errors.ts';
import { readBody } from '../shared/http/read-body.ts';
import { JSON_DEPTH_MAX } from '../shared/json-scan.ts';
import { parseJson } from '../shared/json-text.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { AcceptedRequest } from './strict-request.ts';
import { StaleConfigError } from './version-gate.ts';

/** What a route answers. `body` is JSON text; `headers` is a flat name, value list. */
export interface Answer {
  status: number;
  body?: string;
  headers?: readonly string[];
}

/** The limit of depth is that of `data`, which lies one level down in its request. */
const BODY_DEPTH_MAX = JSON_DEPTH_MAX + 1;

export const UNAUTHORIZED_DETAIL = 'A missing or invalid BT-API-KEY was provided';

export class Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly head: AcceptedRequest;
  /** Decoded path parameters. */
  readonly params: Readonly<Record<string, string | undefined>>;
  /** Whether Postgres said, after this request arrived, that its configuration is current. */
  confirmed = false;
  #body: Promise<unknown> | undefined;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    head: AcceptedRequest,
    params: Readonly<Record<string, string | undefined>>,
  ) {
    this.req = req;
    this.res = res;
    this.head = head;
    this.params = params;
  }

  /** The JSON body of at most `limitBytes`; read and parsed once, also when a route runs again. */
  json(limitBytes: number): Promise<unknown> {
    this.#body ??= this.#readJson(limitBytes);
    return this.#body;
  }

  async #readJson(limitBytes: number): Promise<unknown> {
    if (this.head.expectsContinue) this.res.writeContinue();
    const { contentEncoding } = this.head;
    return parseJson(await readBody(this.req, { limitBytes, contentEncoding }), BODY_DEPTH_MAX);
  }

  /**
   * Holds what the database answered against what the route was decided on. Throws
   * `StaleConfigError` when the configuration moved on, 401 when the application's time is over.
   */
  confirm(application: CachedApplication, reading: ConfigReading): void {
    if (reading.config_version !== application.config_version) throw new StaleConfigError(reading);
    const { expires_at_ms } = application;
    if (expires_at_ms !== null && expires_at_ms <= reading.now_ms) {
      throw new ApiError('unauthorized', UNAUTHORIZED_DETAIL);
    }
    this.confirmed = true;
  }
}
