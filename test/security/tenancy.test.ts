/** One tenant's keys against another tenant's ids, on every operation that there is. */
import { expect } from 'chai';
import { randomCardNumber } from '../support/card-numbers.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { type Answer, type Call, call, type JsonObject } from '../support/http-call.ts';
import {
  createApplication,
  startTestPlanes,
  type TestApplication,
  type TestPlanes,
} from './planes.ts';

interface Member {
  readonly tenant: TestTenant;
  readonly application: TestApplication;
}

interface Page {
  pagination: { total_items: number };
  data: { id: string; tenant_id: string }[];
}

const REACTOR = { name: 'Mine', code: 'module.exports = () => ({ raw: 1 });' };
const PROXY = { name: 'Mine', destination_url: 'https://destination.example' };

/** Operations that need `token:use`. */
const USES = ['react', 'reactAsync', 'getReactorResult'];

/** A body that each operation with one would accept. */
const BODIES: Record<string, Call> = {
  createToken: { json: { type: 'token', data: 'x' } },
  updateToken: {
    body: '{"data":"changed"}',
    headers: { 'content-type': 'application/merge-patch+json' },
  },
  createApplication: { json: { name: 'New', type: 'private', permissions: ['token:read'] } },
  updateApplication: { json: { name: 'Stolen', permissions: ['token:read'] } },
  updateTenant: { json: { name: 'Stolen' } },
  createReactor: { json: REACTOR },
  updateReactor: { json: { name: 'Stolen' } },
  patchReactor: {
    body: '{"name":"Stolen"}',
    headers: { 'content-type': 'application/merge-patch+json' },
  },
  react: { json: { args: {} } },
  reactAsync: { json: { args: {} } },
  createReactorFormula: { json: { ...REACTOR, type: 'private' } },
  updateReactorFormula: { json: { ...REACTOR, type: 'private' } },
  createProxy: { json: PROXY },
  updateProxy: { json: { ...PROXY, name: 'Stolen' } },
  patchProxy: {
    body: '{"name":"Stolen"}',
    headers: { 'content-type': 'application/merge-patch+json' },
  },
};

describe('tenants', () => {
  let planes: TestPlanes;
  let url: string;
  let acme: Member;
  let globex: Member;
  let document: { paths: Record<string, Record<string, { operationId: string }>> };

  before(async () => {
    planes = await startTestPlanes();
    url = planes.urls[0] ?? '';
    acme = await join('Acme');
    globex = await join('Globex');
    document = (await call<typeof document>(url, 'GET /openapi.json')).body;
  });
  after(() => planes.stop());

  async function join(name: string): Promise<Member> {
    const tenant = await planes.addTenant(name);
    return { tenant, application: await createApplication(url, tenant) };
  }
  const as = <T = JsonObject>({ application }: Member, line: string, rest: Call = {}) =>
    call<T>(url, line, { key: application.key, ...rest });

  async function store(member: Member, over: JsonObject = {}): Promise<string> {
    const json = { type: 'card', data: { number: randomCardNumber() }, ...over };
    const { status, body } = await as<{ id: string }>(member, 'POST /tokens', { json });
    expect(status).to.equal(201);
    return body.id;
  }

  async function make({ tenant }: Member, line: string, body: Call = {}): Promise<string> {
    const made = await call<{ id: string }>(url, line, { key: tenant.managementKey, ...body });
    expect(made.status, made.text).to.equal(201);
    return made.body.id;
  }

  /** What two answers must have in common to be told apart by nothing. */
  const seen = ({ status, text, headers }: Answer<unknown>) => {
    const { 'bt-trace-id': traceId, date, ...rest } = Object.fromEntries(headers);
    expect(traceId).to.be.a('string');
    return { status, text, headers: rest };
  };

  it('reach nothing of each other by id, on any operation with one', async () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({ path, method, operationId })),
    );
    // What is forwarded has a path of its destination's.
    const withId = operations.filter(({ path }) => /^\/(?!proxy\/).*\{/.test(path));
    expect(withId.map(({ operationId }) => operationId)).to.include.members([
      ...['getToken', 'updateToken', 'deleteToken', 'getApplication', 'regenerateKey'],
    ]);
    const targets: Record<string, string> = {
      '/tokens/': await store(globex),
      '/applications/': globex.application.id,
      '/reactors/': await make(globex, 'POST /reactors', BODIES.createReactor),
      '/reactor-formulas/': await make(
        globex,
        'POST /reactor-formulas',
        BODIES.createReactorFormula,
      ),
      '/proxies/': await make(globex, 'POST /proxies', BODIES.createProxy),
      '/transactions/': String((await as(globex, 'POST /transactions')).body.id),
    };
    const user = await createApplication(url, acme.tenant, { permissions: ['token:use'] });
    const absent = crypto.randomUUID();
    for (const { path, method, operationId } of withId) {
      const target = Object.entries(targets).find(([prefix]) => path.startsWith(prefix))?.[1];
      if (target === undefined) throw new Error(`no id of another tenant to try on ${path}`);
      const { managementKey } = acme.tenant;
      const keyOf = (): string => {
        if (USES.includes(operationId)) return user.key;
        return /^.(tokens|transactions)/.test(path) ? acme.application.key : managementKey;
      };
      const key = keyOf();
      const attempt = (id: string) =>
        call(url, `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, id)}`, {
          key,
          ...(BODIES[operationId] ?? {}),
        });
      const [theirs, nobodys] = [await attempt(target), await attempt(absent)];
      expect(theirs.status, operationId).to.equal(404);
      expect(seen(theirs), operationId).to.deep.equal(seen(nobodys));
    }
    const theirToken = await as(globex, `GET /tokens/${targets['/tokens/']}`);
    expect(theirToken.status).to.equal(200);
    expect(theirToken.body).not.to.have.property('modified_at');
    const { managementKey } = globex.tenant;
    for (const resource of ['reactors', 'reactor-formulas', 'proxies']) {
      const id = targets[`/${resource}/`];
      const theirs = await call(url, `GET /${resource}/${id}`, { key: managementKey });
      expect(theirs.body).to.include({ id, name: 'Mine' });
      expect(theirs.body).not.to.have.property('modified_at');
    }
    const theirApplication = await as(globex, 'GET /applications/key');
    expect(theirApplication.body.name).to.equal('Tokens');
  });

  it('have an answer of their own on every operation that names no id', async () => {
    const tenants: [string, Member][] = [
      ['GET /tenants/self', acme],
      ['GET /applications', acme],
      ['PUT /tenants/self', acme],
    ];
    for (const [line, { tenant }] of tenants) {
      const body = line.startsWith('PUT') ? BODIES.updateTenant : {};
      const { status, text } = await call(url, line, { key: tenant.managementKey, ...body });
      expect(status).to.equal(200);
      expect(text).to.contain(acme.tenant.id).and.not.contain(globex.tenant.id);
    }
    const { body } = await call(url, 'GET /tenants/self', { key: globex.tenant.managementKey });
    expect(body).to.include({ id: globex.tenant.id, name: 'Globex' });
  });

  it('create nothing in each other, whatever the body says', async () => {
    const over = { tenant_id: globex.tenant.id, created_by: globex.application.id };
    const id = await store(acme, over);
    const { body } = await as(acme, `GET /tokens/${id}`);
    expect(body).to.include({ tenant_id: acme.tenant.id, created_by: acme.application.id });
    const made = await createApplication(url, acme.tenant, {
      ...over,
      permissions: ['token:read'],
    });
    const stored = await call(url, `GET /applications/${made.id}`, {
      key: acme.tenant.managementKey,
    });
    expect(stored.body.tenant_id).to.equal(acme.tenant.id);
  });

  it('filter and count their own tokens alone', async () => {
    const [mine, theirs] = [await join('Initech'), await join('Hooli')];
    const metadata = { order: 'same-order' };
    const own = await store(mine, { metadata });
    const others = [await store(theirs, { metadata }), await store(theirs, { metadata })];
    const filters = [
      '',
      'metadata.order=same-order',
      'type=card',
      `id=${own}&${others.map((id) => `id=${id}`).join('&')}`,
      `id=${own}&metadata.order=same-order`,
    ];
    for (const filter of filters) {
      const { status, body } = await as<Page>(mine, `GET /tokens?${filter}`);
      expect(status, filter).to.equal(200);
      expect(body.data.map(({ id }) => id)).to.deep.equal([own]);
      expect(body.pagination.total_items).to.equal(1);
    }
    const none = await as<Page>(mine, `GET /tokens?id=${others.join('&id=')}`);
    expect(none.body.data).to.deep.equal([]);
    expect(none.body.pagination.total_items).to.equal(0);
    const applications = await call<Page>(url, `GET /applications?id=${theirs.application.id}`, {
      key: mine.tenant.managementKey,
    });
    expect(applications.body.data).to.deep.equal([]);
    expect(applications.body.pagination.total_items).to.equal(0);
  });

  it('may use the same ids, and one batch of reads never mixes them', async () => {
    const ids = Array.from({ length: 24 }, (_, index) => `shared-id-${index}`);
    await Promise.all(
      [acme, globex].flatMap((member) =>
        ids.map((id) => store(member, { id, type: 'token', data: `${member.tenant.id} ${id}` })),
      ),
    );
    const reads = [acme, globex].flatMap((member) =>
      ids.map(async (id) => {
        const { status, body } = await as(member, `GET /tokens/${id}`);
        expect(status).to.equal(200);
        expect(body).to.include({ tenant_id: member.tenant.id, data: `${member.tenant.id} ${id}` });
      }),
    );
    await Promise.all(reads);
    await as(acme, `DELETE /tokens/${ids[0]}`);
    expect((await as(globex, `GET /tokens/${ids[0]}`)).status).to.equal(200);
  });

  it('share no fingerprint and no duplicate', async () => {
    const data = { number: randomCardNumber() };
    const stored = await Promise.all(
      [acme, globex].map((member) =>
        as(member, 'POST /tokens', { json: { type: 'card', data, deduplicate_token: true } }),
      ),
    );
    const fingerprints = stored.map(({ body }) => body.fingerprint);
    for (const { status, body } of stored) {
      expect(status).to.equal(201);
      expect(body._extras).to.deep.equal({ deduplicated: false });
      expect(body.fingerprint).to.match(/^[1-9A-HJ-NP-Za-km-z]{40,44}$/);
    }
    expect(new Set(fingerprints)).to.have.lengthOf(2);
    const { rows } = await planes.admin.query<{ hash: Buffer }>(
      `SELECT hash FROM token_terms WHERE token_id LIKE 'shared-id-%' GROUP BY hash
       HAVING count(DISTINCT tenant_id) > 1`,
    );
    expect(rows).to.deep.equal([]);
  });

  it('learn nothing from the wrong kind of key either', async () => {
    const id = await store(globex);
    const answers = await Promise.all([
      call(url, `GET /tokens/${id}`, { key: acme.tenant.managementKey }),
      call(url, `GET /tokens/${crypto.randomUUID()}`, { key: acme.tenant.managementKey }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([403, 403]);
    expect(seen(answers[0])).to.deep.equal(seen(answers[1]));
  });
});
