/** Who has an idempotency key may change between looking and running, as often as there are twins. */
import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import { inProgress } from '../../../shared/idempotency/claim.ts';
import { AnsweredMeanwhileError } from '../../../shared/idempotency/record-store.ts';
import { type Once, runOnce } from '../../../shared/idempotency/run-once.ts';

type Step = string | Error | undefined;

/** Each look and each run takes the next step: an error, what is found or made, or nothing. */
function scripted(looks: Step[], runs: Step[]): Once<string> & { readonly ran: () => number } {
  const total = runs.length;
  const next = async (steps: Step[]): Promise<string | undefined> => {
    const step = steps.shift();
    if (step instanceof Error) throw step;
    return step;
  };
  return {
    look: () => next(looks),
    run: async () => (await next(runs)) ?? 'made',
    ran: () => total - runs.length,
  };
}

const answered = (): Error => new AnsweredMeanwhileError();
const refused = new ApiError('conflict', 'taken');

describe('what is to be done once', () => {
  it('is not done when it was', async () => {
    const once = scripted(['kept'], ['made']);
    expect(await runOnce(once)).to.equal('kept');
    expect(once.ran()).to.equal(0);
  });
  it('is answered as a twin was that came first', async () => {
    for (const error of [answered(), refused]) {
      expect(await runOnce(scripted([undefined, 'twin'], [error]))).to.equal('twin');
    }
  });
  it('is tried again when the twin has failed, or its answer is too old', async () => {
    const once = scripted([undefined, undefined, undefined], [answered(), answered(), 'made']);
    expect(await runOnce(once)).to.equal('made');
    expect(once.ran()).to.equal(3);
  });
  it('is in progress when others keep having the key', async () => {
    const runs = Array.from({ length: 9 }, answered);
    const once = scripted([], runs);
    const error = await runOnce(once).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ApiError).with.property('status', 409);
    expect(once.ran()).to.equal(3);
  });
  it('tells why it was not done, once', async () => {
    const told = async (looks: Step[], runs: Step[]): Promise<string[]> => {
      const why: string[] = [];
      const notDone = (reason: string): unknown => why.push(reason);
      await runOnce({ ...scripted(looks, runs), notDone }).catch(() => undefined);
      return why;
    };
    expect(await told(['kept'], [])).to.deep.equal(['replayed']);
    expect(await told([undefined, 'twin'], [answered()])).to.deep.equal(['replayed']);
    expect(await told([], [inProgress()])).to.deep.equal(['in_progress']);
    expect(await told([inProgress()], [])).to.deep.equal(['in_progress']);
    expect(await told([], Array.from({ length: 9 }, answered))).to.deep.equal(['in_progress']);
    expect(await told([], ['made'])).to.deep.equal([]);
    expect(await told([], [refused])).to.deep.equal([]);
  });
  it('is done no second time when it was refused or failed', async () => {
    for (const error of [refused, new Error('fault')]) {
      const once = scripted([], [error, 'made']);
      expect(await runOnce(once).catch((thrown: unknown) => thrown)).to.equal(error);
      expect(once.ran()).to.equal(1);
    }
  });
});
