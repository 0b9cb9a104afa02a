/**
 * Hundreds of card numbers, account numbers and identity numbers that exist nowhere else go through
 * every endpoint, in the right members and in all the wrong ones. Afterwards everything that was
 * written anywhere is searched for them.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { NOTICE_CHANNEL } from '../../shared/config-entries/config-change.ts';
import { type Installation, install } from '../faults/installation.ts';
import { randomCardNumber, randomDigits } from '../support/card-numbers.ts';
import { type Call, call, type JsonObject } from '../support/http-call.ts';
import { inParallel } from '../support/in-parallel.ts';
import { startRedisOrSkip, type TestRedis } from '../support/redis.ts';
import { misuse } from './canary-misuse.ts';
import { createScanner, needlesOf, type Secret } from './leak-scan.ts';
import { createApplication, REVEAL_ALL, type TestApplication } from './planes.ts';

const CARDS = 200;
const OTHERS = 40;
/** Clear text on purpose: finding it proves that a place was really searched. */
const MARKER = 'a-marker-that-is-stored-in-clear';
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

const numbered = (what: string, count: number, make: () => string): Secret[] =>
  Array.from({ length: count }, (_, index) => [`${what} ${index}`, make()]);

const CARD_NUMBERS = numbered('card number', CARDS, randomCardNumber);
const ACCOUNTS = numbered('account number', OTHERS, () => randomDigits(17));
const IDENTITIES = numbered('identity number', OTHERS, () => randomDigits(9));
const CODES = numbered('cvc', OTHERS, () => randomDigits(4));

describe('what was never meant to be written', function () {
  this.timeout(180_000);
  let redis: TestRedis;
  let listener: Redis | undefined;
  let installation: Installation;
  let url: string;
  let revealing: TestApplication;
  let masking: TestApplication;
  let reacting: TestApplication;
  let reactor: string;
  const notices: Buffer[] = [];
  const redisValues: Buffer[] = [];
  let dumped = '';
  let metrics = '';

  before(async function () {
    redis = await startRedisOrSkip(this);
    installation = await install({ REDIS_URL: redis.url, LOG_LEVEL: 'trace' });
    url = installation.baseUrl();
    listener = new Redis(redis.url);
    await listener.subscribe(NOTICE_CHANNEL);
    listener.on('messageBuffer', (_channel, message: Buffer) => notices.push(message));
    const { managementKey } = installation;
    revealing = await createApplication(url, { managementKey });
    masking = await createApplication(url, { managementKey }, { permissions: ['token:read'] });
    const everything = ['token:create', 'token:read', 'token:use', 'token:search'];
    const rules = [{ ...REVEAL_ALL[0], permissions: everything }];
    reacting = await createApplication(url, { managementKey }, { rules });
    reactor = await createReactor();

    await inParallel(CARD_NUMBERS, useCard);
    await inParallel(CARD_NUMBERS.slice(0, OTHERS), react);
    await inParallel(ACCOUNTS, ([, number]) => useAccount(number));
    await inParallel(IDENTITIES, ([, number]) => useIdentity(number));
    const misused = { url, key: revealing.key, managementKey };
    await inParallel(CARD_NUMBERS.slice(0, OTHERS), ([, number]) => misuse(number, misused));
    await breakThings();
    await collect();
  });
  after(async () => {
    listener?.disconnect();
    await installation?.remove();
    await redis?.stop();
  });

  const as = ({ key }: { key: string }, line: string, rest: Call = {}) =>
    call<JsonObject>(url, line, { key, ...rest });
  const patch = (json: unknown): Call => ({ headers: MERGE_PATCH, body: JSON.stringify(json) });

  async function useCard([, number]: Secret, index: number): Promise<void> {
    const cvc = CODES[index % OTHERS]?.[1];
    const metadata = { [MARKER]: String(index) };
    const bodies: JsonObject[] = [
      { type: 'card', data: { number, cvc, expiration_month: 1, expiration_year: 2030 } },
      { type: 'card_number', data: number, id: '{{ data | alias_card: false, true }}' },
      {
        type: 'token',
        data: { deep: [{ number }] },
        search_indexes: ['{{ data.deep[0].number }}'],
      },
      {
        type: 'card',
        data: { number },
        deduplicate_token: true,
        mask: '{{ data.number | last4 }}',
      },
    ];
    for (const body of bodies) {
      const json = { ...body, metadata };
      const created = await as(revealing, 'POST /tokens', { json });
      expect([created.status, created.text.includes(number)]).to.deep.equal([201, false]);
      const id = encodeURIComponent(String(created.body.id));
      const clear = await as(revealing, `GET /tokens/${id}`);
      expect([clear.status, clear.text.includes(number)]).to.deep.equal([200, true]);
      const masked = await as(masking, `GET /tokens/${id}`);
      expect([masked.status, masked.text.includes(number)]).to.deep.equal([200, false]);
      if (index % 4 === 1)
        await as(revealing, `PATCH /tokens/${id}`, patch({ metadata: { a: 'b' } }));
      if (index % 4 === 2) await as(revealing, `DELETE /tokens/${id}`);
    }
    await as(revealing, `GET /tokens?metadata.${MARKER}=${index}&size=5`);
    const json = { type: 'card', data: { number, cvc }, id: `patched-${index}` };
    await as(revealing, 'POST /tokens', { json });
    const other = CARD_NUMBERS[(index + 1) % CARDS]?.[1];
    const changed = patch({ data: { number: other, cvc: '9999' }, deduplicate_token: false });
    expect((await as(revealing, `PATCH /tokens/patched-${index}`, changed)).status).to.equal(200);
  }

  /** Code that says what it gets wherever code can say something. */
  async function createReactor(): Promise<string> {
    const code = `module.exports = async (req) => {
      console.log(req.args, JSON.stringify(req.args));
      const { number, end } = req.args;
      if (end === 'throw') throw new Error(number);
      if (end === 'name') { const e = new Error(number); e.name = number; throw e }
      if (end === 'crash') { for (const all = [];;) all.push(new Array(1e5).fill(number + all.length)) }
      await fetch('https://' + number + '.invalid/' + number).catch((error) => console.log(error));
      return { raw: req.args, tokenize: { number, card: { type: 'card', data: { number } } } };
    }`;
    const json = { name: 'Reactor', code };
    const key = installation.managementKey;
    const made = await call(url, 'POST /reactors', { key, json });
    expect(made.status, made.text).to.equal(201);
    const debug_until = new Date(Date.now() + 600_000).toISOString();
    await as({ key }, `PATCH /reactors/${made.body.id}`, patch({ debug_until }));
    return String(made.body.id);
  }

  async function react([, number]: Secret, index: number): Promise<void> {
    const line = `POST /reactors/${reactor}/react`;
    const id = `reacted-${index}`;
    const json = { held: { id, type: 'card', data: { number } }, number };
    expect((await as(reacting, 'POST /tokenize', { json })).status).to.equal(200);
    const expression = `{{ ${id} | json: '$.number' }}`;
    const clear = await as(reacting, 'POST /detokenize', { json: { a: [expression] } });
    expect([clear.status, clear.text.includes(number)]).to.deep.equal([200, true]);
    const query = `data:${number} OR metadata.x:${number}`;
    expect((await as(reacting, 'POST /tokens/search', { json: { query } })).status).to.equal(200);
    const ran = await as(reacting, line, { json: { args: { number: expression } } });
    expect([ran.status, ran.text.includes(number)], ran.text.slice(0, 300)).to.deep.equal([
      200,
      true,
    ]);
    expect(JSON.stringify(ran.body._debug)).not.to.contain(number);
    for (const end of index === 0 ? ['throw', 'name', 'crash'] : ['throw', 'name']) {
      const failed = await as(reacting, line, { json: { args: { number: expression, end } } });
      expect(failed.status).to.equal(500);
    }
    const wrong: [string, JsonObject][] = [
      [line, { args: { number: `{{ ${number} }}` } }],
      [line, { args: { number: `{{ ${id} | ${number} }}` } }],
      ['POST /detokenize', { a: `{{ ${number} ` }],
      ['POST /tokens/search', { query: `${number}:(` }],
      ['POST /tokenize', { card: { type: 'card', data: { number: `${number}1234` } } }],
    ];
    for (const [wrongLine, body] of wrong) {
      expect((await as(reacting, wrongLine, { json: body })).status).to.equal(400);
    }
  }

  async function useAccount(number: string): Promise<void> {
    for (const body of [
      { type: 'bank', data: { routing_number: '021000021', account_number: number } },
      { type: 'us_bank_account_number', data: number },
    ]) {
      const { status, text } = await as(revealing, 'POST /tokens', { json: body });
      expect([status, text.includes(number)]).to.deep.equal([201, false]);
    }
  }

  async function useIdentity(number: string): Promise<void> {
    const dashed = number.replace(/^(...)(..)/, '$1-$2-');
    for (const data of [number, dashed]) {
      const json = { type: 'social_security_number', data };
      const { status, text } = await as(revealing, 'POST /tokens', { json });
      expect([status, text.includes(data)]).to.deep.equal([201, false]);
    }
  }

  /** Errors of our own and of the database, with numbers under way: both are logged. */
  async function breakThings(): Promise<void> {
    const client = new pg.Client({ connectionString: await installation.adminConnectionString() });
    await client.connect();
    const number = CARD_NUMBERS[0]?.[1];
    const json = { id: 'broken', type: 'card', data: { number } };
    await as(revealing, 'POST /tokens', { json });
    await client.query(`UPDATE tokens SET sealed = sealed || '\\x00' WHERE id = 'broken'`);
    expect((await as(revealing, 'GET /tokens/broken')).status).to.equal(500);
    await client.query('BEGIN; LOCK TABLE token_terms');
    const locked = { type: 'card', data: { number }, metadata: { [MARKER]: 'locked' } };
    expect((await as(revealing, 'POST /tokens', { json: locked })).status).to.equal(503);
    await client.query('ROLLBACK');
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sallyport'`,
    );
    await inParallel(CARD_NUMBERS.slice(0, OTHERS), async ([, pan]) => {
      await as(revealing, 'POST /tokens', { json: { type: 'card', data: { number: pan } } });
    });
    await client.end();
  }

  async function collect(): Promise<void> {
    metrics = await (await fetch(`${installation.metricsUrl()}/metrics`)).text();
    const client = new pg.Client({ connectionString: await installation.adminConnectionString() });
    await client.connect();
    await client.query('CHECKPOINT');
    const tables = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      dumped += rows.map(({ row }) => row).join('\n');
    }
    await client.end();
    const reader = new Redis(redis.url);
    for (const name of await reader.keys('*')) {
      redisValues.push(Buffer.from(name), (await reader.getBuffer(name)) ?? Buffer.alloc(0));
    }
    reader.disconnect();
  }

  /** All of a place that was written to. */
  const PLACES: Record<string, () => Promise<Buffer[]>> = {
    'the logs': async () => [Buffer.from(installation.output())],
    'the metrics': async () => [Buffer.from(metrics)],
    'the tables': async () => [Buffer.from(dumped)],
    'the data directory': () =>
      Promise.all(
        globSync('**/*', { cwd: installation.dataDir, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => readFile(join(entry.parentPath, entry.name))),
      ),
    Redis: async () => [...redisValues, ...notices],
    'the command lines': async () =>
      Promise.all((await installation.pids()).map((pid) => readFile(`/proc/${pid}/cmdline`))),
  };

  const PROOFS: Record<string, string> = {
    'the logs': '"level":"debug"',
    'the metrics': 'sallyport_reactions_total{outcome="ok"}',
    'the tables': MARKER,
    'the data directory': MARKER,
    Redis: 'sallyport:{',
    'the command lines': 'data-plane/main.ts',
  };

  for (const [place, read] of Object.entries(PLACES)) {
    it(`is not in ${place}`, async () => {
      const secrets: Secret[] = [
        ...CARD_NUMBERS,
        ...ACCOUNTS,
        ...IDENTITIES,
        ...IDENTITIES.map(
          ([name, value]): Secret => [`${name} with dashes`, value.replace(/^(...)(..)/, '$1-$2-')],
        ),
        ...CODES.map(([name, value]): Secret => [`${name} in JSON`, `"cvc":"${value}"`]),
        ['the management key', installation.managementKey],
        ['the key of an application', revealing.key],
        ['the key of another application', masking.key],
        ['the key of an application that reacts', reacting.key],
      ];
      const hashes = needlesOf(CODES).filter(({ name }) => / (md5|sha)\d+$/.test(name));
      const scan = createScanner([...needlesOf(secrets), ...hashes]);
      const contents = await read();
      const proof = Buffer.from(PROOFS[place] ?? '');
      expect(contents.some((content) => content.includes(proof))).to.equal(true);
      expect(contents.flatMap(scan)).to.deep.equal([]);
    });
  }
});
