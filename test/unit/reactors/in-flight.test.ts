/** The gauge of running reactions comes back to zero, however a reaction ends. */
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { runReaction, type ScriptToRun } from '../../../data-plane/reactors/reaction.ts';
import type { ReactingServices } from '../../../data-plane/services.ts';
import { createReactionMetrics } from '../../../shared/observability/reaction-metrics.ts';

const ID = '6f1c1c6e-0000-4000-8000-000000000001';

describe('reactions in flight', () => {
  it('are none after one that could not begin, or was lost', async () => {
    const metrics = createReactionMetrics({ registry: new Registry() }, () => 1);
    const fail = (what: string) => () => Promise.reject(new Error(what));
    const begin = {
      ...{ tenant_id: ID, reactor_id: ID, config_version: ID },
      ...{ code: '', code_version: 'v' },
    };
    const ends: [application_id: string | null, message: string][] = [
      [ID, 'the database is gone'],
      [null, 'the host is gone'],
    ];
    for (const [application_id, message] of ends) {
      const reaction: ScriptToRun = {
        ...{ reactor: { ...begin, application_id }, args: '{}', configuration: '{}' },
        right: { current: async () => undefined },
      };
      const services = {
        applications: { byId: fail('the database is gone') },
        reactions: {
          ...{ metrics, scriptFetch: { fetchFor: () => fail('no fetch') } },
          sandbox: { reuse: false, run: fail('the host is gone') },
        },
      } as unknown as ReactingServices;
      const origin = { head: { traceId: 'trace' }, callingRun: undefined };
      const error: unknown = await runReaction(reaction, origin, services, fail('no route')).catch(
        (reason: unknown) => reason,
      );
      expect(error).to.have.property('message', message);
      const { values } = await metrics.inFlight.get();
      expect(values.map(({ value }) => value)).to.deep.equal([0]);
    }
  });
});
