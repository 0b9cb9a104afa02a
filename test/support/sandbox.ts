/** Real sandbox hosts for tests, and a neighbour: another tenant whose script is called all the while. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { ScriptResult, ScriptRun } from '../../shared/sandbox/protocol.ts';
import type { ScriptService } from '../../shared/sandbox/script-services.ts';
import {
  type ScriptRequest,
  Supervisor,
  type SupervisorOptions,
} from '../../shared/sandbox/supervisor.ts';

let versions = 0;

/** Closed at the end of its block when it is declared by `await using`. */
export interface Sandbox extends AsyncDisposable {
  readonly supervisor: Supervisor;
  /** Runs `source` as a script version of its own. */
  run(source: string, request?: Partial<ScriptRequest>): Promise<ScriptRun>;
  result(source: string, request?: Partial<ScriptRequest>): Promise<ScriptResult>;
  /** The value of a script that must end well. */
  value(source: string, request?: Partial<ScriptRequest>): Promise<unknown>;
}

export async function startSandbox(options: Partial<SupervisorOptions> = {}): Promise<Sandbox> {
  const supervisor = await Supervisor.start({ host_count: 1, strict: false, ...options });
  const run: Sandbox['run'] = (source, request) => {
    versions += 1;
    const script_version = String(versions);
    return supervisor.run({ tenant_id: 'tenant', script_version, source, ...request });
  };
  const result: Sandbox['result'] = async (source, request) => (await run(source, request)).result;
  return {
    ...{ supervisor, run, result },
    async value(source, request) {
      const ended = await result(source, request);
      if (ended.kind !== 'ok') throw new Error(`the script ended with ${JSON.stringify(ended)}`);
      return JSON.parse(ended.value);
    },
    [Symbol.asyncDispose]: () => supervisor.close(),
  };
}

/** A service that counts what it is asked. */
export interface FakeService {
  readonly run: ScriptService;
  readonly calls: number;
  /** Calls whose signal was aborted before they were answered. */
  readonly aborted: number;
  /** The most calls that were open at the same time. */
  readonly openMost: number;
}

export function fakeService(answer: ScriptService): FakeService {
  const counts = { calls: 0, aborted: 0, open: 0, openMost: 0 };
  const run: ScriptService = async (request, signal) => {
    counts.calls += 1;
    counts.open += 1;
    counts.openMost = Math.max(counts.openMost, counts.open);
    const abort = (): void => {
      counts.aborted += 1;
    };
    signal.addEventListener('abort', abort);
    try {
      return await answer(request, signal);
    } finally {
      signal.removeEventListener('abort', abort);
      counts.open -= 1;
    }
  };
  return Object.defineProperties({ run } as FakeService, {
    calls: { get: () => counts.calls },
    aborted: { get: () => counts.aborted },
    openMost: { get: () => counts.openMost },
  });
}

/** Between the neighbour's calls, which are hundreds a second, so that the attack has a core as well. */
const NEIGHBOUR_PAUSE_MS = 2;
const NEIGHBOUR = 'module.exports = async function (req) { return { sum: req.args.a + 1 }; };';

/** Calls the neighbour's script over and over while `attack` runs; every call must end well. */
export async function besideNeighbour<T>(sandbox: Sandbox, attack: () => Promise<T>): Promise<T> {
  let over = false;
  const attacked = attack().finally(() => {
    over = true;
  });
  let calls = 0;
  do {
    calls += 1;
    const { result } = await sandbox.supervisor.run({
      ...{ tenant_id: 'neighbour', script_version: '1', source: NEIGHBOUR },
      args: `{"a":${calls}}`,
    });
    expect(result, 'the neighbour').to.deep.equal({ kind: 'ok', value: `{"sum":${calls + 1}}` });
    await delay(NEIGHBOUR_PAUSE_MS);
  } while (!over);
  return attacked;
}
