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
    const isWritten = repeatFilter();
    expect(isWritten(lost('ECONNRESET'), 40, 0)).to.equal(true);
    expect(isWritten(lost('ECONNRESET'), 40, 999)).to.equal(false);
    expect(isWritten(lost('EPIPE'), 40, 999)).to.equal(true);
    expect(isWritten(lost('ECONNRESET'), 50, 999)).to.equal(true);
    expect(isWritten(lost('ECONNRESET'), 40, 1_000)).to.equal(true);
  });

  it('are all written when they are about requests, or no warnings', () => {
    const isWritten = repeatFilter();
    for (let times = 0; times < 3; times++) {
      expect(isWritten([{ trace_id: 'a' }, 'failed'], 50, 0)).to.equal(true);
      expect(isWritten(['started'], 30, 0)).to.equal(true);
      expect(isWritten(['said'], 40, 0)).to.equal(times === 0);
    }
  });
});
