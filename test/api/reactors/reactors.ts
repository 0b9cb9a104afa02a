/**
 * Both planes over real HTTP with real sandbox hosts, for one file of tests of reactions: reactors are
 * made through the API, as anybody would.
 */
import type { Plane } from '../../../shared/process/serve-plane.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { createTestDataPlane } from '../../support/data-plane.ts';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';
import { allowList } from '../../unit/egress/destinations.ts';
import type { Grants } from '../tokens/vault.ts';

/** Where the destinations of these tests are. */
const LOOPBACK = '127.0.0.0/8,::1/128';

/** What POST /reactors takes, and the same for its formula. */
export interface ReactorDraft {
  code?: string;
  configuration?: Record<string, string>;
  application?: { id: string };
  formula?: { code: string; configuration?: JsonObject[]; request_parameters?: JsonObject[] };
}

export interface Reactor {
  readonly id: string;
  readonly formula_id: string | undefined;
}

export interface Reactors {
  readonly url: string;
  readonly control: TestControlPlane;
  readonly plane: Plane;
  /** Key of a private application of the first tenant that may create, read and use in clear. */
  readonly key: string;
  application(grants: Grants, tenant?: TestTenant): Promise<{ id: string; key: string }>;
  reactor(draft: ReactorDraft, tenant?: TestTenant): Promise<Reactor>;
  /** A reactor whose code is the body of an async function of `req`. */
  script(body: string, draft?: ReactorDraft): Promise<Reactor>;
  react(reactor: Pick<Reactor, 'id'>, json?: unknown, key?: string): Promise<Answer<JsonObject>>;
  /** A management call that must succeed. */
  manage(line: string, rest?: Call, tenant?: TestTenant): Promise<Answer<JsonObject>>;
  /** A new token's id. */
  token(json: JsonObject): Promise<string>;
  /** Drains the data plane; `stop` then ends the rest. */
  stopPlane(): Promise<void>;
  stop(): Promise<void>;
}

const ALL: Grants = {
  rules: [
    {
      ...{ priority: 1, container: '/', transform: 'reveal' },
      permissions: ['token:create', 'token:read', 'token:use', 'token:update', 'token:delete'],
    },
  ],
};

/** `settings` are environment variables of the data plane. */
export async function startReactors(settings: NodeJS.ProcessEnv = {}): Promise<Reactors> {
  const control = await startTestControlPlane(allowList(LOOPBACK));
  const own = { SANDBOX_HOSTS: '1', SALLYPORT_EGRESS_ALLOW: LOOPBACK, ...settings };
  const plane = createTestDataPlane(control, own);
  const url = `http://localhost:${await plane.start()}`;

  const manage: Reactors['manage'] = async (line, rest = {}, tenant = control.tenant) => {
    const answer = await call(url, line, { key: tenant.managementKey, ...rest });
    if (answer.status >= 300) throw new Error(`${line}: ${answer.text}`);
    return answer;
  };
  const application: Reactors['application'] = async (grants, tenant) => {
    const json = { name: 'Caller', type: 'private', ...grants };
    const { body } = await manage('POST /applications', { json }, tenant);
    return { id: String(body.id), key: String(body.key) };
  };
  const reactor: Reactors['reactor'] = async ({ formula, ...draft }, tenant) => {
    const json: JsonObject = { name: 'Reactor', ...draft };
    let formula_id: string | undefined;
    if (formula !== undefined) {
      const given = { name: 'Formula', type: 'private', ...formula };
      const made = await manage('POST /reactor-formulas', { json: given }, tenant);
      formula_id = String(made.body.id);
      Object.assign(json, {
        formula: { id: formula_id },
        configuration: draft.configuration ?? {},
      });
    }
    const { body } = await manage('POST /reactors', { json }, tenant);
    return { id: String(body.id), formula_id };
  };
  const { key } = await application(ALL);
  let stopped: Promise<void> | undefined;
  const stopPlane = (): Promise<void> => {
    stopped ??= plane.stop();
    return stopped;
  };
  return {
    ...{ url, control, plane, key, application, reactor, manage },
    script: (body, draft) =>
      reactor({ ...draft, code: `module.exports = async function (req) { ${body} };` }),
    react: ({ id }, json = {}, caller = key) =>
      call(url, `POST /reactors/${id}/react`, { key: caller, json }),
    async token(json) {
      const answer = await call(url, 'POST /tokens', { key, json });
      if (answer.status !== 201) throw new Error(`no token: ${answer.text}`);
      return String(answer.body.id);
    },
    stopPlane,
    async stop() {
      await stopPlane();
      await control.stop();
    },
  };
}
