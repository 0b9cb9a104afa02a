/**
 * Two data planes are restarted in turn by SIGTERM, as an update of an installation does it, while
 * callers with kept-alive connections never pause and a proxied call is always under way. A caller whose
 * connection is refused goes to the other data plane, as any load balancer does, and one whose kept
 * connection was closed as it wrote sends again (RFC 9112 section 9.3.1), a write with its idempotency
 * key. `FAULTS_SECONDS` above 60 restarts as often as the fault table says.
 */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { PlaneProcess } from '../../embedded/plane-process.ts';
import { type Origin, startOrigin } from '../proxy/origin.ts';
import { REVEAL_ALL, startTestPlanes, type TestPlanes } from '../security/planes.ts';
import { type Sample, startCallers } from '../support/callers.ts';
import { type Answer, type Call, call, type JsonObject } from '../support/http-call.ts';

const RESTARTS = Number(process.env.FAULTS_SECONDS ?? 60) > 60 ? 20 : 3;
const CALLERS = 8;
/** Every caller has been at both data planes. */
const WARM_ANSWERS = 100;
/** A proxied call takes as long, so that one is under way at every signal. */
const DESTINATION_MS = 1_500;
const PATIENCE_MS = 30_000;
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nslow';

describe('data planes that are restarted in turn', function () {
  this.timeout(RESTARTS * 15_000 + 60_000);
  let planes: TestPlanes;
  let destination: Origin;
  let key: string;
  let proxyKey: string;
  let sequence = 0;
  /**
   * Kept connections that were closed in the very moment they were written to. HTTP/1.1 has no way for a
   * server to end an idle connection that no request can cross: either side may close it at any time, and
   * a client must be ready for that and send again (RFC 9112 sections 9.3.1 and 9.5). A drain says
   * `Connection: close` in its answers and waits half a second for the others, which leaves the few
   * that are idle for just as long: one in a restart at most.
   */
  let closed = 0;
  const acknowledged: string[] = [];
  /** A caller has one connection and never leaves it idle, as a busy server of a customer. */
  const agents = Array.from(
    { length: CALLERS },
    () => new Agent({ keepAlive: true, maxSockets: 1 }),
  );
  /** The data plane each caller is at. */
  const places = new Map<number, number>();

  before(async () => {
    planes = await startTestPlanes({
      SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8,::1/128',
      SANDBOX_HOSTS: '0',
    });
    await planes.addDataPlane();
    destination = await startOrigin((socket) => {
      setTimeout(() => socket.write(ANSWER), DESTINATION_MS);
    });
    const [rule] = REVEAL_ALL;
    const rules = [{ ...rule, permissions: [...(rule?.permissions ?? []), 'token:use'] }];
    key = await manage('POST /applications', { name: 'Callers', type: 'private', rules });
    proxyKey = await manage('POST /proxies', { name: 'Slow', destination_url: destination.url });
  });
  after(async () => {
    for (const agent of agents) agent.destroy();
    await planes?.stop();
    await destination?.close();
  });

  async function manage(line: string, json: JsonObject): Promise<string> {
    const managementKey = planes.tenant.managementKey;
    const { status, body, ...answer } = await call(planes.urls[0] ?? '', line, {
      key: managementKey,
      json,
    });
    if (status !== 201) throw new Error(`${line}: ${answer.text}`);
    return String(body.key);
  }

  /** At the data plane where the caller was last, or at the other when that one lets nobody in. */
  async function attempt(
    caller: number,
    line: string,
    { headers = {}, json }: Call,
  ): Promise<Answer<undefined>> {
    for (let tries = 1; ; tries += 1) {
      const place = (places.get(caller) ?? caller) % planes.urls.length;
      places.set(caller, place);
      try {
        const all = { 'bt-api-key': key, 'content-type': 'application/json', ...headers };
        return await send(agents[caller] as Agent, planes.urls[place] ?? '', line, all, json);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (error instanceof ClosedBeforeAnswer && tries === 1) closed += 1;
        else if (code !== 'ECONNREFUSED' || tries > planes.urls.length * 2) throw error;
        else places.set(caller, place + 1);
      }
    }
  }

  function requestOf(caller: number): { line: string; answer: Promise<Answer<unknown>> } {
    sequence += 1;
    const turn = sequence;
    if (caller < 2) {
      const headers = { 'bt-proxy-key': proxyKey };
      return { line: 'GET /proxy', answer: attempt(caller, 'GET /proxy', { headers }) };
    }
    if (caller % 2 === 0) {
      const json = { id: `token-${turn}`, type: 'token', data: turn };
      const headers = { 'bt-idempotency-key': json.id };
      const answer = attempt(caller, 'POST /tokens', { headers, json }).then((created) => {
        if (created.status === 201) acknowledged.push(json.id);
        return created;
      });
      return { line: 'POST /tokens', answer };
    }
    return { line: 'GET /tokens', answer: attempt(caller, 'GET /tokens?size=1', {}) };
  }

  /** Sends SIGTERM and settles when another process serves on the same port. */
  async function restart(plane: PlaneProcess): Promise<void> {
    const before = plane.pid() as number;
    process.kill(before, 'SIGTERM');
    const deadline = performance.now() + PATIENCE_MS;
    while (plane.pid() === before || !(await plane.report()).ready) {
      if (performance.now() > deadline) throw new Error('not up again');
      await delay(20);
    }
  }

  it('lose no request', async () => {
    const callers = startCallers(CALLERS, requestOf);
    let samples: Sample[];
    try {
      await callers.answered(WARM_ANSWERS);
      for (let round = 0; round < RESTARTS; round += 1) {
        await restart(planes.dataPlanes[round % planes.dataPlanes.length] as PlaneProcess);
        await callers.servedInARow(WARM_ANSWERS);
      }
    } finally {
      samples = await callers.stop();
    }
    const failed = samples.filter(({ status }) => status !== 200 && status !== 201);
    expect(failed.slice(0, 3), `${failed.length} of ${samples.length}`).to.deep.equal([]);
    expect(closed).to.be.at.most(RESTARTS);
    expect(samples.filter(({ line }) => line === 'GET /proxy').length).to.be.greaterThan(RESTARTS);
    expect(acknowledged.length).to.be.greaterThan(RESTARTS * 10);
    for (const id of acknowledged.slice(-100)) {
      const { status } = await call(planes.urls[0] ?? '', `GET /tokens/${id}`, { key });
      expect(status, id).to.equal(200);
    }
  });
});

/** Of a kept connection, before anything of an answer: what every client must send again. */
class ClosedBeforeAnswer extends Error {}

/** One request on the caller's one connection, which is kept while the server keeps it. */
async function send(
  agent: Agent,
  url: string,
  line: string,
  headers: Record<string, string>,
  json: unknown,
): Promise<Answer<undefined>> {
  const [method = '', path = ''] = line.split(' ');
  const sending = request(url + path, { method, agent, headers });
  sending.end(json === undefined ? undefined : JSON.stringify(json));
  const answering = once(sending, 'response').catch((error: NodeJS.ErrnoException) => {
    const isClosed = error.code === 'ECONNRESET' && sending.reusedSocket;
    throw isClosed ? new ClosedBeforeAnswer() : error;
  });
  const [response] = (await answering) as [IncomingMessage];
  const body = await text(response);
  return { status: response.statusCode ?? 0, headers: new Headers(), text: body, body: undefined };
}
