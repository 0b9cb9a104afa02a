/**
 * Runs a reaction that was accepted earlier: the code as it was then, everything else as it is now. It
 * must never run the code a second time, nor end with more or less than one result.
 */
import { react as reactOperation } from '../../shared/api/reactors.ts';
import type { ClaimedJob } from '../../shared/jobs/job-store.ts';
import type { JobLease, JobWork } from '../../shared/jobs/run-jobs.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { requireHeld } from '../routes/permit.ts';
import { react } from '../routes/react.ts';
import { serveExchange } from '../serve-exchange.ts';
import type { ReactingServices } from '../services.ts';
import { USE } from '../used-containers.ts';
import { AsyncResult } from './async-result.ts';
import { CallerRight } from './caller-right.ts';
import { findReactor } from './find-reactor.ts';
import { debugText, outcomeOf, returnedAnswer } from './finished-answer.ts';
import { type JobContents, openJob } from './job-content.ts';
import { JobExchange } from './job-exchange.ts';
import { OpenedCvcs } from './opened-cvcs.ts';
import { configurationText, type FinishedReaction, runReaction } from './reaction.ts';
import { readArguments } from './read-arguments.ts';
import { requiringCvcs } from './requiring-cvcs.ts';
import { runtimeError } from './script-failure.ts';
import { tokenizeReturned } from './tokenize-returned.ts';

/** One thread of a sandbox host each, and some that wait for what they called. */
const CONCURRENCY = 32;
/** The sandbox has no room: what was not run may wait, but not for ever. */
const BUSY_ATTEMPTS_MAX = 60;
const BUSY_RETRY_MS = 1_000;
/** Claimed more often than that, it may be what ends each process that reads it. */
const ATTEMPTS_MAX = 100;

export function createReactWork(services: ReactingServices): JobWork {
  return {
    concurrency: CONCURRENCY,
    async run(job, lease) {
      const queued = await openJob(services.dataKeys, { ...job, kind: 'react' }, job.sealed);
      await new AsyncReaction(job, queued, lease, services).run();
    },
  };
}

class AsyncReaction {
  readonly #job: ClaimedJob;
  readonly #queued: JobContents['react'];
  readonly #lease: JobLease;
  readonly #services: ReactingServices;
  readonly #result: AsyncResult;

  constructor(
    job: ClaimedJob,
    queued: JobContents['react'],
    lease: JobLease,
    services: ReactingServices,
  ) {
    this.#job = job;
    this.#queued = queued;
    this.#lease = lease;
    this.#services = services;
    this.#result = new AsyncResult(job, queued, lease, services);
  }

  /** Rejects, with nothing begun, when the database is away. */
  async run(): Promise<void> {
    // Nobody knows how far it came, and what it did outside cannot be undone: it has ended.
    const { started, attempt } = this.#job;
    const isOver = started || attempt > ATTEMPTS_MAX;
    if (isOver) return this.#endInterrupted();
    const exchange = new JobExchange(this.#job.tenant_id, this.#queued);
    const route = (_: Exchange, application: CachedApplication) =>
      this.#react(exchange, application);
    const entry = { operation: reactOperation, route };
    try {
      await this.#result.store(await serveExchange(exchange, entry, this.#services));
    } catch (error) {
      await this.#result.storeError(error);
    }
  }

  async #endInterrupted(): Promise<void> {
    await this.#result.store(runtimeError('interrupted', undefined));
    const { reactions, log } = this.#services;
    reactions.metrics.reactions.inc({ outcome: 'interrupted' });
    const { tenant_id, id: request_id, attempt } = this.#job;
    const { trace_id } = this.#queued;
    const named = { trace_id, tenant_id, request_id, attempt };
    log.warn(named, 'an asynchronous reaction was interrupted; it is not run again');
  }

  /** As `POST /reactors/{id}/react` answers it. */
  async #react(exchange: Exchange, application: CachedApplication): Promise<Answer> {
    const cvcs = new OpenedCvcs();
    const services = cvcs.watch(this.#services);
    const { reactor_id, args, timeout_ms, cvc_token_ids } = this.#queued;
    requireHeld(application, USE);
    await services.reactions.queueRoom.requireForResult(this.#job.tenant_id);
    const now = await findReactor(reactor_id, application, services);
    const { code, code_version, request_parameters } = this.#queued;
    const reactor = { ...now, code, code_version, request_parameters };
    const right = new CallerRight(exchange, application, reactor, services);
    const input = await readArguments(
      args,
      await configurationText(now, services),
      { exchange, application, reactor, right },
      { ...services, opener: requiringCvcs(services.opener, cvc_token_ids) },
    );
    // Committed before the code starts: from here on the job is only ever ended.
    if (!(await this.#lease.begin())) return this.#result.notOurs();
    this.#result.startedBy(right, cvcs);
    const origin = { head: exchange.head, callingRun: undefined, deadline_ms: timeout_ms };
    const reaction = { reactor, right, cvcs, ...input };
    const finished = await runReaction(reaction, origin, services, react);
    if (finished.result.kind === 'busy' && this.#job.attempt < BUSY_ATTEMPTS_MAX) {
      const { now_ms } = await services.gate.read(this.#job.tenant_id);
      await this.#lease.retry(now_ms + BUSY_RETRY_MS * (1 + Math.random()));
      return this.#result.notOurs();
    }
    return this.#answer(finished, debugText(finished, input.secrets), right, reactor);
  }

  async #answer(
    finished: FinishedReaction,
    debug: string | undefined,
    right: CallerRight,
    reactor: Awaited<ReturnType<typeof findReactor>>,
  ): Promise<Answer> {
    const result = this.#result;
    // What comes out of a script may be made of what went in.
    if (finished.result.kind !== 'busy') await result.whileHeld(() => right.current());
    const outcome = outcomeOf(finished, debug);
    if ('answer' in outcome) return outcome.answer;
    const { returned } = outcome;
    if (returned.tokenize === undefined) return returnedAnswer(returned, undefined, debug);
    // Tokens and the result that names them are made together, or neither is.
    await result.whileHeld(() =>
      tokenizeReturned(returned.tokenize, right, reactor, this.#services, (make) =>
        result.storeWith(make, (tokens) => returnedAnswer(returned, tokens, debug)),
      ),
    );
    return result.notOurs();
  }
}
