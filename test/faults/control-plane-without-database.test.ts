import { expect } from 'chai';
import { createControlPlane } from '../../control-plane/create-control-plane.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import { ApiError } from '../../shared/errors.ts';
import { createLogger, type Logger } from '../../shared/observability/logger.ts';
import type { Plane } from '../../shared/process/serve-plane.ts';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts';
import { call, type JsonObject } from '../support/http-call.ts';

describe('the control plane without its database', () => {
  let server: TestControlPlane;
  let proxy: DatabaseProxy;
  let plane: Plane;
  let baseUrl: string;
  let errors: [JsonObject, string][];

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  beforeEach(async () => {
    const { connectionString, kek } = server.database;
    proxy = await startDatabaseProxy(connectionString);
    errors = [];
    const error = (...line: unknown[]) => errors.push(line as [JsonObject, string]);
    plane = createControlPlane(
      {
        databaseUrl: proxy.connectionString,
        databasePoolMax: 4,
        kek: localKeyEncryption(Buffer.from(kek, 'base64')),
        redisUrl: undefined,
        testClockOffsetSeconds: undefined,
        sandboxStrict: false,
        egressAllow: [],
        port: 0,
        host: undefined,
      },
      { ...createLogger('test', 'silent'), error: error as Logger['error'] },
    );
  });
  afterEach(async () => {
    await plane.stop();
    await proxy.close();
  });

  const start = async () => {
    baseUrl = `http://localhost:${await plane.start()}`;
  };
  const ask = (line = 'GET /tenants/self') =>
    call(baseUrl, line, { key: server.tenant.managementKey });

  it('answers 503 with Retry-After while it is away, and recovers by itself', async () => {
    await start();
    expect((await ask()).status).to.equal(200);
    await proxy.goAway();
    for (const line of ['GET /tenants/self', 'POST /applications', 'DELETE /tenants/self']) {
      const { status, headers, body, text } = await ask(line);
      expect(status, line).to.equal(503);
      expect(headers.get('retry-after')).to.equal('1');
      expect(body).to.include({ title: 'Service Unavailable', status: 503 });
      expect(text).not.to.match(/postgres|127\.0\.0\.1|ECONN/);
    }
    expect(await plane.readiness()).to.deep.equal({ ready: false, problems: ['database'] });
    await proxy.comeBack();
    expect((await ask()).status).to.equal(200);
    expect(await plane.readiness()).to.deep.equal({ ready: true, problems: [] });
  });

  it('logs an outage once a second, with its cause and how many requests it was', async () => {
    await start();
    await ask();
    await proxy.goAway();
    const startedAt = performance.now();
    for (let times = 0; times < 5; times += 1) expect((await ask()).status).to.equal(503);
    const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
    expect(errors).to.have.lengthOf.within(1, seconds);
    const [[fields, message]] = errors as [[JsonObject, string]];
    expect(message).to.equal('requests answered 503');
    expect(fields).to.have.all.keys('err', 'trace_id', 'count');
    expect(fields).to.include({ count: 1 });
    expect(fields.err).not.to.be.instanceOf(ApiError);
  });

  it('answers 503 when it is there and silent', async () => {
    await start();
    expect((await ask()).status).to.equal(200);
    proxy.goDark();
    expect((await ask()).status).to.equal(503);
  });

  it('refuses a malformed key without it', async () => {
    await start();
    await proxy.goAway();
    const { status } = await call(baseUrl, 'GET /tenants/self', { key: 'key_wrong' });
    expect(status).to.equal(401);
  });

  it('waits for it at the start, and serves once it is there', async () => {
    await proxy.goAway();
    const started = start();
    expect((await plane.readiness()).ready).to.equal(false);
    await proxy.comeBack();
    await started;
    expect((await ask()).status).to.equal(200);
  });
});
