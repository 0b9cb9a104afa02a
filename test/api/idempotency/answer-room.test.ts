/** Reactions with a key whose answers are large: at some point their code is not run any more. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Exchange } from '../../../data-plane/exchange.ts';
import { AnswerRoom } from '../../../data-plane/reactors/answer-room.ts';
import { keepReaction, type ReactionToKeep } from '../../../data-plane/reactors/keep-reaction.ts';
import type { ReactingServices } from '../../../data-plane/services.ts';
import { createDataKeys, type TenantKeys } from '../../../shared/crypto/data-keys.ts';
import { ApiError } from '../../../shared/errors.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';

const LARGE = JSON.stringify({ raw: 'x'.repeat(100_000) });
const SMALL = JSON.stringify({ raw: 'x' });

describe('the room for kept answers of reactions', () => {
  let control: TestControlPlane;
  let keys: TenantKeys;
  before(async () => {
    control = await startTestControlPlane();
    keys = await createDataKeys(control.pool, control.installation).forTenant(control.tenant.id);
  });
  after(() => control?.stop());

  /** Reactions of the tenant, in room for two of the large answers; how often code was run, too. */
  function reacting() {
    const runs = { count: 0 };
    const answerRoom = new AnswerRoom(2 * LARGE.length);
    const log = createLogger('test', 'silent');
    const { pool, tenant } = control;
    const services = { pool, reactions: { answerRoom }, log } as unknown as ReactingServices;
    const reaction = {
      reactor: { reactor_id: randomUUID() },
      right: { used: [] },
      cvcs: { due_at_ms: null },
    } as unknown as ReactionToKeep;
    const react = async (status: number, body: string, hasKey = true): Promise<number> => {
      const claim = { tenant_id: tenant.id, scope: randomUUID(), keys };
      const exchange = { head: { traceId: 't' }, ...(hasKey ? { idempotency: claim } : {}) };
      const answer = keepReaction(exchange as Exchange, reaction, services, async (withAnswer) => {
        runs.count += 1;
        if (status !== 201) return { status, body };
        await withAnswer?.(() => ({ status, body }))(async () => ({ text: '[]' }) as never);
        return { status, body };
      });
      return answer.then(
        (answered) => answered.status,
        (error: unknown) => (error instanceof ApiError ? error.status : Promise.reject(error)),
      );
    };
    return { react, runs };
  }

  it('is taken by large ones, also by those of tokens; then no code is run', async () => {
    const { react, runs } = reacting();
    expect(await react(200, LARGE)).to.equal(200);
    expect(await react(201, LARGE)).to.equal(201);
    expect(await react(200, SMALL)).to.equal(429);
    expect(runs.count).to.equal(2);
    const { rowCount } = await control.pool.query(
      'SELECT 1 FROM idempotency_records WHERE lease_id IS NOT NULL',
    );
    expect(rowCount).to.equal(0);
  });

  it('is nothing to reactions without a key', async () => {
    const { react } = reacting();
    for (let count = 0; count < 3; count += 1) expect(await react(200, LARGE, false)).to.equal(200);
    expect(await react(200, LARGE)).to.equal(200);
  });

  it('is not taken by small answers, nor by those that are not kept', async () => {
    const { react } = reacting();
    for (let count = 0; count < 3; count += 1) {
      expect(await react(200, SMALL)).to.equal(200);
      expect(await react(500, LARGE)).to.equal(500);
    }
    expect(await react(200, LARGE)).to.equal(200);
  });
});
