/** `debug_until`: for how long the console of a reactor's runs may be shown. */
import { expect } from 'chai';
import type { Reactor } from '../../../shared/api/reactors.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = function (req) { return { raw: req.args }; };';
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const MINUTE_MS = 60_000;

describe('debug_until of a reactor', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  function manage<T = Reactor>(line: string, json?: unknown): Promise<Answer<T>> {
    const key = server.tenant.managementKey;
    const headers: Record<string, string> = line.startsWith('PATCH') ? MERGE_PATCH : {};
    return call<T>(server.baseUrl, line, { key, headers, ...(json === undefined ? {} : { json }) });
  }
  const create = async () => (await manage('POST /reactors', { name: 'R', code: CODE })).body;
  const put = <T = Reactor>({ id }: Reactor, json: unknown) =>
    manage<T>(`PUT /reactors/${id}`, json);
  const patch = ({ id }: Reactor, json: unknown) =>
    manage<JsonObject>(`PATCH /reactors/${id}`, json);
  const get = async ({ id }: Reactor) => (await manage(`GET /reactors/${id}`)).body;
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * MINUTE_MS).toISOString();

  it('is shown while it lies ahead, and goes by null', async () => {
    const made = await create();
    const until = inMinutes(50);
    expect((await patch(made, { debug_until: until })).status).to.equal(204);
    expect((await get(made)).debug_until).to.equal(until);
    await patch(made, { name: 'x' });
    expect((await get(made)).debug_until).to.equal(until);
    await patch(made, { debug_until: null });
    expect(await get(made)).not.to.have.property('debug_until');
  });

  it('is set by PUT, and gone when PUT does not say it', async () => {
    const made = await create();
    const debug_until = inMinutes(5).replace('Z', '+00:00');
    const set = await put(made, { name: 'x', debug_until });
    expect(set.body.debug_until).to.equal(new Date(debug_until).toISOString());
    expect((await put(made, { name: 'x' })).body).not.to.have.property('debug_until');
  });

  it('is not shown once it has passed', async () => {
    const made = await create();
    await server.pool.query(
      `UPDATE reactors SET debug_until = clock_now() - interval '1 ms' WHERE id = $1`,
      [made.id],
    );
    expect(await get(made)).to.deep.equal(made);
  });

  const refused: [string, unknown][] = [
    ['more than an hour', () => inMinutes(61)],
    ['the past', () => inMinutes(-1)],
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['a day', new Date().toISOString().slice(0, 10)],
    ['no offset', '2030-01-01T00:00:00'],
    ['a number', 1_900_000_000],
    ['true', true],
    ['a megabyte', '1'.repeat(1_000_000)],
  ];
  for (const [what, given] of refused) {
    it(`refuses ${what}`, async () => {
      const made = await create();
      const debug_until = typeof given === 'function' ? given() : given;
      for (const answer of [
        await patch(made, { debug_until }),
        await put<JsonObject>(made, { name: 'R', debug_until }),
      ]) {
        expect(answer.status).to.equal(400);
        expect(answer.body.errors).to.have.all.keys('debug_until');
      }
    });
  }
});
