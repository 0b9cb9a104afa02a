/**
 * A proxy's key and configuration are shown to those who manage proxies. They are stored sealed, and
 * stand in no log, no metric and no error, whatever goes wrong.
 */
import { expect } from 'chai';
import pg from 'pg';
import { generateApiKey } from '../../shared/api-keys.ts';
import { randomDigits } from '../support/card-numbers.ts';
import { type Call, call, type JsonObject } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';
import { createScanner, needlesOf } from './leak-scan.ts';

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
/** Clear text on purpose: finding it proves that a place was really searched. */
const MARKER = 'a-proxy-name-in-clear';
const SECRETS = ['created', 'put', 'patched', 'refused', 'another'].map(
  (name) => [name, `sk-${name}-${randomDigits(20)}`] as const,
);
const [CREATED, PUT, PATCHED, REFUSED, ANOTHER] = SECRETS.map(([, value]) => value) as [
  ...[string, string, string, string, string],
];

describe('the key and the configuration of a proxy', () => {
  let sallyport: TestSallyport;
  let proxyId: string;
  let proxyKey: string;
  let admin: pg.Pool;
  let scan: ReturnType<typeof createScanner>;
  const errors: string[] = [];

  before(async () => {
    sallyport = await startSallyport();
    admin = new pg.Pool({ connectionString: sallyport.database.adminConnectionString, max: 1 });
    const bare = { name: MARKER, destination_url: 'https://destination.example' };
    const configured = (value: string) => ({ configuration: { KEY: value } });
    const made = await manage('POST /proxies', { json: { ...bare, ...configured(CREATED) } });
    proxyId = String(made.body.id);
    proxyKey = String(made.body.key);
    scan = createScanner(needlesOf([...SECRETS, ['key', proxyKey]]));
    await manage(`PUT /proxies/${proxyId}`, { json: { ...bare, ...configured(PUT) } });
    await manage(`PATCH /proxies/${proxyId}`, patch(configured(PATCHED)));

    const url = `https://${REFUSED}@destination.example/${REFUSED}`;
    await refused('POST /proxies', { json: { ...bare, destination_url: url } });
    await refused('POST /proxies', { json: { ...bare, configuration: { [`${REFUSED}!`]: 'x' } } });
    await refused('POST /proxies', { json: { ...bare, configuration: { KEY: [REFUSED] } } });
    const broken = { request_transform: { code: '(' } };
    await refused('POST /proxies', { json: { ...bare, ...configured(REFUSED), ...broken } });
    await refused(`PATCH /proxies/${proxyId}`, patch({ configuration: REFUSED }));
    await refused(`PATCH /proxies/${proxyId}`, patch({ leak_tripwire: proxyKey }));
    await refused(`GET /proxies?name=${proxyKey}&name=${REFUSED}`);
    await breakStorage({ json: { ...bare, ...configured(ANOTHER) } });
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
    await admin.query('ALTER TABLE proxies ADD CONSTRAINT broken CHECK (id IS NULL) NOT VALID');
    const failed = await manage('POST /proxies', request);
    expect(failed.status).to.equal(500);
    await admin.query('ALTER TABLE proxies DROP CONSTRAINT broken');
    errors.push(failed.text);
  }

  it('are shown to management keys that may read proxies, and to nobody else', async () => {
    const { body } = await manage(`GET /proxies/${proxyId}`);
    expect(body).to.deep.include({ key: proxyKey, configuration: { KEY: PATCHED } });
    const { body: blind } = await manage('POST /applications', {
      json: { name: 'Blind', type: 'management', permissions: ['proxy:delete'] },
    });
    for (const [key, status] of [
      [String(blind.key), 403],
      [generateApiKey(), 401],
      // It opens the proxy, not the management of it.
      [proxyKey, 401],
    ] as const) {
      for (const path of ['/proxies', `/proxies/${proxyId}`]) {
        const answer = await call(sallyport.baseUrl, `GET ${path}`, { key });
        expect(answer.status).to.equal(status);
        expect(scan(Buffer.from(answer.text))).to.deep.equal([]);
      }
    }
  });

  it('stand in no error', () => {
    expect(errors).to.have.lengthOf(8);
    expect(scan(Buffer.from(errors.join('\n')))).to.deep.equal([]);
  });

  it('stand in no line that the planes wrote', () => {
    const output = sallyport.output();
    expect(output).to.contain('/proxies/{id}');
    expect(scan(Buffer.from(output))).to.deep.equal([]);
  });

  it('stand in no row, whatever the table', async () => {
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
