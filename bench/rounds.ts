/**
 * Rounds of the things compared, interleaved: what else the machine does meets all of them alike.
 * Figures are ratios of neighbouring rounds, never absolute speeds.
 */
import type { Load, RunLimit, RunResult } from './load/load.ts';
import { cpuSecondsOf } from './process-usage.ts';
import { median } from './statistics.ts';

export interface Round extends RunResult {
  /** CPU seconds of the server's process tree in the round; 0 when the subject has no server. */
  readonly server_cpu_s: number;
  readonly postgres_cpu_s: number;
}

export interface Subject {
  readonly load: Load;
  /** Root of the server's processes; unset when there is none. */
  readonly pid?: number;
  /** Puts things back after each round, not measured. */
  readonly tidy?: () => Promise<void>;
}

export interface Plan {
  readonly rounds: number;
  readonly limit: RunLimit;
  /** One run of each before the first round, for the compiler and the caches. */
  readonly warmUp: RunLimit;
  readonly postgresPid: number;
}

/** Runs all subjects once per round; each round begins with another one. */
export async function interleave<Name extends string>(
  subjects: Readonly<Record<Name, Subject>>,
  { rounds, limit, warmUp, postgresPid }: Plan,
): Promise<Record<Name, Round[]>> {
  const entries = Object.entries(subjects) as [Name, Subject][];
  const results = Object.fromEntries(entries.map(([name]) => [name, []])) as unknown as Record<
    Name,
    Round[]
  >;
  for (const [, subject] of entries) await measureRound(subject, warmUp, postgresPid);
  for (let round = 0; round < rounds; round += 1) {
    const first = round % entries.length;
    for (const [name, subject] of [...entries.slice(first), ...entries.slice(0, first)]) {
      results[name].push(await measureRound(subject, limit, postgresPid));
    }
  }
  return results;
}

async function measureRound(
  { load, pid, tidy }: Subject,
  limit: RunLimit,
  postgresPid: number,
): Promise<Round> {
  const usage = () => ({
    server: pid === undefined ? 0 : cpuSecondsOf(pid),
    postgres: cpuSecondsOf(postgresPid),
  });
  const before = usage();
  const result = await load.run(limit);
  const after = usage();
  await tidy?.();
  return {
    ...result,
    server_cpu_s: after.server - before.server,
    postgres_cpu_s: after.postgres - before.postgres,
  };
}

export type Figure = (round: Round) => number;

/** Operations per CPU-second of the server. */
export const perCpuSecond: Figure = ({ operations, server_cpu_s }) => operations / server_cpu_s;

/** CPU seconds of server and Postgres together per operation. */
export const wholeCost: Figure = ({ operations, server_cpu_s, postgres_cpu_s }) =>
  (server_cpu_s + postgres_cpu_s) / operations;

export const p50: Figure = ({ p50_ms }) => p50_ms;

/** The median over the rounds of `ours` divided by `peer`, and the ratio of each round. */
export function ratio(
  ours: readonly Round[],
  peer: readonly Round[],
  figure: Figure,
): { value: number; rounds: number[] } {
  const rounds = ours.flatMap((round, index) => {
    const other = peer[index];
    return other === undefined ? [] : [figure(round) / figure(other)];
  });
  return { value: median(rounds), rounds };
}

/** What a results file says of a subject: medians of its rounds. */
export function summary(name: string, rounds: readonly Round[]): Record<string, number> {
  const of = (figure: Figure): number => Number(median(rounds.map(figure)).toPrecision(4));
  return {
    [`${name}_per_s`]: of((round) => round.operations / round.wall_s),
    [`${name}_server_cpu_us`]: of((round) => (1e6 * round.server_cpu_s) / round.operations),
    [`${name}_postgres_cpu_us`]: of((round) => (1e6 * round.postgres_cpu_s) / round.operations),
    [`${name}_server_cores`]: of((round) => round.server_cpu_s / round.wall_s),
    [`${name}_p50_ms`]: of(p50),
    [`${name}_p99_ms`]: of((round) => round.p99_ms),
  };
}
