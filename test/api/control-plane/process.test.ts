import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { call } from '../../support/http-call.ts';

const MAIN = fileURLToPath(new URL('../../../control-plane/main.ts', import.meta.url));

interface Report {
  type: string;
  port: number;
  id: number;
  ready: boolean;
  problems: string[];
  metrics: { name: string; values: { labels: Record<string, string>; value: number }[] }[];
}

describe('the process of the control plane', () => {
  let server: TestControlPlane;
  let child: ChildProcess | undefined;
  let output: string;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());
  afterEach(async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  function launch(settings: NodeJS.ProcessEnv = {}, channel: 'ipc' | 'ignore' = 'ipc') {
    output = '';
    const { connectionString, kek } = server.database;
    const started = spawn(process.execPath, [MAIN], {
      stdio: ['ignore', 'pipe', 'pipe', channel],
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: connectionString,
        SALLYPORT_KEK: kek,
        CONTROL_PLANE_PORT: '0',
        DATABASE_POOL_MAX: '4',
        ...settings,
      },
    });
    for (const stream of [started.stdout, started.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    child = started;
    return started;
  }

  async function next(process: ChildProcess, type: string): Promise<Report> {
    for (;;) {
      const [message] = (await once(process, 'message')) as [Report];
      if (message.type === type) return message;
    }
  }

  async function ready(): Promise<{ process: ChildProcess; baseUrl: string }> {
    const process = launch();
    const { port } = await next(process, 'ready');
    return { process, baseUrl: `http://localhost:${port}` };
  }

  it('logs one line per write, and what became of it: route and ids, no body, no query, no key', async () => {
    const { process, baseUrl } = await ready();
    const { managementKey: key, id: tenantId } = server.tenant;
    const json = { name: 'Name-in-body', type: 'private', permissions: ['token:read'] };
    const made = await call<{ id: string; key: string }>(baseUrl, 'POST /applications?q=in-query', {
      key,
      json,
    });
    await call(baseUrl, `GET /applications/${made.body.id}`, { key });
    await call(baseUrl, `DELETE /applications/${made.body.id}`, { key });
    await call(baseUrl, 'POST /applications', { key: 'key_wrong', json });
    await call(baseUrl, 'POST /applications', { key, json: {} });
    const headers = { 'bt-idempotency-key': 'a' };
    for (let times = 0; times < 2; times += 1) {
      await call(baseUrl, 'POST /applications', { key, json, headers });
    }
    process.kill('SIGTERM');
    await once(process, 'exit');

    const writes = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => String(msg).startsWith('management write'));
    expect(
      writes.map(({ msg, method, route, status }) => `${msg}: ${method} ${route} ${status}`),
    ).to.deep.equal([
      'management write: POST /applications 201',
      'management write: DELETE /applications/{id} 204',
      'management write refused: POST /applications 400',
      'management write: POST /applications 201',
      'management write answered again: POST /applications 201',
    ]);
    for (const line of writes) {
      expect(line).to.have.all.keys(
        ...['level', 'time', 'process', 'pid', 'msg', 'method', 'route', 'status'],
        ...['tenant_id', 'application_id', 'trace_id', 'duration_ms'],
      );
      expect(line.tenant_id).to.equal(tenantId);
    }
    expect(output).not.to.contain('Name-in-body');
    expect(output).not.to.contain('in-query');
    expect(output).not.to.contain(key);
    expect(output).not.to.contain(made.body.key);
    expect(output).not.to.contain(made.body.id);
  });

  it('answers its parent with metrics by route template and its readiness', async () => {
    const { process, baseUrl } = await ready();
    const { managementKey: key, managementApplicationId: id, id: tenantId } = server.tenant;
    await call(baseUrl, `GET /applications/${id}`, { key });
    await call(baseUrl, `GET /nowhere/${id}`, { key });
    process.send({ type: 'metrics', id: 7 });
    const report = await next(process, 'metrics');
    expect(report).to.include({ id: 7, ready: true });
    expect(report.problems).to.deep.equal([]);

    const byName = new Map(report.metrics.map((metric) => [metric.name, metric.values]));
    const requests = byName.get('sallyport_http_request_duration_seconds') ?? [];
    const labels = requests.map((value) => value.labels);
    expect(labels).to.deep.include({
      plane: 'control',
      route: '/applications/{id}',
      method: 'GET',
      status_class: '2xx',
    });
    expect(labels.map(({ route }) => route)).to.include('unmatched');
    expect([...byName.keys()]).to.include.members([
      'sallyport_build_info',
      'sallyport_pool_connections',
      'nodejs_eventloop_lag_p99_seconds',
      'process_cpu_seconds_total',
    ]);
    const text = JSON.stringify(report.metrics);
    expect(text).not.to.contain(id);
    expect(text).not.to.contain(tenantId);
  });

  it('serves alone: its own metrics, readiness, and no readiness while it drains', async () => {
    const process = launch({ METRICS_PORT: '0', METRICS_HOST: '127.0.0.1' }, 'ignore');
    await until(() => output.includes('"msg":"ready"'));
    const [metrics, api] = output
      .split('\n')
      .filter((line) => line.includes('"port"'))
      .map((line) => `http://localhost:${(JSON.parse(line) as { port: number }).port}`);
    if (metrics === undefined || api === undefined) throw new Error('a port was not logged');
    expect((await call(metrics, 'GET /readyz')).body).to.deep.equal({ ready: true, problems: [] });
    const elsewhere = metrics.replace('localhost', '127.0.0.2');
    expect(await fetch(`${elsewhere}/readyz`).catch(() => 'refused')).to.equal('refused');
    expect(await (await fetch(`${metrics}/metrics`)).text()).to.contain('sallyport_build_info');

    const { request, answer } = await halfRequest(api);
    process.kill('SIGTERM');
    await until(() => output.includes('draining'));
    const draining = await call(metrics, 'GET /readyz');
    expect(draining.status).to.equal(503);
    expect(draining.body).to.deep.equal({ ready: false, problems: ['draining'] });
    request.end('{}');
    expect((await answer)?.statusCode).to.equal(400);
    expect(await once(process, 'exit')).to.deep.equal([0, null]);
  });

  it('drains on SIGTERM: the request in flight is answered, then it exits 0', async () => {
    const { process, baseUrl } = await ready();
    const json = { name: 'x', type: 'public', permissions: ['token:create'] };
    const { request, answer } = await halfRequest(baseUrl);
    process.kill('SIGTERM');
    await until(() => output.includes('draining'));
    request.end(JSON.stringify(json));
    const response = await answer;
    expect(response?.statusCode).to.equal(201);
    expect(response?.headers.connection).to.equal('close');
    expect(await once(process, 'exit')).to.deep.equal([0, null]);
    const last = JSON.parse(output.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
    expect(last).to.include({ level: 'info', process: 'control-plane', msg: 'stopped' });
    expect(last.duration_ms).to.be.a('number');
  });

  it('exits at once on a second SIGTERM', async () => {
    const { process, baseUrl } = await ready();
    const { answer } = await halfRequest(baseUrl);
    process.kill('SIGTERM');
    await until(() => output.includes('draining'));
    const ended = once(process, 'exit');
    process.kill('SIGTERM');
    await until(() => output.includes('"msg":"ending at once"'));
    expect(await ended).to.deep.equal([1, null]);
    expect(await answer).to.equal(undefined);
  });

  it('ends when its parent is gone', async () => {
    const { process } = await ready();
    process.disconnect();
    expect(await once(process, 'exit')).to.deep.equal([1, null]);
  });

  for (const [what, settings, name] of [
    ['no database', { DATABASE_URL: '' }, 'DATABASE_URL'],
    ['no key-encryption key', { SALLYPORT_KEK: '' }, 'SALLYPORT_KEK'],
    [
      'another key-encryption key',
      { SALLYPORT_KEK: Buffer.alloc(32).toString('base64') },
      'key-encryption key',
    ],
  ] as const) {
    it(`does not start with ${what}, and says so in one line`, async () => {
      const [code] = await once(launch(settings), 'exit');
      expect(code).to.equal(1);
      expect(output.trim().split('\n')).to.have.length(1);
      expect(output).to.contain(name);
    });
  }

  /** A request that the server has begun to serve: it has asked for the body, which the test ends. */
  async function halfRequest(baseUrl: string) {
    const request = httpRequest(`${baseUrl}/applications`, {
      method: 'POST',
      headers: {
        'bt-api-key': server.tenant.managementKey,
        'content-type': 'application/json',
        expect: '100-continue',
      },
    });
    const answer = once(request, 'response').then(
      ([response]: IncomingMessage[]) => response?.resume(),
      () => undefined,
    );
    request.flushHeaders();
    await once(request, 'continue');
    return { request, answer };
  }

  /** Waits for more output until it holds what is looked for; mocha's timeout bounds it. */
  async function until(holds: () => boolean): Promise<void> {
    while (!holds() && child?.stderr) await once(child.stderr, 'data');
  }
});
