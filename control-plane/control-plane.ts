/** What the control plane works with, made once in `main.ts` and handed down. */
import type { DataKeys } from '../shared/crypto/data-keys.ts';
import type { Installation } from '../shared/crypto/installation.ts';
import type { AddressRange } from '../shared/egress/ip-address.ts';
import type { NotDone } from '../shared/idempotency/run-once.ts';
import type { HttpMetrics } from '../shared/observability/http-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { ChangeDestinations } from './apply-change.ts';
import type { CodeChecks } from './scripts/code-checks.ts';

export interface ControlPlane extends ChangeDestinations {
  installation: Installation;
  dataKeys: DataKeys;
  /** Compiles customer code elsewhere: no code of theirs ever runs in this process. */
  codeChecks: CodeChecks;
  /** Ranges of the operator's own that proxies may lead to. */
  egressAllow: readonly AddressRange[];
  log: Logger;
  http: HttpMetrics;
  /** Counts requests whose idempotency key was in use. */
  countNotDone(why: NotDone): void;
  /** Once true, answers end their connections. */
  isDraining(): boolean;
}
