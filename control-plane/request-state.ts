/** What is known of a request as it passes through: for its answer, its log line and its metrics. */
import type { ParameterizedContext } from 'koa';
import type { Operation } from '../shared/api/operation.ts';
import type { Caller } from './authenticate.ts';

export interface RequestState {
  traceId: string;
  /** Our own data plane handed it on. */
  isRelayed: boolean;
  /** The client sends its body when it is told to go on. */
  expectsContinue?: boolean;
  /** Set once a route is found. */
  operation?: Operation;
  /** Set once the key is known. */
  caller?: Caller;
  /** Whether it was answered as an earlier one with its idempotency key, and had no effect. */
  replayed?: boolean;
}

export type RequestContext = ParameterizedContext<RequestState>;
