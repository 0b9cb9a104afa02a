/**
 * Configurations of reactors are keys of other services: they are stored sealed and shown to those who
 * manage reactors, and stand in no log, no metric and no error, whatever goes wrong.
 */
import { expect } from 'chai';
import pg from 'pg';
import { generateApiKey } from '../../shared/api-keys.ts';
import { randomDigits } from '../support/card-numbers.ts';
import { type Call, call, type JsonObject } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';
import { createScanner, needlesOf } from './leak-scan.ts';

const CODE = 'module.exports = function (req) { return { raw: 1 }; };';
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
/** Clear text on purpose: finding it proves that a place was really searched. */
const MARKER = 'a-reactor-name-in-clear';
const SECRETS = ['created', 'put', 'patched', 'refused', 'another'].map(
  (name) => [name, `sk-${name}-${randomDigits(20)}`] as const,
);
const [CREATED, PUT, PATCHED, REFUSED, ANOTHER] = SECRETS.map(([, value]) => value) as [
  ...[string, string, string, string, string],
];

describe('the configuration of a reactor', () => {
  let sallyport: TestSallyport;
  let reactorId: string;
  let admin: pg.Pool;
  const errors: string[] = [];

  before(async () => {
    sallyport = await startSallyport();
    admin = new pg.Pool({ connectionString: sallyport.database.adminConnectionString, max: 1 });
    const declared = { configuration: [{ name: 'COUNT', type: 'number' }] };
    const formula = await manage('POST /reactor-formulas', {
      json: { name: 'F', type: 'private', code: CODE, ...declared },
    });
    const own = { name: MARKER, code: CODE };
    const configured = (value: string) => ({ configuration: { KEY: value } });
    const made = await manage('POST /reactors', { json: { ...own, ...configured(CREATED) } });
    reactorId = String(made.body.id);
    await manage(`PUT /reactors/${reactorId}`, { json: { ...own, ...configured(PUT) } });
    await manage(`PATCH /reactors/${reactorId}`, patch(configured(PATCHED)));

    const formed = { name: 'R', formula: { id: formula.body.id } };
    await refused('POST /reactors', { json: { ...formed, configuration: { COUNT: REFUSED } } });
    await refused('POST /reactors', { json: { ...formed, ...configured(REFUSED) } });
    await refused('POST /reactors', { json: { ...own, configuration: { [`${REFUSED}!`]: 'x' } } });
    await refused('POST /reactors', { json: { ...own, configuration: { KEY: [REFUSED] } } });
    await refused('POST /reactors', { json: { ...own, ...configured(`${REFUSED}\0`) } });
    await refused('POST /reactors', { json: { ...own, ...configured(REFUSED), code: '(' } });
    await refused(`PATCH /reactors/${reactorId}`, patch({ configuration: REFUSED }));
    await refused(`GET /reactors?name=${REFUSED}&name=${REFUSED}`);
    await breakStorage({ json: { ...own, ...configured(ANOTHER) } });
  });
  after(async () => {
    await admin.end();
    await sallyport.stop();
  });

  const manage = (line: string, rest: Call = {}) =>
    call<JsonObject>(sallyport.baseUrl, line, { key: sallyport.tenant.managementKey, ...rest });
  const patch = (json: unknown): Call => ({ headers: MERGE_PATCH, json });

  async function refused(line: string, rest: Call = {}): Promise<void> {
    const { status, text } = await manage(line, rest);
    expect(status, line).to.equal(400);
    errors.push(text);
  }

  /** The statement with the values in it fails, in a way that the API does not know. */
  async function breakStorage(request: Call): Promise<void> {
    await admin.query('ALTER TABLE reactors ADD CONSTRAINT broken CHECK (id IS NULL) NOT VALID');
    const failed = await manage('POST /reactors', request);
    expect(failed.status).to.equal(500);
    await admin.query('ALTER TABLE reactors DROP CONSTRAINT broken');
    errors.push(failed.text);
  }

  it('is shown to management keys that may read reactors, and to nobody else', async () => {
    const { body } = await manage(`GET /reactors/${reactorId}`);
    expect(body.configuration).to.deep.equal({ KEY: PATCHED });
    const { body: blind } = await manage('POST /applications', {
      json: { name: 'Blind', type: 'management', permissions: ['reactor:update'] },
    });
    for (const [key, status] of [
      [String(blind.key), 403],
      [generateApiKey(), 401],
    ] as const) {
      for (const path of ['/reactors', `/reactors/${reactorId}`]) {
        const answer = await call(sallyport.baseUrl, `GET ${path}`, { key });
        expect(answer.status).to.equal(status);
        expect(answer.text).not.to.contain(PATCHED);
      }
    }
  });

  const scan = createScanner(needlesOf(SECRETS));

  it('stands in no error', () => {
    expect(errors).to.have.lengthOf(9);
    expect(scan(Buffer.from(errors.join('\n')))).to.deep.equal([]);
  });

  it('stands in no line that the planes wrote', () => {
    const output = sallyport.output();
    expect(output).to.contain('/reactors/{id}');
    expect(scan(Buffer.from(output))).to.deep.equal([]);
  });

  it('stands in no row, whatever the table', async () => {
    const tables = await admin.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    );
    const texts: string[] = [];
    for (const { name } of tables.rows) {
      const { rows } = await admin.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t`);
      texts.push(...rows.map(({ text }) => text));
    }
    expect(texts.join('\n')).to.contain(MARKER);
    expect(scan(Buffer.from(texts.join('\n')))).to.deep.equal([]);
  });
});
