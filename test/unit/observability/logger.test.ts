import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { describeError, repeatFilter } from '../../../shared/observability/logger.ts';

describe('what the log says of an error', () => {
  it('keeps kind, code and place, and withholds texts that quote input', () => {
    const error = Object.assign(new Error('duplicate key: (4242424242424242)'), {
      name: 'error',
      code: '23505',
      detail: 'Key (id)=(4242424242424242) already exists.',
    });
    const text = JSON.stringify(describeError(error));
    expect(text).to.not.include('4242424242424242');
    expect(text).to.include('23505');
    expect(text).to.include('logger.test.ts');
  });

  it('withholds what a JSON parser quotes, also as a cause', () => {
    let cause: unknown;
    try {
      JSON.parse('{"number": 4242424242424242,,}');
    } catch (error) {
      cause = error;
    }
    const text = JSON.stringify(describeError(new Error('outer', { cause })));
    expect(text).to.include('outer');
    expect(text).to.not.include('4242');
  });

  it('ends at a cycle of causes, and says nothing of what is no error', () => {
    const error = new Error('loop');
    error.cause = error;
    expect(JSON.stringify(describeError(error)).length).to.be.below(20_000);
    expect(describeError('4242424242424242')).to.deep.equal({
      type: 'string',
      message: 'not an error object',
    });
  });

  it('says why a connection was lost, without a stack', () => {
    const message = 'terminating connection due to administrator command';
    const error = Object.assign(new Error(message), { name: 'error', code: '57P01' });
    expect(describeError(error)).to.deep.equal({ type: 'error', message, code: '57P01' });
  });
});

describe('lines of a kind', () => {
  const lost = (code: string) => [{ err: Object.assign(new Error('lost'), { code }) }, 'lost'];

  it('are written once a second, and others beside them', () => {
    const leftOutBefore = repeatFilter();
    expect(leftOutBefore(lost('ECONNRESET'), 40, 0)).to.equal(0);
    expect(leftOutBefore(lost('ECONNRESET'), 40, 999)).to.equal(undefined);
    expect(leftOutBefore(lost('EPIPE'), 40, 999)).to.equal(0);
    expect(leftOutBefore(lost('ECONNRESET'), 50, 999)).to.equal(0);
    expect(leftOutBefore(lost('ECONNRESET'), 40, 999)).to.equal(undefined);
    expect(leftOutBefore(lost('ECONNRESET'), 40, 1_000)).to.equal(2);
    expect(leftOutBefore(lost('ECONNRESET'), 40, 2_000)).to.equal(0);
  });

  it('are all written when they are about requests, or no warnings', () => {
    const leftOutBefore = repeatFilter();
    for (let times = 0; times < 3; times++) {
      expect(leftOutBefore([{ trace_id: 'a' }, 'failed'], 50, 0)).to.equal(0);
      expect(leftOutBefore(['started'], 30, 0)).to.equal(0);
      expect(leftOutBefore(['said'], 40, 0)).to.equal(times === 0 ? 0 : undefined);
    }
  });

  it('carry how many were left out since the one before', () => {
    const logger = new URL('../../../shared/observability/logger.ts', import.meta.url);
    const program = `
      import { createLogger } from '${logger}';
      let now = 0;
      performance.now = () => now;
      const log = createLogger('test', 'info');
      for (now of [0, 1, 2, 1_000, 2_000]) {
        log.warn('said');
        log.warn({ reason: 'why' }, 'told');
      }`;
    const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
    const lines = stderr
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ msg, reason, repeated }) => [msg, reason, repeated])).to.deep.equal([
      ['said', undefined, undefined],
      ['told', 'why', undefined],
      ['said', undefined, 2],
      ['told', 'why', 2],
      ['said', undefined, undefined],
      ['told', 'why', undefined],
    ]);
  });
});
