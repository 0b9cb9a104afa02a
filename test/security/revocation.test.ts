/**
 * Revoked means revoked (design section 1, invariant 4): callers hammer two data planes while a right
 * is taken away or given, with and without Redis, and with the notices lost on the way.
 */
import { expect } from 'chai';
import { NOTICE_CHANNEL } from '../../shared/config-entries/config-change.ts';
import { JOBS_CHANNEL } from '../../shared/jobs/job-store.ts';
import { type Sample, startCallers } from '../support/callers.ts';
import { randomCardNumber } from '../support/card-numbers.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import { startRedisOrSkip, type TestRedis } from '../support/redis.ts';
import { type SlowRelay, startSlowRelay } from '../support/slow-relay.ts';
import {
  createApplication,
  REVEAL_ALL,
  startTestPlanes,
  type TestApplication,
  type TestPlanes,
} from './planes.ts';

const CALLERS = 20;
/** Before the change: every caller has been served by both data planes, so both have it cached. */
const WARM_ANSWERS = CALLERS * 3;
/** After it: more than one request of each caller to each data plane. */
const ANSWERS_AFTER = CALLERS * 4;

interface Round {
  readonly planes: TestPlanes;
  readonly tenant: TestTenant;
  readonly application: TestApplication;
  readonly number: string;
  /** A management call, through one of the data planes. */
  manage(line: string, json?: JsonObject): Promise<void>;
}

interface Change {
  readonly what: string;
  /** What the application may do before. */
  readonly grants?: JsonObject;
  /** Settles with the moment from which on the change must hold; `Date.now()` unless given. */
  readonly make: (round: Round) => Promise<number | undefined>;
  /** What a request that began after the change may answer. */
  readonly holds: (sample: Sample, round: Round) => boolean;
  /** What a request that began before may answer besides. */
  readonly before: readonly number[];
}

const SERVED = [200, 201];
const grantsOf = (transform: string): JsonObject => ({
  rules: [{ ...REVEAL_ALL[0], transform }],
});
const update = (over: JsonObject) => ({ name: 'Tokens', ...over });
const status = (wanted: number) => (sample: Sample) => sample.status === wanted;
const at = (after: Promise<void>): Promise<undefined> => after.then(() => undefined);

const CHANGES: Change[] = [
  {
    what: 'a key that was regenerated',
    make: ({ manage, application }) =>
      at(manage(`POST /applications/${application.id}/regenerate`)),
    holds: status(401),
    before: SERVED,
  },
  {
    what: 'a key whose application was deleted',
    make: ({ manage, application }) => at(manage(`DELETE /applications/${application.id}`)),
    holds: status(401),
    before: SERVED,
  },
  {
    what: 'a permission that was taken away',
    make: ({ manage, application }) =>
      at(manage(`PUT /applications/${application.id}`, update({ permissions: ['token:delete'] }))),
    holds: status(403),
    before: SERVED,
  },
  {
    what: 'a reveal rule that became a mask',
    make: ({ manage, application }) =>
      at(manage(`PUT /applications/${application.id}`, update(grantsOf('mask')))),
    holds: (sample, { number }) => SERVED.includes(sample.status) && !sample.text.includes(number),
    before: SERVED,
  },
  {
    what: 'an application whose time is over',
    make: async ({ manage, application }) => {
      const expiresAt = Date.now() + 700;
      const expires_at = new Date(expiresAt).toISOString();
      await manage(
        `PUT /applications/${application.id}`,
        update({ ...grantsOf('reveal'), expires_at }),
      );
      return expiresAt;
    },
    holds: status(401),
    before: SERVED,
  },
  {
    what: 'a tenant that was deleted',
    make: ({ manage }) => at(manage('DELETE /tenants/self')),
    holds: status(401),
    before: SERVED,
  },
  {
    what: 'the refusal of a permission that was granted',
    grants: { permissions: ['token:delete'] },
    make: ({ manage, application }) =>
      at(manage(`PUT /applications/${application.id}`, update(grantsOf('reveal')))),
    holds: ({ status: answered }) => SERVED.includes(answered),
    before: [403],
  },
  {
    what: 'a tenant setting that was changed',
    make: ({ manage, tenant }) =>
      at(
        manage('PUT /tenants/self', { name: tenant.id, settings: { fingerprint_tokens: 'false' } }),
      ),
    holds: ({ line, status: answered, text }) =>
      SERVED.includes(answered) &&
      (line !== 'POST /tokens' || !/"fingerprint"(?!.*"deduplicated":true)/.test(text)),
    before: SERVED,
  },
];

/** Runs one change under load and answers what was seen; asserts that it held. */
async function playRound(planes: TestPlanes, change: Change): Promise<void> {
  const round = await setUp(planes, change.grants);
  const callers = startCallers(CALLERS, requestsOf(round));
  await callers.answered(WARM_ANSWERS);
  const moment =
    (await change.make(round).catch(async (error: unknown) => {
      await callers.stop();
      throw error;
    })) ?? Date.now();
  await callers.answeredSince(moment, ANSWERS_AFTER);
  const samples = await callers.stop();
  const after = samples.filter(({ beganAt }) => beganAt > moment);
  const wrong = after.filter((sample) => !change.holds(sample, round));
  expect(wrong.slice(0, 3), `${wrong.length} of ${after.length} after the change`).to.deep.equal(
    [],
  );
  const odd = samples.filter(
    (sample) => !change.before.includes(sample.status) && !change.holds(sample, round),
  );
  expect(odd.slice(0, 3), 'neither served nor refused').to.deep.equal([]);
  const warm = samples.slice(0, WARM_ANSWERS / 2).map((sample) => sample.status);
  expect(change.before).to.include.members(warm);
}

async function setUp(planes: TestPlanes, grants = grantsOf('reveal')): Promise<Round> {
  const tenant = await planes.addTenant('Acme');
  const number = randomCardNumber();
  const [url = ''] = planes.urls;
  const owner = await createApplication(url, tenant);
  const json = { id: 'the-card', type: 'card', data: { number } };
  const { status: stored } = await call(url, 'POST /tokens', { key: owner.key, json });
  expect(stored).to.equal(201);
  const manage = async (line: string, body?: JsonObject): Promise<void> => {
    const key = tenant.managementKey;
    const answer = await call(url, line, body === undefined ? { key } : { key, json: body });
    expect(answer.status, answer.text).to.be.within(200, 204);
  };
  return {
    planes,
    tenant,
    number,
    manage,
    application: await createApplication(url, tenant, grants),
  };
}

/** Reads, creates, lists and updates in turn, each caller by turns at all data planes. */
function requestsOf({ planes, application: { key }, number }: Round) {
  const lines = [
    'GET /tokens/the-card',
    'POST /tokens',
    'GET /tokens?size=2',
    'PATCH /tokens/the-card',
  ];
  let turn = 0;
  return (caller: number) => {
    turn += 1;
    const line = lines[caller % lines.length] ?? '';
    const url = planes.urls[turn % planes.urls.length] ?? '';
    const [method] = line.split(' ');
    if (method === 'POST') {
      const json = { type: 'card', data: { number }, deduplicate_token: caller % 8 === 1 };
      return { line, answer: call(url, line, { key, json }) };
    }
    if (method === 'PATCH') {
      const headers = { 'content-type': 'application/merge-patch+json' };
      return { line, answer: call(url, line, { key, headers, body: '{"metadata":{"a":"b"}}' }) };
    }
    return { line, answer: call(url, line, { key }) };
  };
}

async function startTwo(redisUrl?: string): Promise<TestPlanes> {
  const planes = await startTestPlanes({ REDIS_URL: redisUrl, LOG_LEVEL: 'silent' });
  await planes.addDataPlane();
  return planes;
}

describe('what was revoked', () => {
  describe('without Redis', () => {
    let planes: TestPlanes;
    before(async () => {
      planes = await startTwo();
    });
    after(() => planes.stop());

    for (const change of CHANGES) {
      it(`is refused at once by every data plane: ${change.what}`, async () => {
        for (let round = 0; round < 3; round += 1) await playRound(planes, change);
      });
    }

    it('is refused although the notices are cut off', async () => {
      /** What each of the connections listened to. */
      const cut = async (): Promise<string[]> => {
        const { rows } = await planes.admin.query<{ query: string }>(
          `SELECT query, pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE application_name = 'sallyport-notices' AND datname = current_database()`,
        );
        return rows.map(({ query }) => query).sort();
      };
      // Changes: the two data planes and the job process. Jobs: the job process.
      const [changes, jobs] = [`LISTEN "${NOTICE_CHANNEL}"`, `LISTEN "${JOBS_CHANNEL}"`];
      expect(await cut()).to.deep.equal([changes, changes, changes, jobs]);
      for (const change of CHANGES) {
        const make = (round: Round) => cut().then(() => change.make(round));
        await playRound(planes, { ...change, make });
      }
    });
  });

  describe('with Redis', () => {
    let redis: TestRedis;
    let relay: SlowRelay;
    let planes: TestPlanes | undefined;
    before(async function () {
      redis = await startRedisOrSkip(this);
      relay = await startSlowRelay(redis.url);
      planes = await startTwo(relay.url);
    });
    after(async () => {
      await planes?.stop();
      await relay?.close();
      await redis?.stop();
    });
    const play = (change: Change) => playRound(planes as TestPlanes, change);

    for (const change of CHANGES) {
      it(`is refused at once by every data plane: ${change.what}`, () => play(change));
    }

    // Attack F-12: longer than anybody waits for an answer of it.
    it('is refused while Redis is slow', async () => {
      relay.delayAnswers(500);
      const asked = relay.asked();
      for (const change of CHANGES) await play(change);
      expect(relay.asked()).to.be.greaterThan(asked);
      relay.delayAnswers(0);
    });

    it('is refused while Redis hangs', async () => {
      for (const change of CHANGES) {
        const make = (round: Round) => {
          process.kill(redis.pid, 'SIGSTOP');
          return change.make(round);
        };
        await play({ ...change, make }).finally(() => process.kill(redis.pid, 'SIGCONT'));
      }
    });

    it('is refused when Redis dies in between, and without it from then on', async () => {
      for (const change of CHANGES) {
        const make = (round: Round) => redis.stop().then(() => change.make(round));
        await play({ ...change, make });
      }
    });
  });
});
