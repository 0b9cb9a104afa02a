/** What the loads of the bench are told and what they answer: a run's length and its figures. */
import { type BenchProcess, startProcess } from '../child-process.ts';
import { quantile } from '../statistics.ts';
import type { Workload } from './workload.ts';

/** A run lasts so long, or so many operations. */
export type RunLimit = { seconds: number } | { operations: number };

export interface RunResult {
  readonly operations: number;
  readonly wall_s: number;
  /** Latencies of one operation. */
  readonly p50_ms: number;
  readonly p99_ms: number;
}

export interface HttpLoadSettings {
  readonly port: number;
  readonly connections: number;
  /** Each request is drawn from one of these. */
  readonly workloads: readonly Workload[];
}

export interface Load {
  run(limit: RunLimit): Promise<RunResult>;
  stop(): Promise<void>;
}

export async function startHttpLoad(settings: HttpLoadSettings): Promise<Load> {
  return asLoad(await startProcess('load/http-load.ts', settings));
}

export function asLoad(child: BenchProcess<object>): Load {
  return { run: (limit) => child.ask<RunResult>(limit), stop: child.stop };
}

/** Whether a run goes on, given what was begun and when it began (`performance.now()`). */
export function goesOn(limit: RunLimit, begun: number, startedAt: number): boolean {
  if ('operations' in limit) return begun < limit.operations;
  return performance.now() - startedAt < limit.seconds * 1000;
}

export function resultOf(latencies_ms: readonly number[], startedAt: number): RunResult {
  const wall_s = (performance.now() - startedAt) / 1000;
  const sorted = Float64Array.from(latencies_ms).sort();
  return {
    operations: sorted.length,
    wall_s,
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
  };
}
