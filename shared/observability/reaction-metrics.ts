/**
 * What is counted of runs of code, of reactors and of transforms, and of the sandbox they run in. Labels are from
 * closed sets.
 */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from './metrics.ts';

/** Seconds, from the milliseconds of a trivial script to the limit of a synchronous reaction. */
const DURATION_BUCKETS_S = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export interface ReactionMetrics {
  /** `outcome` is a kind of script result. */
  reactions: Counter<'outcome'>;
  duration: Histogram;
  /** Reactions between their start and their end, those that wait for their turn included. */
  inFlight: Gauge;
  /** Sandbox hosts that ended, by why. */
  hostsLost: Counter<'reason'>;
}

/** `countHosts`: sandbox hosts that live now. */
export function createReactionMetrics(
  { registry }: Pick<Metrics, 'registry'>,
  countHosts: () => number,
): ReactionMetrics {
  const registers = [registry];
  new Gauge({
    name: 'sallyport_sandbox_hosts',
    help: 'Sandbox hosts that live, those in reserve included',
    registers,
    collect() {
      this.set(countHosts());
    },
  });
  return {
    reactions: new Counter({
      name: 'sallyport_reactions_total',
      help: 'Runs of reactors and of transforms of proxies by how they ended',
      labelNames: ['outcome'],
      registers,
    }),
    duration: new Histogram({
      name: 'sallyport_reaction_duration_seconds',
      help: 'Runs of reactors and transforms, from asking for a sandbox to the result',
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    inFlight: new Gauge({
      name: 'sallyport_reactions_in_flight',
      help: 'Runs of reactors and transforms that have not ended, those that wait for their turn included',
      registers,
    }),
    hostsLost: new Counter({
      name: 'sallyport_sandbox_hosts_lost_total',
      help: 'Sandbox hosts that ended other than by a stop, by why',
      labelNames: ['reason'],
      registers,
    }),
  };
}
