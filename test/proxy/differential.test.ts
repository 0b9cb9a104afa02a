/**
 * Requests seen = requests sent (attacks C-14): thousands of damaged requests, pipelined and cut
 * anywhere, go to the gateway directly and through nginx. What reaches the destination is held against
 * what another reader of the same bytes says was sent: nginx itself, or RFC 9112 to the letter.
 */
import type { NetConnectOpts } from 'node:net';
import { expect } from 'chai';
import { inParallel } from '../support/in-parallel.ts';
import { startNginxOrSkip, type TestNginx } from '../support/nginx.ts';
import { converse } from './differential/client.ts';
import {
  BASE,
  type ClientAnswer,
  connectionOf,
  type Expected,
  keyOf,
  missingFrom,
  readAnswers,
  replay,
  targetBehindProxy,
} from './differential/comparison.ts';
import { MUTATIONS } from './differential/mutations.ts';
import { FRONTS, frontOf, readSent, type SentByNginx } from './differential/nginx-front.ts';
import { type RecordingOrigin, startRecordingOrigin } from './differential/recording-origin.ts';
import { type Connection, isWhole, type Keys, makeConnection } from './differential/requests.ts';
import { type Message, readMessages } from './differential/strict-reader.ts';
import { type Proxies, startProxies } from './proxies.ts';

/** To look further: DIFFERENTIAL_SEED=2 and so on. */
const SEED = Number(process.env.DIFFERENTIAL_SEED ?? 1);
const MUTATED_MIN = 5_000;
const EXCHANGE_MS_MAX = 120_000;

/** Connections until enough of their requests are damaged. */
function makeConnections(keys: Keys): Connection[] {
  const connections: Connection[] = [];
  for (let mutated = 0; mutated < MUTATED_MIN; ) {
    const connection = makeConnection(SEED, connections.length, keys);
    connections.push(connection);
    mutated += connection.mutations.filter((name) => name !== 'none').length;
  }
  return connections;
}

/** Whether the path of an answer is anywhere in what was sent: paths have the connection's number. */
const isAskedFor = (seen: string, { bytes }: Connection): boolean =>
  bytes.includes(`/proxy${seen.slice(BASE.length).split('?')[0]}`);

/** What the gateway must make of requests: those for its proxies, as the destination should see them. */
function expectedOf(messages: readonly Expected[]): Expected[] {
  return messages.flatMap(({ method, target, body }) => {
    const behind = targetBehindProxy(target);
    return behind === undefined ? [] : [{ method, target: behind, body }];
  });
}

describe('requests seen by a destination', function () {
  this.timeout(EXCHANGE_MS_MAX);
  let proxies: Proxies;
  const origins: RecordingOrigin[] = [];
  const fronts: TestNginx[] = [];
  before(async () => {
    proxies = await startProxies();
  });
  after(async () => {
    for (const front of fronts) await front.stop();
    await proxies?.stop();
    for (const origin of origins) await origin.close();
  });

  /** A destination of its own, and the connections whose requests are for it. */
  async function prepare(): Promise<{ origin: RecordingOrigin; connections: Connection[] }> {
    const origin = await startRecordingOrigin();
    origins.push(origin);
    const destination_url = `http://localhost:${origin.port}${BASE}`;
    const { key: proxyKey } = await proxies.proxy({ destination_url });
    return { origin, connections: makeConnections({ apiKey: proxies.key, proxyKey }) };
  }

  async function sendAll(
    connections: readonly Connection[],
    to: NetConnectOpts,
  ): Promise<Map<Connection, ClientAnswer[]>> {
    const answers = new Map<Connection, ClientAnswer[]>();
    await inParallel(connections, async (connection) => {
      answers.set(connection, readAnswers(await converse(to, connection)));
    });
    return answers;
  }

  /** Of whatever reaches the destination: well-formed, below its base, with nothing of ours. */
  function checkOrigin({ seen, malformed, port }: RecordingOrigin): void {
    expect(malformed).to.deep.equal([]);
    for (const { target, headers } of seen) {
      expect(target).to.match(/^\/base(?=[/?]|$)/);
      expect(headers.filter(([name]) => name === 'host')).to.deep.equal([
        ['host', `localhost:${port}`],
      ]);
      const forbidden = /^(?:bt-(?!trace-id$).*|upgrade|te|trailer|proxy-.*|expect)$/;
      expect(headers.map(([name]) => name).filter((name) => forbidden.test(name))).to.deep.equal(
        [],
      );
    }
  }

  /** That the test has not looked at nothing. */
  function checkShares(seen: readonly Message[], connections: readonly Connection[]): void {
    const done = new Set(connections.flatMap(({ mutations }) => mutations));
    expect([...done]).to.have.members(['none', ...Object.keys(MUTATIONS)]);
    expect(seen.length).to.be.within(connections.length / 2, connections.length * 3);
  }

  const fail = (problem: string, connection: Connection | undefined): never => {
    throw new Error(replay(SEED, problem, connection));
  };

  it('are those that its clients sent', async () => {
    const { origin, connections } = await prepare();
    const to = { port: proxies.port, host: '127.0.0.1' };
    const answers = await sendAll(connections, to);
    checkOrigin(origin);
    checkShares(origin.seen, connections);
    const sent = new Map(connections.map((one) => [one, readMessages(one.bytes)]));
    const expected = [...sent.values()].flatMap((messages) => expectedOf(messages).map(keyOf));
    for (const key of missingFrom(expected, origin.seen.map(keyOf))) {
      fail(`${key} was not sent`, connections[connectionOf(key) ?? -1]);
    }
    for (const [connection, messages] of sent) {
      const got = answers.get(connection) ?? [];
      // One more for what is refused behind them.
      if (got.length > messages.length + 1) fail('more answers than requests', connection);
      got.forEach(({ seen }, index) => {
        const { target = '' } = messages[index] ?? {};
        if (seen !== undefined && seen !== targetBehindProxy(target)) {
          fail(`answer ${index} is that to ${seen}`, connection);
        }
      });
      const served = got.filter(({ seen }) => seen !== undefined).length;
      if (isWhole(connection) && served !== messages.length)
        fail('answers are missing', connection);
    }
  });

  for (const [name, settings] of Object.entries(FRONTS)) {
    it(`are those that nginx sent, which ${name}`, async function () {
      const { origin, connections } = await prepare();
      const nginx = await startNginxOrSkip(this, (folder) =>
        frontOf(folder, proxies.port, settings),
      );
      fronts.push(nginx);
      const answers = await sendAll(connections, { path: nginx.socket('front') });
      const sent = readSent(await nginx.stop(), settings);
      checkOrigin(origin);
      checkShares(origin.seen, connections);
      const keys = origin.seen.map(({ method, target, body }) =>
        keyOf({ method, target, body: sent[0]?.body === undefined ? undefined : body }),
      );
      for (const key of missingFrom(expectedOf(sent).map(keyOf), keys)) {
        fail(`${key} was not sent by nginx`, connections[connectionOf(key) ?? -1]);
      }
      const answered = sent.filter(({ isAnswered }) => isAnswered);
      for (const { target, seen } of answered) {
        if (seen === targetBehindProxy(target)) continue;
        fail(`the answer to ${target} is that to ${seen}`, connections[connectionOf(target) ?? -1]);
      }
      for (const key of missingFrom(keys, expectedOf(answered).map(keyOf))) {
        fail(`${key} was answered unseen`, connections[connectionOf(key) ?? -1]);
      }
      checkAnswers(answers, answered);
    });
  }

  /** Every client got answers to its own requests, and those of whole requests all of them. */
  function checkAnswers(
    answers: ReadonlyMap<Connection, ClientAnswer[]>,
    answered: readonly SentByNginx[],
  ): void {
    const served = [...answers].map(([connection, got]) => {
      const seen = got.flatMap((one) => one.seen ?? []);
      const stranger = seen.find((target) => !isAskedFor(target, connection));
      if (stranger !== undefined) fail(`got the answer to ${stranger}`, connection);
      const isMissing = isWhole(connection) && seen.length <= connection.mutations.length;
      if (isMissing) fail('answers are missing', connection);
      return seen;
    });
    const targets = answered.map(({ seen }) => seen);
    expect(missingFrom(targets, served.flat())).to.deep.equal([]);
  }
});
