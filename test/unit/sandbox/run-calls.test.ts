import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { AnswerMessage, ServiceName } from '../../../shared/sandbox/protocol.ts';
import { RunCalls } from '../../../shared/sandbox/run-calls.ts';
import {
  ScriptCallError,
  type ScriptService,
  type ScriptServices,
} from '../../../shared/sandbox/script-services.ts';

const never: ScriptService = () => new Promise(() => undefined);

function open(services: ScriptServices) {
  const answers: (AnswerMessage & { body: string })[] = [];
  const waits: boolean[] = [];
  const calls = new RunCalls({
    ...{ id: 7, services },
    answer: (message, body) => answers.push({ ...message, body }),
    onWaiting: (waiting) => waits.push(waiting),
  });
  const call = (number: number, service: ServiceName = 'fetch', request = '{}'): void =>
    calls.take({ kind: 'call', id: 7, call: number, service }, request);
  return { calls, call, answers, waits };
}

describe('the calls of a run, whatever its host says', () => {
  it('are answered with text, and with what a script may read of a failure', async () => {
    const failing: ScriptService[] = [
      () => Promise.reject(new ScriptCallError('Refused.', 'REFUSED')),
      () => Promise.reject(new Error('connect 10.0.0.1:5432')),
      () => Promise.reject(undefined),
      () => {
        throw new Error('secret');
      },
      async () => 5 as unknown as string,
      async () => 'é'.repeat(9 * 1024 * 1024),
    ];
    let next = 0;
    const { call, answers } = open({
      bt: async (request) => `${request}!`,
      fetch: (request, signal) => (failing[next++] as ScriptService)(request, signal),
    });
    call(1, 'bt', '{"a":1}');
    for (let number = 2; number < 2 + failing.length; number += 1) call(number);
    await turn();
    expect(answers.map(({ call, ok, body }) => [call, ok, body])).to.have.deep.members([
      [1, true, '{"a":1}!'],
      [2, false, '{"message":"Refused.","code":"REFUSED"}'],
      [3, false, '{"message":"The call failed."}'],
      [4, false, '{"message":"The call failed."}'],
      [5, false, '{"message":"The call failed."}'],
      [6, false, '{"message":"The call failed."}'],
      [7, false, '{"message":"The answer is too large.","code":"TOO_LARGE"}'],
    ]);
  });

  it('are 50 fetches at most, 10 at a time, and each number once', async () => {
    const settle: (() => void)[] = [];
    const { call, answers } = open({
      fetch: () => new Promise((resolve) => settle.push(() => resolve('1'))),
    });
    for (let number = 1; number <= 11; number += 1) call(number);
    for (let number = 1; number <= 11; number += 1) call(number);
    expect(settle).to.have.length(10);
    expect(answers).to.have.length(1);
    let number = 12;
    while (settle.length > 0) {
      settle.shift()?.();
      await turn();
      call(number++);
    }
    const refused = answers.filter(({ ok }) => !ok);
    expect(answers.filter(({ ok }) => ok)).to.have.length(50);
    expect(refused.every(({ body }) => body.includes('TOO_MANY_CALLS'))).to.equal(true);
    expect(refused).to.have.length(1 + number - 12 - 40);
  });

  it('are refused when they are too large, or for what was not offered', async () => {
    let carriedOut = 0;
    const { call, answers, calls } = open({
      fetch: async () => {
        carriedOut += 1;
        return '';
      },
    });
    call(1, 'bt');
    call(2, 'fetch', 'é'.repeat(5 * 1024 * 1024));
    await turn();
    expect(answers.map(({ ok }) => ok)).to.deep.equal([false, false]);
    expect(carriedOut).to.equal(0);
    expect(calls.calledOut).to.equal(false);
  });

  it('are aborted with the run, which is answered no more', async () => {
    let settle = (_answer: string): void => undefined;
    const signals: AbortSignal[] = [];
    const { call, calls, answers, waits } = open({
      fetch: (_request, signal) => {
        signals.push(signal);
        return new Promise((resolve) => {
          settle = resolve;
        });
      },
    });
    call(1);
    call(2);
    calls.cancel(1);
    calls.cancel(1);
    calls.cancel(99);
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([true, false]);
    calls.end();
    expect(signals[1]?.aborted).to.equal(true);
    settle('late');
    call(3);
    await turn();
    expect({ answers, waits }).to.deep.equal({ answers: [], waits: [true] });
    expect(signals).to.have.length(2);
    expect(calls.calledOut).to.equal(true);
  });

  it('say when the run begins to wait, and when it waits for none any more', async () => {
    const { call, calls, waits } = open({ fetch: never, bt: async () => '1' });
    call(1);
    call(2, 'bt');
    await turn();
    expect(waits).to.deep.equal([true]);
    calls.cancel(1);
    expect(waits).to.deep.equal([true, false]);
  });
});
