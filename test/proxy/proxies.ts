/**
 * Both planes over real HTTP, for one file of tests of proxies: proxies are made through the API, as
 * anybody would, and destinations are raw sockets on loopback that record what reaches them.
 */
import type { Plane } from '../../shared/process/serve-plane.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../support/control-plane.ts';
import { createTestDataPlane } from '../support/data-plane.ts';
import { type Call, call, type JsonObject } from '../support/http-call.ts';
import { allowList } from '../unit/egress/destinations.ts';

const LOOPBACK = '127.0.0.0/8,::1/128';

/** What POST /proxies takes. */
export interface ProxyDraft {
  destination_url: string;
  require_auth?: boolean;
  request_transform?: { code: string };
  response_transform?: { code: string };
  leak_tripwire?: string;
}

export interface Proxies {
  readonly url: string;
  readonly port: number;
  readonly control: TestControlPlane;
  readonly plane: Plane;
  /** Key of a private application of the first tenant that may create and use in clear. */
  readonly key: string;
  /** A new proxy's key and id. */
  proxy(draft: ProxyDraft, tenant?: TestTenant): Promise<{ id: string; key: string }>;
  /** A new application's key. */
  application(grants: JsonObject, tenant?: TestTenant): Promise<{ id: string; key: string }>;
  /** A management call that must succeed. */
  manage(line: string, rest?: Call, tenant?: TestTenant): Promise<JsonObject>;
  /** A new token's id. */
  token(data: unknown): Promise<string>;
  /** The sum of a counter over its labels that contain `labels`. */
  metric(name: string, labels?: Record<string, string>): Promise<number>;
  stop(): Promise<void>;
}

const ALL = {
  rules: [
    {
      ...{ priority: 1, container: '/', transform: 'reveal' },
      permissions: ['token:create', 'token:read', 'token:use'],
    },
  ],
};

/** `settings` are environment variables of the data plane. */
export async function startProxies(settings: NodeJS.ProcessEnv = {}): Promise<Proxies> {
  const control = await startTestControlPlane(allowList(LOOPBACK));
  const own = { SALLYPORT_EGRESS_ALLOW: LOOPBACK, ...settings };
  const plane = createTestDataPlane(control, own);
  const port = await plane.start();
  const url = `http://localhost:${port}`;
  const manage: Proxies['manage'] = async (line, rest = {}, tenant = control.tenant) => {
    const answer = await call(url, line, { key: tenant.managementKey, ...rest });
    if (answer.status >= 300) throw new Error(`${line}: ${answer.text}`);
    return answer.body;
  };
  const application: Proxies['application'] = async (grants, tenant) => {
    const json = { name: 'Caller', type: 'private', ...grants };
    const { id, key } = await manage('POST /applications', { json }, tenant);
    return { id: String(id), key: String(key) };
  };
  const { key } = await application(ALL);
  return {
    ...{ url, port, control, plane, key, application, manage },
    async proxy(draft, tenant) {
      const made = await manage('POST /proxies', { json: { name: 'Proxy', ...draft } }, tenant);
      return { id: String(made.id), key: String(made.key) };
    },
    async token(data) {
      const made = await manage('POST /tokens', { key, json: { type: 'token', data } });
      return String(made.id);
    },
    async metric(name, labels = {}) {
      const metrics = await plane.metrics.registry.getMetricsAsJSON();
      const found = metrics.find((metric) => metric.name === name);
      const values = (found?.values ?? []) as { value: number; labels: Record<string, unknown> }[];
      const wanted = Object.entries(labels);
      return values
        .filter((one) => wanted.every(([label, value]) => one.labels[label] === value))
        .reduce((sum, one) => sum + one.value, 0);
    },
    async stop() {
      await plane.stop();
      await control.stop();
    },
  };
}
