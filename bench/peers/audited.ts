/**
 * The data plane with an audit trail of a chosen mode, or with none, which no setting offers. All that
 * are compared run in this one way, so that nothing else differs.
 */
import { readEnvironment } from '../../config/environment.ts';
import { requiredSettings } from '../../config/required-settings.ts';
import { createDataPlane } from '../../data-plane/create-data-plane.ts';
import type { AuditMode } from '../../shared/audit/write-audit.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { runAsBenchProcess } from '../child-process.ts';

export interface AuditedSettings {
  readonly databaseUrl: string;
  readonly databasePoolMax: number;
  /** Base64. */
  readonly kek: string;
  readonly audit: AuditMode;
}

runAsBenchProcess(begin);

async function begin({ databaseUrl, databasePoolMax, kek, audit }: AuditedSettings) {
  const environment = readEnvironment({
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_MAX: String(databasePoolMax),
    SALLYPORT_KEK: kek,
    PORT: '0',
    SANDBOX_HOSTS: '0',
  });
  const settings = { ...environment, ...requiredSettings(environment), audit };
  const plane = createDataPlane(settings, createLogger('bench-peer', 'warn'));
  return { ready: { port: await plane.start() } };
}
