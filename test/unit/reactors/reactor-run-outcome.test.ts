import { expect } from 'chai';
import { outcomeOf } from '../../../cli/reactor-outcome.ts';
import { ReturnedError, readReturned } from '../../../data-plane/reactors/returned.ts';
import { failureAnswer, runtimeError } from '../../../data-plane/reactors/script-failure.ts';
import type { ScriptResult } from '../../../shared/sandbox/protocol.ts';

type Failure = Exclude<ScriptResult, { kind: 'ok' | 'custom_response' | 'busy' }>;

const LONG = 'x'.repeat(2_000);
const ERROR = { name: 'RateLimitError', status: 429, detail: 'Rate Limit Exceeded' };
/** Each with its exit code. */
const FAILURES: [Failure, number][] = [
  [{ kind: 'error', error: { ...ERROR, errors: { a: ['b'] } } }, 1],
  [{ kind: 'syntax', message: 'Unexpected token', line: 3 }, 1],
  [{ kind: 'syntax', message: LONG, line: undefined }, 1],
  [{ kind: 'type', message: LONG }, 1],
  [{ kind: 'unknown_module', module: `"${LONG}` }, 1],
  [{ kind: 'timeout', limit: 'run', limit_ms: 30_000 }, 3],
  [{ kind: 'timeout', limit: 'compute', limit_ms: 10_000 }, 3],
  [{ kind: 'memory' }, 3],
  [{ kind: 'result_too_large' }, 3],
  [{ kind: 'crashed' }, 3],
  [{ kind: 'interrupted' }, 3],
];

const deep = (levels: number): string => `{"raw":${'['.repeat(levels)}${']'.repeat(levels)}}`;

describe('the outcome of `reactor run`', () => {
  for (const [failure, exit_code] of FAILURES) {
    it(`tells ${failure.kind} as the data plane answers it`, () => {
      const outcome = outcomeOf(failure, undefined);
      const answered = JSON.parse(String(failureAnswer(failure, undefined).body));
      expect(outcome).to.deep.include({ exit_code, error: answered });
    });
  }

  it('tells what cannot be a result as the data plane answers it', () => {
    for (const value of ['5', '"text"', '[]', 'true', deep(65), deep(3_000)]) {
      let message = '';
      try {
        readReturned(value);
      } catch (error) {
        if (error instanceof ReturnedError) message = error.message;
      }
      const answered = JSON.parse(String(runtimeError(message, undefined).body));
      expect(message, value.slice(0, 10)).not.to.equal('');
      const outcome = outcomeOf({ kind: 'ok', value }, undefined);
      expect(outcome, value.slice(0, 10)).to.deep.equal({ exit_code: 1, error: answered });
    }
    for (const value of ['null', '{}', deep(64)]) {
      const outcome = outcomeOf({ kind: 'ok', value }, undefined);
      expect(outcome).to.deep.equal({ exit_code: 0, value });
    }
  });

  it('tells a custom response as the script threw it, unless it is no end of a request', () => {
    const custom = { kind: 'custom_response', headers: { 'X-A': 'b' }, body: '{"a":1}' } as const;
    expect(outcomeOf({ ...custom, status: 418 }, undefined)).to.deep.equal({
      exit_code: 1,
      error: { status: 418, headers: { 'X-A': 'b' }, body: { a: 1 } },
    });
    const interim = { ...custom, status: 100 };
    const answered = JSON.parse(String(failureAnswer(interim, undefined).body));
    expect(outcomeOf(interim, undefined)).to.deep.equal({ exit_code: 1, error: answered });
  });

  it('takes body, headers or both from a transform, and nothing else for a message', () => {
    const good = [
      ...['{"body":null}', '{"headers":{}}', '{"raw":{"body":1}}'],
      '{"headers":{"a":1,"b":null,"Set-Cookie":["c","d"]},"body":"e"}',
    ];
    const bad = [
      ...['null', '{}', '{"raw":{}}', '{"body":1,"headers":[]}'],
      ...['{"headers":{"a":["b"]}}', '{"headers":{"a":{}}}', '{"headers":{"set-cookie":[{}]}}'],
    ];
    for (const value of good) {
      expect(outcomeOf({ kind: 'ok', value }, 'response').exit_code, value).to.equal(0);
    }
    for (const value of bad) {
      expect(outcomeOf({ kind: 'ok', value }, 'request').exit_code, value).to.equal(1);
    }
  });
});
