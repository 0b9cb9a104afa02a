/** A data plane whose database may lose answers, beside the vault of the test. */
import type { Vault } from '../api/tokens/vault.ts';
import { createTestDataPlane } from '../support/data-plane.ts';
import { type AnswerDropper, startAnswerDropper } from './history/answer-dropper.ts';

export interface PlaneBehindDropper {
  readonly url: string;
  readonly dropper: AnswerDropper;
  /** Ends the plane alone. */
  stopPlane(): Promise<void>;
  stop(): Promise<void>;
}

/** `durable`: what is in the statements whose answers may be lost. */
export async function startPlaneBehindDropper(
  { control }: Pick<Vault, 'control'>,
  durable: readonly string[],
): Promise<PlaneBehindDropper> {
  const dropper = await startAnswerDropper(control.database.connectionString, durable);
  const plane = createTestDataPlane(control, { DATABASE_URL: dropper.connectionString });
  const url = `http://localhost:${await plane.start()}`;
  let stopped: Promise<void> | undefined;
  const stopPlane = (): Promise<void> => {
    stopped ??= plane.stop();
    return stopped;
  };
  return {
    ...{ url, dropper, stopPlane },
    async stop() {
      await stopPlane();
      await dropper.close();
    },
  };
}
