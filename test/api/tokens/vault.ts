/**
 * Both planes over real HTTP on a database of their own, for one file of token tests. More data
 * planes on the same database, with their clocks set ahead, are how these tests travel in time.
 */
import type { AccessRule } from '../../../shared/access/access-rules.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { createTestDataPlane } from '../../support/data-plane.ts';
import { call } from '../../support/http-call.ts';
import { type TokenClient, tokenClient } from './token-client.ts';

/** The seconds of an hour: how long a cvc lives. */
export const HOUR_S = 3_600;

const TOKEN_PERMISSIONS: AccessRule['permissions'] = [
  'token:create',
  'token:read',
  'token:update',
  'token:delete',
];

/** Everything, everywhere, in clear. */
export const REVEAL_ALL: AccessRule[] = [
  { priority: 1, container: '/', transform: 'reveal', permissions: TOKEN_PERMISSIONS },
];

export interface Grants {
  type?: 'public' | 'private';
  rules?: AccessRule[];
  permissions?: string[];
}

export interface Vault {
  /** The data plane, on the clock of the database. */
  readonly url: string;
  readonly control: TestControlPlane;
  /** Key of a private application of the first tenant that may do everything, in clear. */
  readonly key: string;
  /** Its calls. */
  readonly tokens: TokenClient;
  /** A new application's key. */
  keyWith(grants: Grants, tenant?: TestTenant): Promise<string>;
  /** A new application's calls. */
  clientWith(grants: Grants, tenant?: TestTenant): Promise<TokenClient>;
  /** Calls with `key` through a data plane whose clock is this many seconds ahead. */
  later(seconds: number, key?: string): Promise<TokenClient>;
  /** Address of a data plane whose clock is this many seconds ahead; started when first asked for. */
  ahead(seconds: number): Promise<string>;
  stop(): Promise<void>;
}

interface DataPlane {
  url: string;
  stop(): Promise<void>;
}

export async function startVault(): Promise<Vault> {
  const control = await startTestControlPlane();
  const planes = new Map<number, Promise<DataPlane>>();
  const ahead = async (seconds: number): Promise<string> => {
    const plane = planes.get(seconds) ?? startDataPlane(control, seconds);
    planes.set(seconds, plane);
    return (await plane).url;
  };
  const url = await ahead(0);
  const keyWith = (grants: Grants, tenant = control.tenant) => createKey(url, grants, tenant);
  const key = await keyWith({ rules: REVEAL_ALL });
  return {
    url,
    control,
    key,
    tokens: tokenClient(url, key),
    keyWith,
    clientWith: async (grants, tenant) => tokenClient(url, await keyWith(grants, tenant)),
    ahead,
    later: async (seconds, laterKey = key) => tokenClient(await ahead(seconds), laterKey),
    async stop() {
      for (const plane of planes.values()) await (await plane).stop();
      await control.stop();
    },
  };
}

async function createKey(url: string, grants: Grants, { managementKey }: TestTenant) {
  const json = { name: 'Tokens', type: 'private', ...grants };
  const answer = await call(url, 'POST /applications', { key: managementKey, json });
  if (answer.status !== 201) throw new Error(`no application: ${answer.text}`);
  return String(answer.body.key);
}

async function startDataPlane(control: TestControlPlane, aheadSeconds: number): Promise<DataPlane> {
  const settings = { SALLYPORT_TEST_CLOCK_OFFSET: String(aheadSeconds) };
  const plane = createTestDataPlane(control, settings);
  const port = await plane.start();
  return { url: `http://localhost:${port}`, stop: plane.stop };
}
