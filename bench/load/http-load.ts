/** The load generator: kept-alive connections that each send the next request after an answer. */
import { runAsBenchProcess } from '../child-process.ts';
import { type Connection, type Exchange, openConnection } from './connection.ts';
import { goesOn, type HttpLoadSettings, type RunLimit, type RunResult, resultOf } from './load.ts';
import { drawFrom } from './workload.ts';

async function begin({ port, connections, workloads }: HttpLoadSettings) {
  const draw = drawFrom(workloads);
  return { ready: {}, serve: (limit: RunLimit) => run(port, connections, draw, limit) };
}

/** Connections are of one run: servers close those that are silent for some seconds. */
async function run(
  port: number,
  count: number,
  draw: () => Exchange,
  limit: RunLimit,
): Promise<RunResult> {
  let onAnswer: (index: number) => void = () => undefined;
  const connections = await Promise.all(
    Array.from({ length: count }, (_, index) => openConnection(port, () => onAnswer(index))),
  );
  const result = await new Promise<RunResult>((resolve) => {
    const exchanges = startExchanges(connections, draw, limit, resolve);
    onAnswer = exchanges.onAnswer;
    connections.forEach((_, index) => {
      exchanges.next(index);
    });
  });
  for (const connection of connections) connection.close();
  return result;
}

function startExchanges(
  connections: readonly Connection[],
  draw: () => Exchange,
  limit: RunLimit,
  done: (result: RunResult) => void,
): { next(index: number): void; onAnswer(index: number): void } {
  const startedAt = performance.now();
  const sentAt = new Float64Array(connections.length);
  const latencies_ms: number[] = [];
  let begun = 0;
  let busy = 0;

  function next(index: number): void {
    if (!goesOn(limit, begun, startedAt)) {
      if (busy === 0) done(resultOf(latencies_ms, startedAt));
      return;
    }
    begun += 1;
    busy += 1;
    sentAt[index] = performance.now();
    connections[index]?.send(draw());
  }

  return {
    next,
    onAnswer(index) {
      busy -= 1;
      latencies_ms.push(performance.now() - (sentAt[index] ?? 0));
      next(index);
    },
  };
}

runAsBenchProcess(begin);
