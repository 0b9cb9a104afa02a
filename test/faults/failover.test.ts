/**
 * The primary is lost for good, its standby is promoted, and the address of the database leads there:
 * nothing that was acknowledged is missing, since the standby had it before (synchronous replication).
 */
import { randomBytes } from 'node:crypto';
import { appendFile, chown, cp, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { readEnvironment } from '../../config/environment.ts';
import { migrate } from '../../control-plane/migrate.ts';
import { createDataDir, dataDirAt } from '../../embedded/data-dir.ts';
import { postgresUser } from '../../embedded/operating-system-user.ts';
import { type Planes, startPlanes } from '../../embedded/planes.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../embedded/postgres.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createApplication } from '../security/planes.ts';
import { startCallers } from '../support/callers.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts';
import { call } from '../support/http-call.ts';
import { inParallel } from '../support/in-parallel.ts';
import { createTenants } from './history/world.ts';

const CALLERS = 8;
const ANSWERS = 100;
const log = createLogger('test', 'silent');

describe('a database that fails over', function () {
  this.timeout(90_000);
  const closers: (() => Promise<unknown>)[] = [];
  let primary: EmbeddedPostgres;
  let standby: EmbeddedPostgres;
  let front: DatabaseProxy;
  let planes: Planes;
  let baseUrl: string;
  let key: string;

  before(async () => {
    const root = await mkdtemp(join(tmpdir(), 'sallyport-failover-'));
    closers.push(() => rm(root, { recursive: true }));
    const kek = randomBytes(32);
    const first = await createDataDir(join(root, 'first'));
    primary = await startEmbeddedPostgres({ dataDir: first, log });
    await migrate(primary.connectionString, localKeyEncryption(kek));
    const [tenant] = await createTenants(primary.connectionString, kek);
    await primary.stop();
    await startPair(root);
    front = await startDatabaseProxy(primary.connectionString);
    closers.push(() => front.close());
    const environment = readEnvironment({
      ...{ NODE_ENV: 'test', PORT: '0', CONTROL_PLANE_PORT: '0', SANDBOX_HOSTS: '0' },
      ...{ DATABASE_URL: front.connectionString, SALLYPORT_KEK: kek.toString('base64') },
    });
    planes = await startPlanes(environment, process.env, log, () => undefined);
    closers.push(() => planes.stop());
    baseUrl = `http://localhost:${planes.dataPlane.port}`;
    ({ key } = await createApplication(baseUrl, { managementKey: tenant?.managementKey ?? '' }));
  });
  after(async () => {
    for (const close of closers.toReversed()) await close();
  });

  /** A copy of the stopped server follows it; what the first acknowledges, both have. */
  async function startPair(root: string): Promise<void> {
    const [first, second] = [join(root, 'first'), join(root, 'second')];
    await cp(first, second, { recursive: true, preserveTimestamps: true });
    await ownLike(first, second);
    await appendFile(
      join(first, 'postgres', 'postgresql.auto.conf'),
      "synchronous_standby_names = '*'\n",
    );
    primary = await startEmbeddedPostgres({ dataDir: dataDirAt(first), log });
    closers.push(() => primary.stop('immediate'));
    const way = await startDatabaseProxy(primary.adminConnectionString('postgres'));
    closers.push(() => way.close());
    const { hostname, port, username, password } = new URL(way.connectionString);
    const conninfo = `host=${hostname} port=${port} user=${username} password=${password}`;
    const directory = join(second, 'postgres');
    await appendFile(join(directory, 'postgresql.auto.conf'), `primary_conninfo = '${conninfo}'\n`);
    await writeFile(join(directory, 'standby.signal'), '');
    await chown(join(directory, 'standby.signal'), postgresUser().uid, postgresUser().gid);
    standby = await startEmbeddedPostgres({ dataDir: dataDirAt(second), log });
    closers.push(() => standby.stop('immediate'));
    const isSynchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    while ((await admin(primary, isSynchronous)) === 0) await delay(50);
  }

  /** Runs a statement as superuser; answers how many rows came. */
  async function admin(server: EmbeddedPostgres, statement: string): Promise<number> {
    const client = new pg.Client({ connectionString: server.adminConnectionString('postgres') });
    await client.connect();
    const { rowCount } = await client.query(statement).finally(() => client.end());
    return rowCount ?? 0;
  }

  it('loses nothing that was acknowledged, and is a 503 meanwhile', async () => {
    const acknowledged: string[] = [];
    let sequence = 0;
    const callers = startCallers(CALLERS, (caller) => {
      sequence += 1;
      const id = `token-${sequence}`;
      const known = acknowledged[sequence % acknowledged.length];
      if (caller % 2 === 1 && known !== undefined) {
        return { line: 'GET', answer: call(baseUrl, `GET /tokens/${known}`, { key }) };
      }
      const json = { id, type: 'token', data: id };
      const answer = call(baseUrl, 'POST /tokens', { key, json }).then((created) => {
        if (created.status === 201) acknowledged.push(id);
        return created;
      });
      return { line: 'POST', answer };
    });
    let samples: Awaited<ReturnType<typeof callers.stop>>;
    try {
      await callers.answered(ANSWERS);
      await primary.stop('immediate');
      // For a moment the address leads to a server that only reads.
      front.switchTo(standby.connectionString);
      await callers.answeredSince(Date.now(), ANSWERS);
      await admin(standby, 'SELECT pg_promote()');
      await callers.servedInARow(ANSWERS);
    } finally {
      samples = await callers.stop();
    }
    const odd = samples.filter(
      ({ status, retryAfter }) =>
        ![200, 201].includes(status) && !(status === 503 && retryAfter !== null),
    );
    expect(odd.slice(0, 3), `${odd.length} of ${samples.length}`).to.deep.equal([]);
    expect(samples.some(({ status }) => status === 503)).to.equal(true);
    await inParallel(acknowledged, async (id) => {
      const { status, body } = await call(baseUrl, `GET /tokens/${id}`, { key });
      expect([status, body.data]).to.deep.equal([200, id]);
    });
  });
});

/** A copy belongs to who made it: its owner is the server's, as in the original. */
async function ownLike(first: string, second: string): Promise<void> {
  for (const name of ['.', ...(await readdir(first, { recursive: true }))]) {
    const { uid, gid } = await stat(join(first, name)).catch(() => ({ uid: -1, gid: -1 }));
    if (uid >= 0) await chown(join(second, name), uid, gid).catch(() => undefined);
  }
}
