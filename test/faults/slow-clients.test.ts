/**
 * Thousands of clients that never finish their requests, and hundreds that do not read their answers
 * (attacks F-25): the ones are cut, the others get all of theirs in the end, and everybody else is served
 * meanwhile. How much slower, is for a machine that does nothing else (`bench/`).
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { LISTENER_OPTIONS } from '../../shared/http/listener.ts';
import { createApplication } from '../security/planes.ts';
import { type Sample, startCallers } from '../support/callers.ts';
import { call } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const DRIPPING = 5_000;
const READING = 200;
/** A burst of all would wait in the listener's backlog and be told to come again. */
const AT_ONCE = 250;
const DRIP_MS = 1_000;
const CUT_MS_MAX = 6_000;
const LARGE = 'x'.repeat(1_000_000);
const CALLERS = 4;
const TOLD = 'HTTP/1.1 408 Request Timeout';

describe('slow clients', function () {
  this.timeout(120_000);
  let sallyport: TestSallyport;
  let port: number;
  let key: string;
  before(async () => {
    sallyport = await startSallyport({ SANDBOX_HOSTS: '0', LOG_LEVEL: 'silent' });
    port = Number(new URL(sallyport.baseUrl).port);
    ({ key } = await createApplication(sallyport.baseUrl, sallyport.tenant));
    for (const [id, data] of Object.entries({ small: 'x', large: LARGE })) {
      const json = { id, type: 'token', data };
      const { status } = await call(sallyport.baseUrl, 'POST /tokens', { key, json });
      expect(status).to.equal(201);
    }
  });
  after(() => sallyport?.stop());

  /** A head that goes on and on; settles with what was answered, once the connection is closed. */
  async function startDripping(): Promise<{ socket: Socket; cut: Promise<string> }> {
    const socket = connect(port, '127.0.0.1').setEncoding('latin1');
    let answer = '';
    socket.on('data', (text) => {
      answer += text;
    });
    socket.on('error', () => undefined);
    const cut = once(socket, 'close').then(() => answer.split('\r\n')[0] ?? '');
    await Promise.race([once(socket, 'connect'), cut]);
    socket.write('GET /tokens/small HTTP/1.1\r\nHost: localhost\r\n');
    return { socket, cut };
  }

  /** Asks for a megabyte and reads none of it yet. */
  async function startReading(): Promise<IncomingMessage> {
    const asking = request(`${sallyport.baseUrl}/tokens/large`, {
      ...{ agent: false, headers: { 'bt-api-key': key } },
    }).end();
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    return answer.pause();
  }

  async function inBursts<T>(count: number, start: () => Promise<T>): Promise<T[]> {
    const all: T[] = [];
    while (all.length < count) {
      const burst = Math.min(AT_ONCE, count - all.length);
      all.push(...(await Promise.all(Array.from({ length: burst }, start))));
    }
    return all;
  }

  it('are cut or waited for, and keep nobody else from being served', async () => {
    const pid = sallyport.planes.dataPlane.pid();
    const readers = await inBursts(READING, startReading);
    const callers = startCallers(CALLERS, () => ({
      line: 'GET /tokens/small',
      answer: call(sallyport.baseUrl, 'GET /tokens/small', { key }),
    }));
    let samples: Sample[];
    let answers: string[];
    try {
      const dripping = await inBursts(DRIPPING, startDripping);
      let isOver = false;
      const cut = Promise.all(dripping.map((one) => one.cut)).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        for (const { socket } of dripping) if (socket.writable) socket.write('X-More: x\r\n');
        await Promise.race([cut, delay(DRIP_MS)]);
      }
      answers = await cut;
    } finally {
      samples = await callers.stop();
    }
    // A drip in the very moment of the cut may cost its sender the answer, not the cut.
    expect([TOLD, '']).to.include.members([...new Set(answers)]);
    expect(answers.filter((line) => line === TOLD).length).to.be.greaterThan(DRIPPING / 2);
    expect(samples.filter(({ status }) => status !== 200)).to.deep.equal([]);
    for (const reader of readers) {
      let characters = 0;
      for await (const chunk of reader.setEncoding('utf8')) characters += chunk.length;
      expect(characters).to.be.greaterThan(LARGE.length);
    }
    expect(sallyport.planes.dataPlane.pid()).to.equal(pid);
  });

  it('have less than 6 s for a head', () => {
    const { headersTimeout, connectionsCheckingInterval } = LISTENER_OPTIONS;
    expect(headersTimeout + connectionsCheckingInterval).to.be.below(CUT_MS_MAX);
  });
});
