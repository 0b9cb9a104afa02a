import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import { createFailureLog } from '../../../shared/observability/failure-log.ts';
import type { Logger } from '../../../shared/observability/logger.ts';

const REQUEST = { method: 'POST', route: '/proxies', status: 500 };

describe('requests that failed on our side', () => {
  let lines: unknown[][];
  const logFailure = () => {
    lines = [];
    const error = (...line: unknown[]) => lines.push(line);
    return createFailureLog({ error: error as Logger['error'] });
  };

  it('are a line each, with what is known of the request', () => {
    const log = logFailure();
    const err = new ApiError('internal', 'Something failed');
    log(err, 'one', REQUEST);
    log(err, 'two');
    expect(lines).to.deep.equal([
      [{ err, trace_id: 'one', ...REQUEST }, 'request failed'],
      [{ err, trace_id: 'two' }, 'request failed'],
    ]);
  });

  it('are counted in one line a second in an outage, with its cause', () => {
    const log = logFailure();
    const cause = new Error('connect ECONNREFUSED');
    const outage = new ApiError('unavailable', 'Try again', { cause });
    for (const traceId of ['one', 'two', 'three']) log(outage, traceId, REQUEST);
    expect(lines).to.deep.equal([
      [{ err: cause, trace_id: 'one', count: 1 }, 'requests answered 503'],
    ]);
  });
});
