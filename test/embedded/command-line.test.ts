import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { isWellFormedApiKey } from '../../shared/api-keys.ts';
import { call } from '../support/http-call.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';
import { type Finished, startProgram } from '../support/start-program.ts';

const NOBODY = '00000000-0000-4000-8000-000000000000';

function sallyport(args: string[], settings: NodeJS.ProcessEnv = {}): Promise<Finished> {
  return startProgram('cli/main.ts', args, settings).finished;
}

describe('sallyport, the command line', function () {
  this.timeout(120_000);

  it('explains itself and every setting', async () => {
    const { code, stdout } = await sallyport(['--help']);
    expect(code).to.equal(0);
    expect(stdout).to.contain('tenant').and.contain('SALLYPORT_KEK').and.contain('DATABASE_URL');
  });

  it('ends with 2 for what it does not understand, 1 for what fails', async () => {
    const misused = [['nope'], ['tenant'], ['tenant', 'create'], ['key', 'issue', '--tenant', '1']];
    for (const args of misused) {
      const { code, stdout } = await sallyport(args);
      expect([code, stdout], args.join(' ')).to.deep.equal([2, '']);
    }
    const nowhere = { DATABASE_URL: 'postgres://role:secret@127.0.0.1:1/db' };
    const failed = await sallyport(['tenant', 'list'], nowhere);
    expect(failed.stderr).to.match(/^DATABASE_URL: [^\n]*ECONNREFUSED[^\n]*\n$/);
    expect(failed.stderr).not.to.contain('secret');
    const settings = { DATABASE_URL: 'secret' };
    const { code, stderr } = await sallyport(['tenant', 'list'], settings);
    expect([code, stderr]).to.deep.equal([
      1,
      'DATABASE_URL must be a postgres:// or postgresql:// URL\n',
    ]);
  });

  it('names what is too much before what is missing, and says its version', async () => {
    const { code, stderr } = await sallyport(['tenant', 'create', 'Acme']);
    expect([code, stderr.split('\n')[0]]).to.deep.equal([
      2,
      "error: too many arguments for 'create'. Expected 0 arguments but got 1: Acme.",
    ]);
    expect((await sallyport(['tenant', 'create', '--nmae'])).stderr).to.contain("'--nmae'");
    expect((await sallyport(['tenant', 'create'])).stderr).to.contain('--name');
    expect((await sallyport(['--version'])).stdout).to.match(/^[0-9]+\.[0-9]+\.[0-9]+\n$/);
  });

  it('generates keys that differ and are well-formed, and needs no database for it', async () => {
    const settings = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nowhere' };
    const { stdout } = await sallyport(['key', 'generate'], settings);
    const json = await sallyport(['key', 'generate', '--json'], settings);
    const keys = [stdout.trim(), JSON.parse(json.stdout).key];
    expect(keys.map(isWellFormedApiKey)).to.deep.equal([true, true]);
    expect(keys[0]).not.to.equal(keys[1]);
  });

  describe('beside a running Sallyport, by DATABASE_URL', () => {
    let running: TestSallyport;
    let settings: NodeJS.ProcessEnv;
    before(async () => {
      running = await startSallyport();
      const { connectionString, kek } = running.database;
      settings = { DATABASE_URL: connectionString, SALLYPORT_KEK: kek };
    });
    after(() => running.stop());

    it('issues a key without being told for which tenant, as long as there is one', async () => {
      const { stdout } = await sallyport(['key', 'issue', '--json'], settings);
      const { tenant_id, key } = JSON.parse(stdout);
      expect(tenant_id).to.equal(running.tenant.id);
      const { body } = await call(running.baseUrl, 'GET /tenants/self', { key });
      expect(body.id).to.equal(tenant_id);
    });

    it('makes a tenant of its own, whose key works at once', async () => {
      const made = await sallyport(['tenant', 'create', '--name', 'Globex', '--json'], settings);
      const { tenant_id, key } = JSON.parse(made.stdout);
      const { status, body } = await call(running.baseUrl, 'GET /tenants/self', { key });
      expect([status, body.id, body.name]).to.deep.equal([200, tenant_id, 'Globex']);
      const { stdout } = await sallyport(['tenant', 'list', '--json'], settings);
      const names = JSON.parse(stdout).map((tenant: { name: string }) => tenant.name);
      expect(names).to.deep.equal(['Acme', 'Globex']);
    });

    it('replaces a lost management key; the old one goes on working', async () => {
      const { id, managementKey } = running.tenant;
      const issued = await sallyport(['key', 'issue', '--tenant', id, '--json'], settings);
      const { key, application_id } = JSON.parse(issued.stdout);
      for (const each of [managementKey, key]) {
        const { body } = await call(running.baseUrl, 'GET /tenants/self', { key: each });
        expect(body.id).to.equal(id);
      }
      const { body } = await call(running.baseUrl, 'GET /applications/key', { key });
      expect(body.id).to.equal(application_id);
    });

    it('changes the configuration version, as every change does', async () => {
      const { id } = running.tenant;
      const changes = () => countChanges(running.database, id);
      const before = await changes();
      await sallyport(['key', 'issue', '--tenant', id], settings);
      expect(await changes()).to.equal(before + 1);
    });

    it('fails for a tenant that is not there, and for a name that is none', async () => {
      const missing = await sallyport(['key', 'issue', '--tenant', NOBODY], settings);
      expect([missing.code, missing.stdout]).to.deep.equal([1, '']);
      expect(missing.stderr).to.contain('no tenant has this id');
      const unnamed = await sallyport(['key', 'issue'], settings);
      expect([unnamed.code, unnamed.stdout]).to.deep.equal([1, '']);
      expect(unnamed.stderr).to.contain('--tenant');
      for (const name of ['', 'a'.repeat(201), 'two\nlines']) {
        const { code, stderr } = await sallyport(['tenant', 'create', '--name', name], settings);
        expect(code, JSON.stringify(name)).to.equal(1);
        expect(stderr).to.match(/^name: /);
      }
    });

    it('refuses the wrong key-encryption key', async () => {
      const wrong = { ...settings, SALLYPORT_KEK: Buffer.alloc(32).toString('base64') };
      const { code, stderr } = await sallyport(['tenant', 'create', '--name', 'X'], wrong);
      expect(code).to.equal(1);
      expect(stderr).to.match(
        /^SALLYPORT_KEK is not the one this database was sealed with: [^()\n]*\n$/,
      );
    });

    it('makes no key file for a database that is sealed already', async () => {
      const directory = await fs.mkdtemp(join(tmpdir(), 'sallyport-cli-'));
      const { DATABASE_URL } = settings;
      const without = { DATABASE_URL, DATA_DIR: join(directory, 'data') };
      const { code, stderr } = await sallyport(['tenant', 'list'], without);
      expect(code).to.equal(1);
      expect(stderr).to.contain('sealed with a key that is not here');
      expect(await fs.readdir(directory)).to.deep.equal([]);
      await fs.rm(directory, { recursive: true });
    });
  });

  describe('with the embedded Postgres', () => {
    let dataDir: string;
    before(async () => {
      dataDir = await fs.mkdtemp(join(tmpdir(), 'sallyport-cli-'));
    });
    after(() => fs.rm(dataDir, { recursive: true }));

    const ports = { PORT: '0', CONTROL_PLANE_PORT: '0', METRICS_PORT: '0' };

    it('makes no vault where none is: a DATA_DIR may be mistyped', async () => {
      const settings = { DATA_DIR: join(dataDir, 'mistyped') };
      for (const args of [
        ['tenant', 'list'],
        ['tenant', 'create', '--name', 'X'],
      ]) {
        const { code, stderr } = await sallyport(args, settings);
        expect(code).to.equal(1);
        expect(stderr).to.match(
          /^no vault in .*mistyped: start Sallyport once, or set DATA_DIR\n$/,
        );
      }
      expect(await fs.readdir(dataDir)).to.deep.equal([]);
    });

    it('works when nothing runs, and leaves nothing running', async () => {
      const settings = { DATA_DIR: dataDir };
      const first = startProgram('cli/main.ts', ['start'], { ...settings, ...ports });
      await first.says(/ready at/);
      first.child.kill('SIGTERM');
      await first.finished;
      const made = await sallyport(['tenant', 'create', '--name', 'Acme', '--json'], settings);
      expect(made.code, made.stderr).to.equal(0);
      expect(isWellFormedApiKey(JSON.parse(made.stdout).key)).to.equal(true);
      expect(await fs.readdir(dataDir)).not.to.include('lock');
      expect(await fs.readdir(join(dataDir, 'postgres'))).not.to.include('postmaster.pid');
    });

    it('works through the socket while `sallyport start` runs', async () => {
      const settings = { DATA_DIR: dataDir, ...ports };
      const running = startProgram('cli/main.ts', ['start'], settings);
      const [, baseUrl = ''] = await running.says(/ready at (.*)$/m);
      const made = await sallyport(['tenant', 'create', '--name', 'Globex', '--json'], settings);
      const { key } = JSON.parse(made.stdout);
      expect((await call(baseUrl, 'GET /tenants/self', { key })).body.name).to.equal('Globex');
      running.child.kill('SIGTERM');
      expect((await running.finished).code).to.equal(0);
    });
  });
});

async function countChanges(database: TestDatabase, tenantId: string): Promise<number> {
  const client = new pg.Client({ connectionString: database.connectionString });
  await client.connect();
  const { rows } = await client
    .query('SELECT count(*)::int FROM config_changes WHERE tenant_id = $1', [tenantId])
    .finally(() => client.end());
  return rows[0].count;
}
