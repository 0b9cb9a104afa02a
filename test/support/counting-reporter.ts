/**
 * Mocha's dots, plus a message to the parent process for each result, so that the counts of a run are
 * known even when its process dies half-way.
 */
import Mocha from 'mocha';

export interface CountMessage {
  readonly type: 'passed' | 'failed' | 'pending' | 'end';
}

const { EVENT_RUN_END, EVENT_TEST_FAIL, EVENT_TEST_PASS, EVENT_TEST_PENDING } =
  Mocha.Runner.constants;

export default class CountingReporter extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const tell = (type: CountMessage['type']) => (): void => void process.send?.({ type });
    runner.on(EVENT_TEST_PASS, tell('passed'));
    // Also raised for a hook that fails, whose tests then never run.
    runner.on(EVENT_TEST_FAIL, tell('failed'));
    runner.on(EVENT_TEST_PENDING, tell('pending'));
    runner.on(EVENT_RUN_END, tell('end'));
  }
}
