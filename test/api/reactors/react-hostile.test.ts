/** `POST /reactors/{id}/react` under attack: bodies, bombs of one tenant, hosts that die. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { HOST_FILE } from '../../../shared/sandbox/code-files.ts';
import { type Call, call } from '../../support/http-call.ts';
import { skipUnlessLinux } from '../../support/skip.ts';
import type { Grants } from '../tokens/vault.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const TITLE = 'One or more validation errors occurred.';
const MARK = 'hostile-mark-4242';
const ABORTS = 'const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]);';
const REACTING: Grants = {
  rules: [
    {
      ...{ priority: 1, container: '/', transform: 'reveal' },
      permissions: ['token:create', 'token:read', 'token:use'],
    },
  ],
};

describe('reactors under attack', () => {
  let reactors: Reactors;
  let echo: Reactor;
  /** Another tenant: its key, its reactor, its token. */
  let neighbour: { key: string; reactor: Reactor; token: string };
  before(async () => {
    reactors = await startReactors();
    echo = await reactors.script('return { raw: req.args }');
    const tenant = await reactors.control.addTenant('Neighbour');
    const { key } = await reactors.application(REACTING, tenant);
    const code = 'module.exports = async (req) => ({ raw: req.args.a + 1 });';
    const reactor = await reactors.reactor({ code }, tenant);
    const json = { type: 'token', data: 'of the neighbour' };
    const { body } = await call(reactors.url, 'POST /tokens', { key, json });
    neighbour = { key, reactor, token: String(body.id) };
  });
  after(() => reactors?.stop());

  /** Reactions and reads of the neighbour, one after the other while `attack` runs; all must succeed. */
  async function beside<T>(attack: () => Promise<T>): Promise<T> {
    const { key, reactor, token } = neighbour;
    let over = false;
    const attacked = attack().finally(() => {
      over = true;
    });
    for (let a = 0; !over; a += 1) {
      const reacted = await reactors.react(reactor, { args: { a } }, key);
      expect([reacted.status, reacted.body.raw], 'the neighbour').to.deep.equal([200, a + 1]);
      const read = await call(reactors.url, `GET /tokens/${token}`, { key });
      expect([read.status, read.body.data], 'its token').to.deep.equal([200, 'of the neighbour']);
    }
    return attacked;
  }

  const json = { 'content-type': 'application/json' };
  const BODIES: readonly [string, Call, readonly number[]][] = [
    ['no JSON', { body: `{"args":${MARK}`, headers: json }, [400]],
    ['two values', { body: '{"args":1}{"args":2}', headers: json }, [400]],
    ['a text', { body: `"${MARK}"`, headers: json }, [400]],
    ['an array', { body: `["${MARK}"]`, headers: json }, [400]],
    [
      'arguments 70 deep',
      { body: `{"args":${'['.repeat(70)}${']'.repeat(70)}}`, headers: json },
      [400],
    ],
    ['arguments a million deep', { body: '{"args":'.repeat(5e5), headers: json }, [400]],
    [
      '20,000 members',
      {
        json: { args: Object.fromEntries(Array.from({ length: 2e4 }, (_item, i) => [`m${i}`, 1])) },
      },
      [400],
    ],
    ['half a character', { body: `{"args":"\\ud800${MARK}"}`, headers: json }, [400]],
    [
      'bytes that are no UTF-8',
      { body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]), headers: json },
      [400],
    ],
    ['a number that is not exact', { body: '{"args":1e999}', headers: json }, [400]],
    ['more than 5 MiB', { json: { args: MARK.repeat(4e5) } }, [413]],
    [
      'a form',
      { body: `args=${MARK}`, headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      [415],
    ],
    ['an expression that does not end', { json: { args: `{{ ${MARK}` } }, [200, 400]],
    ['an expression in 40,000 others', { json: { args: `{{ ${MARK} }}`.repeat(4e4) } }, [400]],
    ['an expression of 1 MiB', { json: { args: `{{ ${'x'.repeat(1e6)} | json: '$' }}` } }, [400]],
  ];
  for (const [what, given, statuses] of BODIES) {
    it(`refuses a body with ${what}, without repeating it`, async () => {
      const line = `POST /reactors/${echo.id}/react`;
      const answer = await beside(() => call(reactors.url, line, { key: reactors.key, ...given }));
      expect(answer.status, answer.text.slice(0, 500)).to.be.oneOf([...statuses]);
      if (answer.status !== 200) expect(answer.text).not.to.contain(MARK);
    });
  }

  it('gives prototype names of arguments to the code as plain members', async () => {
    const body = '{"args":{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}}}}';
    const line = `POST /reactors/${echo.id}/react`;
    const answer = await call(reactors.url, line, { key: reactors.key, body, headers: json });
    expect(answer.text).to.equal(`{"raw":${body.slice('{"args":'.length, -1)}}`);
  });

  for (const [what, code, status] of [
    [
      '300,000 members under other names',
      "const o = {}; for (let i = 0; i < 3e5; i++) o['k' + i] = 1; return { ...o, raw: 1 };",
      200,
    ],
    ['a tokenize of 2 MiB', "return { tokenize: 'x'.repeat(2 << 20) };", 500],
    [
      'a tokenize of 20,000 members',
      "const o = {}; for (let i = 0; i < 2e4; i++) o['k' + i] = 1; return { tokenize: o };",
      400,
    ],
    ['a tokenize of 101 tokens', 'return { tokenize: Array(101).fill("a") };', 400],
    [
      'a tokenize that is a token of another id form',
      "return { tokenize: { type: 'token', id: '../x', data: 1 } };",
      400,
    ],
    [
      'a raw that is 2,000 deep',
      "return { raw: JSON.parse('['.repeat(2000) + ']'.repeat(2000)) };",
      500,
    ],
    ['half a character', "return { raw: '\\ud800' };", 500],
    ['a number that nobody can keep', "return { raw: JSON.rawJSON('1e400') };", 500],
    [
      'a custom body of 300,000 members',
      "const body = {}; for (let i = 0; i < 3e5; i++) body['k' + i] = 1; throw { name: 'CustomHttpResponseError', status: 201, body };",
      201,
    ],
    [
      'custom headers of the connection',
      "throw { name: 'CustomHttpResponseError', status: 200, headers: { 'content-length': '5', 'transfer-encoding': 'chunked', connection: 'upgrade', 'set-cookie': 'a=b' }, body: 1 };",
      200,
    ],
    [
      'a custom status of 101',
      "throw { name: 'CustomHttpResponseError', status: 101, body: 1 };",
      500,
    ],
  ] as const) {
    it(`answers ${status} for ${what}`, async () => {
      const reactor = await reactors.script(code);
      const answer = await beside(() => reactors.react(reactor));
      expect(answer.status, answer.text.slice(0, 300)).to.equal(status);
      for (const name of ['set-cookie', 'upgrade', 'transfer-encoding']) {
        expect(answer.headers.get(name)).to.equal(null);
      }
    }).timeout(60_000);
  }

  it('serves on when a host is killed in the middle of a run', async function () {
    skipUnlessLinux(this, 'the hosts are found in /proc');
    const slow = await reactors.script(
      'await new Promise((end) => setTimeout(end, 500)); return { raw: 1 }',
    );
    const { status, body } = await beside(async () => {
      const running = reactors.react(slow);
      await delay(250);
      process.kill(servingHost(), 'SIGKILL');
      return running;
    });
    // Run again, or blamed when it was alone: it cannot be told from one that ended its host.
    expect(body).to.deep.include(status === 200 ? { raw: 1 } : { status: 500, title: TITLE });
  }).timeout(60_000);

  it('answers 500 at once when a host dies under a run that has called out', async function () {
    skipUnlessLinux(this, 'the hosts are found in /proc');
    let asked = (): void => undefined;
    const called = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const silent = createServer(() => asked()).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    try {
      const { port } = silent.address() as AddressInfo;
      const caller = await reactors.script(`await fetch('http://127.0.0.1:${port}/'); return {};`);
      const running = reactors.react(caller);
      await called;
      process.kill(servingHost(), 'SIGKILL');
      const { status, body } = await running;
      expect([status, body.detail]).to.deep.equal([500, 'Reactor Runtime Error']);
      const { key, reactor } = neighbour;
      expect((await reactors.react(reactor, { args: { a: 1 } }, key)).body.raw).to.equal(2);
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  }).timeout(60_000);

  it('serves another tenant while 500 callers of one set off bombs', async () => {
    const bombs = await Promise.all(
      [ABORTS, 'for (;;) {}', 'return Array(1e9).fill(0);'].map((code) => reactors.script(code)),
    );
    const attack = () =>
      Promise.all(
        Array.from({ length: 500 }, (_item, index) =>
          reactors.react(bombs[index % bombs.length] as Reactor),
        ),
      );
    const answers = await beside(attack);
    const statuses = new Set(answers.map(({ status }) => status));
    // 503 for runs that lost their hosts to others too often.
    expect([500, 429, 503]).to.include.members([...statuses]);
    expect([...statuses]).to.include(429);
    for (const { status, headers } of answers) {
      if (status === 429) expect(headers.get('retry-after')).to.equal('1');
    }
  }).timeout(180_000);
});

/** The host that was started first: the one tenants are placed on, until it is lost. */
function servingHost(): number {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
    .trim()
    .split(' ');
  const isHost = (pid: string): boolean =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(HOST_FILE);
  const first = children.find((pid) => pid !== '' && isHost(pid));
  if (first === undefined) throw new Error('there is no sandbox host');
  return Number(first);
}
