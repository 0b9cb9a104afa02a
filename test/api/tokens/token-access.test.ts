import { expect } from 'chai';
import {
  type AccessRule,
  TRANSFORMS,
  type Transform,
} from '../../../shared/access/access-rules.ts';
import { call } from '../../support/http-call.ts';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2030 };
const MASKED = { ...CARD, number: 'XXXXXXXXXXXX4242' };

const rule = (
  priority: number,
  container: string,
  transform: Transform,
  ...permissions: AccessRule['permissions']
): AccessRule => ({ priority, container, transform, permissions });

describe('what a key may do with tokens', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  async function cardIn(container: string): Promise<string> {
    return (await tokens.created({ type: 'card', data: CARD, containers: [container] })).id;
  }

  describe('with plain permissions', () => {
    it('reads masked data', async () => {
      const reader = await vault.clientWith({ permissions: ['token:read'] });
      const id = await cardIn('/pci/high/');
      expect((await reader.read(id)).body.data).to.deep.equal(MASKED);
      expect((await reader.list(`?id=${id}`)).body.data[0]?.data).to.deep.equal(MASKED);
    });
    it('reads no data of a token without a mask', async () => {
      const reader = await vault.clientWith({ permissions: ['token:read'] });
      const { id } = await tokens.created({ type: 'token', data: 'no-mask-secret' });
      const { status, text } = await reader.read(id);
      expect(status).to.equal(200);
      expect(text).not.to.contain('no-mask-secret').and.not.contain('"data":');
    });
    const NEEDED: [string, (client: TokenClient, id: string) => Promise<{ status: number }>][] = [
      ['token:create', (client) => client.create({ type: 'token', data: 1 })],
      ['token:read', (client, id) => client.read(id)],
      ['token:read', (client) => client.list()],
      ['token:update', (client, id) => client.patch(id, {})],
      ['token:delete', (client, id) => client.remove(id)],
    ];
    for (const [permission, run] of NEEDED) {
      it(`needs ${permission} and nothing else for ${run.toString().slice(0, 40)}`, async () => {
        const all = ['token:create', 'token:read', 'token:update', 'token:delete', 'token:use'];
        const id = await cardIn('/a/');
        const without = await vault.clientWith({
          permissions: all.filter((one) => one !== permission),
        });
        expect((await run(without, id)).status).to.equal(403);
        expect((await run(without, 'unknown-id')).status).to.equal(403);
        const with_ = await vault.clientWith({ permissions: [permission] });
        expect((await run(with_, id)).status).to.be.lessThan(300);
      });
    }
    it('lets a public key create and update, and see neither clear data nor other operations', async () => {
      const grants = { type: 'public' as const, permissions: ['token:create', 'token:update'] };
      const browser = await vault.clientWith(grants);
      const created = await browser.created({ type: 'card', data: { ...CARD, cvc: '123' } });
      expect(created.data).to.deep.equal(MASKED);
      const patched = await browser.patch(created.id, { data: { expiration_month: 1 } });
      expect(patched.body.data).to.deep.equal({ ...MASKED, expiration_month: 1 });
      expectProblem(await browser.read(created.id), 403);
      expectProblem(await browser.list(), 403);
      expectProblem(await browser.remove(created.id), 403);
    });
    it('gives a management key nothing', async () => {
      const key = vault.control.tenant.managementKey;
      const id = await cardIn('/a/');
      for (const line of [
        'POST /tokens',
        'GET /tokens',
        `GET /tokens/${id}`,
        `DELETE /tokens/${id}`,
      ]) {
        const json = line.startsWith('POST') ? { type: 'token', data: 1 } : undefined;
        expectProblem(await call(vault.url, line, { key, json }), 403);
      }
    });
  });

  describe('with access rules', () => {
    it('sees each container as the first rule that grants the permission says', async () => {
      const desk = await vault.clientWith({
        rules: [
          rule(1, '/pci/high/', 'mask', 'token:read'),
          rule(2, '/pci/', 'reveal', 'token:read', 'token:search'),
        ],
      });
      expect((await desk.read(await cardIn('/pci/high/'))).body.data).to.deep.equal(MASKED);
      expect((await desk.read(await cardIn('/pci/high/eu/'))).body.data).to.deep.equal(MASKED);
      expect((await desk.read(await cardIn('/pci/low/'))).body.data).to.deep.equal(CARD);
      expect((await desk.read(await cardIn('/pci/'))).body.data).to.deep.equal(CARD);
      expectProblem(await desk.read(await cardIn('/general/high/')), 403);
      expectProblem(await desk.read(await cardIn('/')), 403);
    });
    it('orders rules by priority, not as they are written', async () => {
      const reader = await vault.clientWith({
        rules: [rule(9, '/', 'reveal', 'token:read'), rule(3, '/pci/', 'redact', 'token:read')],
      });
      expect((await reader.read(await cardIn('/pci/x/'))).body).not.to.have.property('data');
      expect((await reader.read(await cardIn('/other/'))).body.data).to.deep.equal(CARD);
    });
    it('skips a rule on the container that does not grant the permission', async () => {
      const reader = await vault.clientWith({
        rules: [
          rule(1, '/pci/high/', 'redact', 'token:create', 'token:delete'),
          rule(2, '/pci/', 'reveal', 'token:read'),
        ],
      });
      expect((await reader.read(await cardIn('/pci/high/'))).body.data).to.deep.equal(CARD);
    });
    it('applies plain permissions last, to all containers, masked', async () => {
      const reader = await vault.clientWith({
        rules: [rule(1, '/pci/', 'reveal', 'token:read')],
        permissions: ['token:read'],
      });
      expect((await reader.read(await cardIn('/pci/'))).body.data).to.deep.equal(CARD);
      expect((await reader.read(await cardIn('/bank/'))).body.data).to.deep.equal(MASKED);
    });
    it('covers containers on the boundaries of their segments alone', async () => {
      const reader = await vault.clientWith({
        rules: [rule(1, '/PCI/', 'reveal', 'token:read'), rule(2, '/a_b/', 'reveal', 'token:read')],
      });
      expect((await reader.read(await cardIn('/pci/'))).status).to.equal(200);
      for (const container of ['/pcix/', '/pci-x/', '/pc/', '/x/pci/', '/axb/', '/a_bc/']) {
        expectProblem(await reader.read(await cardIn(container)), 403);
      }
    });
    it('answers 404, not 403, for what does not exist', async () => {
      const reader = await vault.clientWith({ rules: [rule(1, '/pci/', 'mask', 'token:read')] });
      expectProblem(await reader.read('does-not-exist'), 404);
      expectProblem(await reader.read(await cardIn('/elsewhere/')), 403);
    });

    for (const transform of TRANSFORMS) {
      it(`never shows clear data to a writer under ${transform}`, async () => {
        const writer = await vault.clientWith({
          rules: [rule(1, '/', transform, 'token:create', 'token:update')],
        });
        const expected = transform === 'redact' ? undefined : MASKED;
        const created = await writer.created({ type: 'card', data: { ...CARD, cvc: '123' } });
        expect(created.data).to.deep.equal(expected);
        expect('data' in created).to.equal(transform !== 'redact');
        const patched = await writer.patch(created.id, { metadata: { a: 'b' } });
        expect(patched.body.data).to.deep.equal(expected);
        expect(patched.text).not.to.contain(NUMBER);
      });
      it(`lists and reads data under ${transform} alike`, async () => {
        const reader = await vault.clientWith({ rules: [rule(1, '/', transform, 'token:read')] });
        const id = await cardIn(`/t/${transform}/`);
        const read = await reader.read(id);
        const listed = await reader.list(`?id=${id}`);
        expect(listed.body.data).to.deep.equal([read.body]);
        const shown = { redact: undefined, mask: MASKED, reveal: CARD }[transform];
        expect(read.body.data).to.deep.equal(shown);
        expect(read.text.includes(NUMBER)).to.equal(transform === 'reveal');
      });
    }

    it('writes and deletes in its own containers alone', async () => {
      const client = await vault.clientWith({
        rules: [rule(1, '/own/', 'mask', 'token:create', 'token:update', 'token:delete')],
      });
      const own = await client.created({ type: 'token', data: 1, containers: ['/own/deep/'] });
      expectProblem(await client.create({ type: 'token', data: 1, containers: ['/ownx/'] }), 403);
      expectProblem(await client.create({ type: 'token', data: 1 }), 403);
      const foreign = await cardIn('/foreign/');
      expectProblem(await client.patch(foreign, { metadata: { a: 'b' } }), 403);
      expectProblem(await client.remove(foreign), 403);
      expect((await tokens.read(foreign)).body).not.to.have.property('metadata');
      expect((await client.remove(own.id)).status).to.equal(204);
    });
    it('moves a token only between containers it may both write', async () => {
      const mover = await vault.clientWith({
        rules: [rule(1, '/from/', 'mask', 'token:update'), rule(2, '/to/', 'mask', 'token:update')],
      });
      const id = await cardIn('/from/');
      const moved = await mover.patch(id, { containers: ['/To/Sub/'] });
      expect(moved.body.containers).to.deep.equal(['/to/sub/']);
      const before = (await tokens.read(id)).body;
      const patch = { containers: ['/elsewhere/'], metadata: { moved: 'yes' } };
      expectProblem(await mover.patch(id, patch), 403);
      expectProblem(await mover.patch(id, { containers: null }), 403);
      expect((await tokens.read(id)).body).to.deep.equal(before);
      const outside = await cardIn('/elsewhere/');
      expectProblem(await mover.patch(outside, { containers: ['/to/'] }), 403);
      expect((await tokens.read(outside)).body.containers).to.deep.equal(['/elsewhere/']);
    });
    it('judges a moved token by where it lies now', async () => {
      const reader = await vault.clientWith({ rules: [rule(1, '/open/', 'reveal', 'token:read')] });
      const id = await cardIn('/open/');
      expect((await reader.read(id)).status).to.equal(200);
      await tokens.patch(id, { containers: ['/closed/'] });
      expectProblem(await reader.read(id), 403);
      expect((await reader.list(`?id=${id}`)).body.pagination.total_items).to.equal(0);
    });
  });

  // A change that did not concern the application moved its version on while a creation was under
  // way: the creation then tried new ids without end.
  it('goes on while the configuration changes', async () => {
    for (let round = 0; round < 20; round += 1) {
      const change = vault.keyWith({ permissions: ['token:read'] });
      const creations = Array.from({ length: 8 }, (_, i) =>
        tokens.create({ id: `round-${round}-${i}`, type: 'token', data: i }),
      );
      for (const { status } of await Promise.all(creations)) expect(status).to.equal(201);
      await change;
    }
  });

  describe('by its containers', () => {
    const REFUSED = [
      ...['pci/high', '/pci/high', 'pci/', '/pci//high/', '//', '/pci/../bank/', '', ' /pci/'],
      ...['/p%i/', '/p*/', '/pci/*', '/p i/', '/p.i/', '/pci/\u0000/', '/ключ/', '/a\n/', '/p\\i/'],
      ...[`/${'s'.repeat(300)}/`, `/${'s/'.repeat(1_000)}`, `/${'s/'.repeat(21)}`],
    ];
    for (const container of REFUSED) {
      it(`refuses ${JSON.stringify(container).slice(0, 20)}`, async () => {
        const request = { type: 'token', data: 1, containers: [container] };
        expectProblem(await tokens.create(request), 400, 'containers');
        const { id } = await tokens.created({ type: 'token', data: 1 });
        expectProblem(await tokens.patch(id, { containers: [container] }), 400, 'containers');
      });
    }
    it('refuses more than one', async () => {
      for (const containers of [['/a/', '/b/'], Array.from({ length: 101 }, (_, i) => `/c${i}/`)]) {
        const answer = await tokens.create({ type: 'token', data: 1, containers });
        expectProblem(answer, 400, 'containers');
      }
    });
    it('takes one path in two spellings for one container', async () => {
      const request = { type: 'token', data: 1, containers: ['/A/', '/a/'] };
      expect((await tokens.created(request)).containers).to.deep.equal(['/a/']);
    });
    it('accepts the root and 20 segments', async () => {
      for (const container of ['/', `/${'s/'.repeat(20)}`, '/0/-/_/']) {
        const request = { type: 'token', data: 1, containers: [container] };
        expect((await tokens.created(request)).containers).to.deep.equal([container]);
      }
    });
  });
});
