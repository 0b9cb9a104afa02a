import { expect } from 'chai';
import { isWellFormedApiKey } from '../../../shared/api-keys.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import type { JsonObject } from '../../support/http-call.ts';
import {
  type ApplicationClient,
  applicationClient,
  CHECKOUT,
  ISO_UTC,
  rule,
} from './application-client.ts';

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('POST /applications', () => {
  let server: TestControlPlane;
  let as: ApplicationClient['as'];
  let manage: ApplicationClient['manage'];
  let create: ApplicationClient['create'];

  before(async () => {
    server = await startTestControlPlane();
    ({ as, manage, create } = applicationClient(server));
  });
  after(() => server.stop());

  it('answers the application with a key that works', async () => {
    const created = await create({ rules: [] });
    expect(created).to.have.all.keys(
      ...['id', 'tenant_id', 'name', 'key', 'type', 'permissions', 'rules'],
      ...['created_by', 'created_at'],
    );
    expect(created.id).to.match(UUID_V4);
    expect(created.tenant_id).to.equal(server.tenant.id);
    expect(created.created_by).to.equal(server.tenant.managementApplicationId);
    expect(created.created_at).to.match(ISO_UTC);
    expect(isWellFormedApiKey(created.key)).to.equal(true);
    const self = await as(created.key, 'GET /applications/key');
    expect(self.status).to.equal(200);
    expect(self.body.id).to.equal(created.id);
  });

  it('keeps only a hash of the key', async () => {
    const { key } = await create();
    const { rows } = await server.pool.query<{ text: string }>(
      `SELECT a::text || coalesce((SELECT string_agg(k::text, '') FROM application_keys k), '')
         || coalesce((SELECT string_agg(d::text, '') FROM key_directory d), '') AS text
       FROM applications a`,
    );
    const stored = rows.map((row) => row.text).join('');
    const secret = key.slice('key_'.length);
    expect(stored).not.to.contain(secret);
    expect(stored).not.to.contain(Buffer.from(secret).toString('hex'));
  });

  it('normalises access rules', async () => {
    const { rules } = await create({
      permissions: null,
      rules: [
        {
          description: null,
          priority: 2,
          container: '/PCI/High/',
          transform: 'mask',
          permissions: ['token:read'],
          unknown: 1,
        },
      ],
    });
    expect(rules).to.deep.equal([
      { priority: 2, container: '/pci/high/', transform: 'mask', permissions: ['token:read'] },
    ]);
  });

  it('takes nothing from the body but the documented members', async () => {
    const own = '00000000-0000-4000-8000-000000000000';
    const created = await create({
      id: own,
      key: 'key_chosen',
      tenant_id: own,
      created_by: own,
      created_at: '2001-01-01T00:00:00Z',
    });
    expect(created.id).not.to.equal(own);
    expect(created.key).not.to.equal('key_chosen');
    expect(created.tenant_id).to.equal(server.tenant.id);
    expect(created.created_by).to.equal(server.tenant.managementApplicationId);
    expect(new Date(created.created_at).getUTCFullYear()).to.be.greaterThan(2001);
  });

  it('answers expires_at in UTC and refuses the past', async () => {
    const { expires_at } = await create({ expires_at: '2099-01-01T00:00:00+02:00' });
    expect(expires_at).to.equal('2098-12-31T22:00:00.000Z');
    for (const past of ['2020-01-01T00:00:00Z', new Date().toISOString()]) {
      const refused = await manage<JsonObject>('POST /applications', {
        ...CHECKOUT,
        expires_at: past,
      });
      expect(refused.status).to.equal(400);
      expect(refused.body.errors).to.have.all.keys('expires_at');
    }
  });

  const refused: [string, JsonObject, string][] = [
    ['a missing name', { name: undefined }, 'name'],
    ['a name that is null', { name: null }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['a name with NUL, which Postgres cannot hold', { name: 'a\0b' }, 'name'],
    ['a name that is a number', { name: 7 }, 'name'],
    ['an unknown type', { type: 'expiring' }, 'type'],
    ['an inherited name as type', { type: 'constructor' }, 'type'],
    ['no permission at all', { permissions: [] }, 'permissions'],
    ['an unknown permission', { permissions: ['token:steal'] }, 'permissions'],
    ['a permission the type may not hold', { permissions: ['tenant:delete'] }, 'permissions'],
    ['permissions that are text', { permissions: 'token:read' }, 'permissions'],
    [
      'an endless list of permissions',
      { permissions: Array(51).fill('token:read') },
      'permissions',
    ],
    ['a rule without container', { rules: [rule({ container: undefined })] }, 'rules.0.container'],
    ['a bad container', { rules: [rule({ container: '/a//b/' })] }, 'rules.0.container'],
    ['an unknown transform', { rules: [rule({ transform: 'clear' })] }, 'rules.0.transform'],
    ['priority 0', { rules: [rule({ priority: 0 })] }, 'rules.0.priority'],
    ['a priority twice', { rules: [rule(), rule()] }, 'rules.1.priority'],
    ['conditions', { rules: [rule({ conditions: [{}] })] }, 'rules.0.conditions'],
    [
      'a management permission in a rule',
      { rules: [rule({ permissions: ['tenant:read'] })] },
      'rules.0.permissions',
    ],
    ['an expiry that is no date', { expires_at: 'tomorrow' }, 'expires_at'],
    ['an expiry of a megabyte', { expires_at: '1'.repeat(1_000_000) }, 'expires_at'],
  ];
  for (const [what, over, path] of refused) {
    it(`refuses ${what}`, async () => {
      const json = { ...CHECKOUT, ...over };
      const { status, body } = await manage<JsonObject>('POST /applications', json);
      expect(status).to.equal(400);
      expect(body.title).to.equal('One or more validation errors occurred.');
      expect(body.errors).to.have.all.keys(path);
    });
  }

  it('refuses rules on a management application', async () => {
    const json = { name: 'x', type: 'management', rules: [rule()] };
    const { status, body } = await manage<JsonObject>('POST /applications', json);
    expect(status).to.equal(400);
    expect(body.errors).to.have.property('rules');
  });

  it('names every wrong member and repeats none of their values', async () => {
    const json = { name: 4242424242424242, type: 'sneaky-value', permissions: { a: 'b' } };
    const { body, text } = await manage<JsonObject>('POST /applications', json);
    expect(body.errors).to.have.all.keys('name', 'type', 'permissions');
    expect(body.errors)
      .to.have.property('name')
      .that.deep.equals(['Deserialization error, invalid input.', 'Must be a text']);
    expect(text).not.to.match(/4242|sneaky/);
  });
});
