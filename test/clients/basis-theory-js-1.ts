/** One Sallyport and two of its applications, as the client library @basis-theory/basis-theory-js 1.79.3 sees them. */
import { BasisTheory } from 'basis-theory-js-1';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const RULE = {
  ...{ description: 'all', priority: 1, container: '/', transform: 'reveal' as const },
  permissions: ['read', 'create', 'update', 'delete', 'search', 'use'].map(
    (what) => `token:${what}`,
  ),
};

const connect = (apiBaseUrl: string, key: string) => new BasisTheory().init(key, { apiBaseUrl });
type Client = Awaited<ReturnType<typeof connect>>;

export interface Connected {
  sallyport: TestSallyport;
  /** With the management key. */
  manager: Client;
  /** May do everything with tokens. */
  client: Client;
  /** The application of `client`. */
  applicationId: string;
  clientOf(key?: string): Promise<Client>;
}

export async function startConnected(): Promise<Connected> {
  const sallyport = await startSallyport({
    ...{ LOG_LEVEL: 'silent', SANDBOX_HOSTS: '1', SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8' },
  });
  const clientOf = (key = '') => connect(sallyport.baseUrl, key);
  const manager = await clientOf(sallyport.tenant.managementKey);
  const draft = { name: 'All', type: 'private' as const, rules: [RULE] };
  const { id, key } = await manager.applications.create(draft);
  return { sallyport, manager, client: await clientOf(key), applicationId: id, clientOf };
}

export interface ApiFailure extends Error {
  status: number;
  data: {
    title?: string;
    errors?: Record<string, string[]>;
    proxy_error?: { status: number };
    /** What a destination of these tests answers. */
    body?: string;
  };
}

export async function failureOf(work: Promise<unknown>): Promise<ApiFailure> {
  try {
    await work;
  } catch (error) {
    return error as ApiFailure;
  }
  throw new Error('the call succeeded');
}
