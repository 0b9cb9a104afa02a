import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { insertAudit } from '../../../shared/audit/write-audit.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';
import { entryOf, trailOf } from '../audit/trail.ts';
import { expectProblem } from '../tokens/token-client.ts';

interface LogPage {
  pagination: Partial<
    Record<'page_size' | 'page_number' | 'total_items' | 'total_pages', number>
  > & {
    next?: string;
  };
  data: JsonObject[];
}

describe('/logs', () => {
  let control: TestControlPlane;
  before(async () => {
    control = await startTestControlPlane();
  });
  after(() => control.stop());

  const list = (query = '', tenant: TestTenant = control.tenant): Promise<Answer<LogPage>> =>
    call<LogPage>(control.baseUrl, `GET /logs${query}`, { key: tenant.managementKey });
  const manage = (line: string, json?: unknown, tenant: TestTenant = control.tenant) =>
    call(control.baseUrl, line, { key: tenant.managementKey, ...(json ? { json } : {}) });

  it('tells of every change of the configuration, the newest first', async () => {
    const tenant = await control.addTenant('Changes');
    const application = { name: 'A', type: 'private', permissions: ['token:read'] };
    const made = await manage('POST /applications', application, tenant);
    const id = String(made.body.id);
    const { name, permissions } = application;
    await manage(`PUT /applications/${id}`, { name, permissions }, tenant);
    await manage(`POST /applications/${id}/regenerate`, undefined, tenant);
    await manage(`DELETE /applications/${id}`, undefined, tenant);
    await manage('PUT /tenants/self', { name: 'Changed' }, tenant);
    const proxy = { name: 'P', destination_url: 'https://example.com/' };
    const { body: made_proxy } = await manage('POST /proxies', proxy, tenant);
    const { status, body } = await list('', tenant);
    expect(status).to.equal(200);
    const [newest] = body.data;
    expect(newest).to.have.all.keys(
      ...['id', 'tenant_id', 'actor_id', 'actor_type', 'entity_type', 'entity_id'],
      ...['operation', 'message', 'created_at'],
    );
    expect(newest).to.include({
      tenant_id: tenant.id,
      actor_id: tenant.managementApplicationId,
      actor_type: 'application',
      entity_id: made_proxy.id,
    });
    expect(new Date(String(newest?.created_at)).toISOString()).to.equal(newest?.created_at);
    expect(body.data.map((log) => `${log.message} ${log.entity_id}`)).to.deep.equal([
      `Proxy created ${made_proxy.id}`,
      `Tenant updated ${tenant.id}`,
      `Application deleted ${id}`,
      `Application regenerated ${id}`,
      `Application updated ${id}`,
      `Application created ${id}`,
    ]);
    expect(body.pagination).to.deep.equal({
      ...{ page_size: 20, page_number: 1, total_items: 6, total_pages: 1 },
    });
  });

  it('tells through what a token was used, or who asked for it', async () => {
    const tenant = await control.addTenant('Via');
    const via_id = randomUUID();
    const used = { operation: 'use', via_type: 'proxy', via_id } as const;
    const entries = [entryOf({ tenant_id: tenant.id }), entryOf({ tenant_id: tenant.id, ...used })];
    for (const entry of entries) await insertAudit(control.pool, [entry]);
    const [through, directly] = (await list('', tenant)).body.data;
    expect(through).to.include({ message: 'Token used', via_type: 'proxy', via_id });
    expect(directly).to.not.have.any.keys('via_type', 'via_id');
  });

  it('tells nothing of a change that failed, and of a key that nobody has', async () => {
    const tenant = await control.addTenant('Failures');
    expect((await manage('POST /applications', { name: 'A' }, tenant)).status).to.equal(400);
    expect((await manage(`DELETE /proxies/${randomUUID()}`, undefined, tenant)).status).to.equal(
      404,
    );
    await call(control.baseUrl, 'DELETE /tenants/self', { key: 'key_nobody' });
    expect((await list('', tenant)).body.data).to.deep.equal([]);
  });

  it('tells of attempts by keys without the permission', async () => {
    const tenant = await control.addTenant('Denied');
    const reader = { name: 'R', type: 'management', permissions: ['log:read'] };
    const { body } = await manage('POST /applications', reader, tenant);
    const as = (line: string) => call(control.baseUrl, line, { key: String(body.key), json: {} });
    const id = randomUUID();
    for (const line of [
      `DELETE /proxies/${id}`,
      'POST /reactor-formulas',
      'DELETE /tenants/self',
    ]) {
      expect((await as(line)).status).to.equal(403);
    }
    const rows = (await trailOf(control.pool, tenant.id)).filter(({ denied }) => denied);
    expect(
      rows.map((row) => [row.operation, row.entity_type, row.entity_id, row.actor_id]),
    ).to.deep.equal([
      ['delete', 'proxy', id, body.id],
      ['create', 'reactor_formula', null, body.id],
      ['delete', 'tenant', tenant.id, body.id],
    ]);
    const [newest] = (await list('', tenant)).body.data;
    expect(newest?.message).to.equal('Tenant delete denied');
  });

  it('needs log:read, and says which kinds of entities there are', async () => {
    const json = { name: 'N', type: 'management', permissions: ['proxy:read'] };
    const { body } = await manage('POST /applications', json);
    const key = String(body.key);
    expectProblem(await call(control.baseUrl, 'GET /logs', { key }), 403);
    expectProblem(await call(control.baseUrl, 'GET /logs/entity-types', { key }), 403);
    expectProblem(await call(control.baseUrl, 'GET /logs'), 401);
    const types = await call<JsonObject[]>(control.baseUrl, 'GET /logs/entity-types', {
      key: control.tenant.managementKey,
    });
    expect(types.body).to.deep.include({
      display_name: 'Reactor Formula',
      value: 'reactor_formula',
    });
    expect(types.body).to.deep.include({ display_name: 'Token', value: 'token' });
  });

  describe('in a long trail', () => {
    const ROWS = 45;
    let tenant: TestTenant;
    before(async () => {
      tenant = await control.addTenant('Long');
      const entries = Array.from({ length: ROWS }, (_, index) =>
        entryOf({
          tenant_id: tenant.id,
          ...(index % 5 === 0
            ? { entity_type: 'proxy' as const }
            : { entity_id: `token-${index % 2}` }),
        }),
      );
      // Rows of one statement have one time: the cursor must tell them apart by id.
      await insertAudit(control.pool, entries.slice(0, 30));
      for (const entry of entries.slice(30)) await insertAudit(control.pool, [entry]);
    });

    it('goes on where a page ended, and shows each log once', async () => {
      const seen: string[] = [];
      let query = '?size=7';
      for (let pages = 1; ; pages += 1) {
        const { body, status, text } = await list(query, tenant);
        expect(status, text).to.equal(200);
        seen.push(...body.data.map(({ id }) => String(id)));
        const { next } = body.pagination;
        if (pages === 1) expect(body.pagination).to.include({ total_items: ROWS, total_pages: 7 });
        else expect(body.pagination).to.deep.equal({ page_size: 7, ...(next && { next }) });
        if (next === undefined) break;
        query = `?size=7&start=${encodeURIComponent(next)}`;
      }
      const { rows } = await control.pool.query<{ id: string }>(
        'SELECT id FROM audit_log WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC',
        [tenant.id],
      );
      expect(seen).to.deep.equal(rows.map(({ id }) => id));
    });

    it('is paged by number, too', async () => {
      const pages = [await list('?size=20&page=3', tenant), await list('?size=20&page=4', tenant)];
      expect(pages.map(({ body }) => body.data.length)).to.deep.equal([5, 0]);
      expect(pages[0]?.body.pagination).to.deep.equal({
        ...{ page_size: 20, page_number: 3, total_items: ROWS, total_pages: 3 },
      });
      const none = await list('?size=0', tenant);
      expect([none.body.data, none.body.pagination.total_items]).to.deep.equal([[], ROWS]);
    });

    it('is filtered by what it is about and when', async () => {
      const count = async (query: string): Promise<number | undefined> =>
        (await list(query, tenant)).body.pagination.total_items;
      expect(await count('?entity_type=proxy')).to.equal(9);
      expect(await count('?entity_type=token')).to.equal(36);
      expect(await count('?entity_type=card')).to.equal(0);
      expect(await count('?entity_id=token-1')).to.equal(18);
      expect(await count('?entity_id=token-1&entity_type=proxy')).to.equal(0);
      const { rows } = await control.pool.query<{ at: Date }>(
        `SELECT created_at AS at FROM audit_log WHERE tenant_id = $1 ORDER BY created_at LIMIT 1`,
        [tenant.id],
      );
      // Rows have microseconds; this is the millisecond after the first statement's.
      const after = new Date((rows[0]?.at.getTime() ?? 0) + 1).toISOString();
      const early = await count(`?end_date=${after}`);
      const late = await count(`?start_date=${after}`);
      expect(early).to.be.at.least(30);
      expect((early ?? 0) + (late ?? 0)).to.equal(ROWS);
      expect(await count(`?start_date=${after}&end_date=${after}`)).to.equal(0);
    });

    it('refuses what it does not understand', async () => {
      const wrong: [string, string][] = [
        ['?start_date=yesterday', 'start_date'],
        ['?end_date=2026-02-30', 'end_date'],
        ['?start=nothing', 'start'],
        [`?start=${'A'.repeat(501)}`, 'start'],
        [`?start=${Buffer.from("1.'; DROP TABLE audit_log").toString('base64url')}`, 'start'],
        ['?entity_type=proxy&entity_type=token', 'entity_type'],
        ['?entity_type=tokens', 'entity_type'],
        ['?entity_type=Token', 'entity_type'],
        ['?entity_type=constructor', 'entity_type'],
        ['?page=501&size=20', 'page'],
        ['?size=101', 'size'],
      ];
      for (const [query, member] of wrong) {
        expectProblem(await list(query, tenant), 400, member);
      }
    });

    it('names the kinds there are where one is not known', async () => {
      const { body } = await call(control.baseUrl, 'GET /logs?entity_type=tokens', {
        key: tenant.managementKey,
      });
      const { body: kinds } = await call<{ value: string }[]>(
        ...[control.baseUrl, 'GET /logs/entity-types', { key: tenant.managementKey }],
      );
      const names = kinds.map(({ value }) => value);
      expect(body.errors).to.deep.equal({ entity_type: [`Must be one of ${names.join(', ')}`] });
      for (const name of [...names, '']) {
        expect((await list(`?size=0&entity_type=${name}`, tenant)).status, name).to.equal(200);
      }
    });

    it('is the own one, whatever cursor or id comes with the request', async () => {
      const stranger = await control.addTenant('Stranger');
      const { next } = (await list('?size=1', tenant)).body.pagination;
      expect((await list(`?start=${next}`, stranger)).body.data).to.deep.equal([]);
      expect((await list('?entity_id=token-1', stranger)).body.data).to.deep.equal([]);
    });
  });
});
