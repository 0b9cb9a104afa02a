import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { writeCheckpoint } from '../../shared/audit/write-checkpoint.ts';
import { loadInstallation } from '../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../shared/postgres/pool.ts';
import { settled, trailOf } from '../api/audit/trail.ts';
import { call } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';
import { startProgram } from '../support/start-program.ts';

const CALLERS = 16;

/** Audit rows of a whole Sallyport whose processes end in the middle of their work. */
describe('the audit trail of processes that end', function () {
  this.timeout(60_000);
  let sallyport: TestSallyport;
  let pool: Pool;
  let key: string;
  let id: string;

  async function start(settings: NodeJS.ProcessEnv): Promise<void> {
    sallyport = await startSallyport({ SANDBOX_HOSTS: '0', LOG_LEVEL: 'info', ...settings });
    const { connectionString } = sallyport.database;
    const log = createLogger('test', 'silent');
    pool = createPool({ connectionString, max: 2, applicationName: 'test', log });
    const rules = [
      {
        ...{ priority: 1, container: '/', transform: 'reveal' },
        permissions: ['token:create', 'token:read'],
      },
    ];
    const application = { name: 'A', type: 'private', rules };
    const { managementKey } = sallyport.tenant;
    const made = await manage('POST /applications', managementKey, application);
    key = String(made.body.key);
    id = String((await manage('POST /tokens', key, { type: 'token', data: 'x' })).body.id);
  }
  const manage = (line: string, caller: string, json: unknown) =>
    call(sallyport.baseUrl, line, { key: caller, json });
  const read = (trace: string) =>
    call(sallyport.baseUrl, `GET /tokens/${id}`, { key, headers: { 'bt-trace-id': trace } });

  afterEach(async () => {
    await sallyport.planes.stop();
    await pool.end();
    await sallyport.database.drop();
  });

  it('batched: has every answered read of a process that was asked to end', async () => {
    await start({ SALLYPORT_AUDIT: 'batched' });
    const answered: string[] = [];
    let ended = false;
    const caller = async (): Promise<void> => {
      while (!ended) {
        const trace = randomUUID();
        const status = await read(trace)
          .then((answer) => answer.status)
          .catch(() => 0);
        if (status === 200) answered.push(trace);
        else if (status === 0) return;
      }
    };
    // Rows pile up in memory until the process has been told to end.
    const lock = await pool.connect();
    await lock.query('BEGIN; LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE');
    const callers = Array.from({ length: CALLERS }, caller);
    while (answered.length < 200) await delay(10);
    const stopped = sallyport.planes.stop();
    await delay(500);
    await lock.query('COMMIT');
    lock.release();
    await stopped;
    ended = true;
    await Promise.all(callers);
    const traces = new Set(
      (await trailOf(pool, sallyport.tenant.id)).map(({ trace_id }) => trace_id),
    );
    expect(answered.filter((trace) => !traces.has(trace))).to.deep.equal([]);
  });

  it('strict: has every answered read of a process that was killed at that moment', async () => {
    await start({ SALLYPORT_AUDIT: 'strict' });
    for (let round = 0; round < 2; round += 1) {
      const traces = Array.from({ length: CALLERS }, () => randomUUID());
      const reads = traces.map((trace) => read(trace).then(({ status }) => ({ trace, status })));
      const first = await Promise.any(reads);
      expect(first.status).to.equal(200);
      process.kill(sallyport.planes.dataPlane.pid() ?? 0, 'SIGKILL');
      const ended = await Promise.allSettled(reads);
      const answered = ended.flatMap((one) =>
        one.status === 'fulfilled' && one.value.status === 200 ? [one.value.trace] : [],
      );
      for (const trace of answered) {
        expect(await trailOf(pool, sallyport.tenant.id, trace)).to.have.lengthOf(1);
      }
      // It is started again, on the same port.
      while ((await read(randomUUID()).catch(() => undefined))?.status !== 200) await settled(pool);
    }
  });

  it('is verified by the command line, which says by its exit code what it found', async () => {
    await start({});
    const { connectionString, kek } = sallyport.database;
    const installation = await loadInstallation(
      pool,
      localKeyEncryption(Buffer.from(kek, 'base64')),
    );
    await settled(pool);
    // It writes a checkpoint each minute, which would be the newest in the middle of this.
    await sallyport.planes.stop();
    await writeCheckpoint({ pool, installation, months: 12 });
    const settings = { DATABASE_URL: connectionString, SALLYPORT_KEK: kek };
    const audit = (...args: string[]) =>
      startProgram('cli/main.ts', ['audit', ...args], settings).finished;
    const verify = (...args: string[]) => audit('verify', ...args);
    const good = await verify('--json');
    const verdict = JSON.parse(good.stdout);
    expect(good.code, good.stdout).to.equal(0);
    expect(verdict).to.include({ intact: true });
    expect(verdict.rows).to.be.at.least(4);
    const { number, digest } = verdict.head;
    const kept = await audit('head');
    expect([kept.code, kept.stdout]).to.deep.equal([0, `${number}:${digest}\n`]);
    expect(JSON.parse((await audit('head', '--json')).stdout)).to.include({ number, digest });
    expect((await verify('--head', kept.stdout.trim())).code).to.equal(0);
    const later = await verify('--head', `${number + 1}:${digest}`);
    expect([later.code, later.stdout.split('\n')[0]]).to.deep.equal([
      1,
      `checkpoint ${number + 1} was given, but is not in the database: the end of the trail was cut off`,
    ]);
    expect((await verify('--head', 'nonsense')).code).to.equal(2);
    await pool.query(`DELETE FROM audit_log WHERE entity_id = $1`, [id]);
    const bad = await verify();
    expect(bad.code).to.equal(1);
    const month = new Date().toISOString().slice(0, 7);
    expect(bad.stdout).to.match(
      new RegExp(
        `^checkpoint \\d+ covers rows that are missing \\(${month}, tenant ${sallyport.tenant.id}\\)\n`,
      ),
    );
    expect(bad.stdout).to.not.include(id);
    const forge = 'UPDATE audit_checkpoints SET signature = sha256(digest) WHERE number = $1';
    await pool.query(forge, [number]);
    const forged = await audit('head');
    expect([forged.code, forged.stdout]).to.deep.equal([1, '']);
    expect(forged.stderr).to.include('has a signature that is not of this installation');
    await pool.query('TRUNCATE audit_checkpoints, audit_checkpoint_parts');
    const none = await audit('head');
    expect([none.code, none.stdout]).to.deep.equal([1, '']);
  });
});
