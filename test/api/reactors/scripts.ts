/**
 * Scripts in real sandbox hosts that call a real data plane's routes through `req.bt`, for one file of
 * tests: the wiring of a worker, without its listener.
 */
import type { CachedApplication } from '../../../data-plane/config-cache/application-cache.ts';
import { createConfigCache } from '../../../data-plane/config-cache/create-config-cache.ts';
import { createScriptCalls } from '../../../data-plane/reactors/script-calls.ts';
import type { ScriptCaller } from '../../../data-plane/reactors/script-exchange.ts';
import type { Route } from '../../../data-plane/serve-exchange.ts';
import { createServices } from '../../../data-plane/services.ts';
import { createAuditWriter } from '../../../shared/audit/write-audit.ts';
import { createDatabaseClock } from '../../../shared/clock.ts';
import { createDataKeys } from '../../../shared/crypto/data-keys.ts';
import { createAuditMetrics } from '../../../shared/observability/audit-metrics.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createMetrics } from '../../../shared/observability/metrics.ts';
import { createTokenMetrics } from '../../../shared/observability/token-metrics.ts';
import type { ScriptRun } from '../../../shared/sandbox/protocol.ts';
import { monotonicNow } from '../../../shared/sandbox/protocol.ts';
import type { ScriptService } from '../../../shared/sandbox/script-services.ts';
import { call } from '../../support/http-call.ts';
import { type Sandbox, startSandbox } from '../../support/sandbox.ts';
import { type Grants, startVault, type Vault } from '../tokens/vault.ts';

export interface TestApplication {
  readonly tenant_id: string;
  readonly id: string;
  readonly key: string;
}

export interface Scripts {
  readonly vault: Vault;
  readonly sandbox: Sandbox;
  application(grants: Grants, tenant?: Vault['control']['tenant']): Promise<TestApplication>;
  /** As the data plane's cache knows it. */
  applicationById(application: TestApplication): Promise<CachedApplication | undefined>;
  /** The gateway's side of `req.bt` alone. */
  service(
    application: TestApplication,
    caller?: Partial<ScriptCaller>,
    react?: Route,
  ): ScriptService;
  /** Runs the body of an async function of `req` and `bt` with the application's rights. */
  run(application: TestApplication, body: string, args?: unknown): Promise<ScriptRun>;
  /** Its value; fails unless it ends well. */
  value<T = unknown>(application: TestApplication, body: string, args?: unknown): Promise<T>;
  stop(): Promise<void>;
}

/** Whose scripts they are, for the audit trail. */
export const TEST_REACTOR_ID = '00000000-0000-4000-8000-000000000001';

export async function startScripts(): Promise<Scripts> {
  const vault = await startVault();
  const { control } = vault;
  const { pool, installation } = control;
  const log = createLogger('test', 'silent');
  const clock = createDatabaseClock();
  const dataKeys = createDataKeys(pool, installation);
  const registered = createMetrics({ version: 'test' }, pool);
  const metrics = createTokenMetrics(registered);
  const auditMetrics = createAuditMetrics(registered);
  const config = createConfigCache({
    ...{ pool, installation, dataKeys, clock, metrics, log },
    directUrl: control.database.connectionString,
    redisUrl: undefined,
  });
  const { applications } = config;
  const audit = createAuditWriter({ pool, mode: 'strict', metrics: auditMetrics, log });
  const services = createServices({ pool, dataKeys, clock, applications, audit, log }, metrics);
  const scriptCalls = createScriptCalls(log);
  const sandbox = await startSandbox();

  const service: Scripts['service'] = ({ tenant_id, id }, caller, react = noReactors) =>
    scriptCalls(
      {
        via: { type: 'reactor', id: TEST_REACTOR_ID },
        ...{ depth: 1, ends_at_ms: monotonicNow() + 30_000, traceId: 'trace' },
        right: { current: async () => undefined },
        findApplication: () => applications.byId(tenant_id, id),
        ...caller,
      },
      { services, react },
    );
  const run: Scripts['run'] = (application, body, args = null) =>
    sandbox.run(`module.exports = async (req) => { const { bt } = req; ${body} };`, {
      tenant_id: application.tenant_id,
      args: JSON.stringify(args),
      services: { bt: service(application) },
    });
  return {
    ...{ vault, sandbox, service, run },
    applicationById: async ({ tenant_id, id }) => applications.byId(tenant_id, id),
    application: (grants, tenant = control.tenant) => createApplication(vault.url, grants, tenant),
    async value<T>(application: TestApplication, body: string, args?: unknown) {
      const { result } = await run(application, body, args);
      if (result.kind !== 'ok') throw new Error(`the script ended with ${JSON.stringify(result)}`);
      return JSON.parse(result.value) as T;
    },
    async stop() {
      await sandbox.supervisor.close();
      await config.close();
      await vault.stop();
    },
  };
}

const noReactors: Route = () => Promise.reject(new Error('no reactor is called here'));

async function createApplication(
  url: string,
  grants: Grants,
  { id, managementKey }: Vault['control']['tenant'],
): Promise<TestApplication> {
  const json = { name: 'Scripts', type: 'private', ...grants };
  const answer = await call(url, 'POST /applications', { key: managementKey, json });
  if (answer.status !== 201) throw new Error(`no application: ${answer.text}`);
  return { tenant_id: id, id: String(answer.body.id), key: String(answer.body.key) };
}
