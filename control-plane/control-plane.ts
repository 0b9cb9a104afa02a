/** What the control plane works with, made once in `main.ts` and handed down. */
import type { Installation } from '../shared/crypto/installation.ts';
import type { HttpMetrics } from '../shared/observability/http-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { ChangeDestinations } from './apply-change.ts';

export interface ControlPlane extends ChangeDestinations {
  installation: Installation;
  log: Logger;
  http: HttpMetrics;
  /** Once true, answers end their connections. */
  isDraining(): boolean;
}
