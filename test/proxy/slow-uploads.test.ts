/**
 * Bodies of callers that come slowly, through a running proxy and at its real limits, all side by side: one
 * that is handed on may take long as long as it moves, one that is read may not.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { BODY_LIMITS } from '../../shared/http/slow-bodies.ts';
import { type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, request } from './raw-client.ts';

const RESERVED = 'BT-PROXY-CONNECTION: keep-alive';
const STEP_MS = 1_000;
/** Beyond every limit of time there is. */
const STEPS = BODY_LIMITS.wholeMs / STEP_MS + 5;
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok';

interface Upload {
  readonly type: string;
  /** Sent each second; the body is as long as all of them. */
  readonly piece: string;
  readonly steps?: number;
  readonly lines?: readonly string[];
}

describe('a body that comes slowly', () => {
  let proxies: Proxies;
  let origin: Origin;
  let keys: string[];
  before(async () => {
    proxies = await startProxies();
    origin = await startOrigin(OK);
    const { key } = await proxies.proxy({ destination_url: origin.url });
    keys = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
  });
  after(async () => {
    await origin?.close();
    await proxies?.stop();
  });

  /** The answer. With fewer `steps` than the body has, the rest never comes. */
  async function upload({ type, piece, steps = STEPS, lines = [] }: Upload) {
    const length = piece.length * STEPS + 1;
    const head = [...keys, ...lines, `Content-Type: ${type}`, `Content-Length: ${length}`];
    const socket = connect(proxies.port, '127.0.0.1').setEncoding('latin1');
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (more) => {
      text += more;
    });
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    socket.write(request('POST /proxy', [...head, 'Connection: close']));
    for (let step = 0; step < steps && socket.writable && text === ''; step += 1) {
      socket.write(piece);
      await delay(STEP_MS);
    }
    if (steps === STEPS && text === '') socket.write('!');
    await closed;
    return parseAnswer(text);
  }

  const failureOf = ({ status, body }: { status: number; body: string }) => {
    const { proxy_error } = JSON.parse(body);
    return [status, proxy_error.status, proxy_error.title, proxy_error.detail];
  };
  const LATE = [408, 408, 'Request Timeout', 'The request did not arrive in time'];

  it('arrives when it is handed on and moves, and is refused otherwise', async function () {
    this.timeout(90_000);
    const stream = 'application/octet-stream';
    const moving = 'x'.repeat(100);
    const [handedOn, byTheOther, read, ...stuck] = await Promise.all([
      upload({ type: stream, piece: moving }),
      upload({ type: stream, piece: moving, lines: [RESERVED] }),
      upload({ type: 'application/json', piece: moving }),
      upload({ type: stream, piece: moving, steps: 1 }),
      upload({ type: stream, piece: moving, steps: 1, lines: [RESERVED] }),
      upload({ type: stream, piece: 'x' }),
      upload({ type: 'application/json', piece: moving, steps: 1 }),
    ]);
    for (const { status, body } of [handedOn, byTheOther]) {
      expect([status, body]).to.deep.equal([200, 'ok']);
    }
    for (const answer of [read, ...stuck]) expect(failureOf(answer)).to.deep.equal(LATE);
    // Of the others nothing came to its end there, and nothing of them is left.
    expect(origin.received).to.have.length(2);
    await origin.allClosed();
  });
});
