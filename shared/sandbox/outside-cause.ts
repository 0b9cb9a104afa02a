/**
 * Tells losses of hosts that scripts did not bring about: somebody ended the hosts, or the machine had
 * no memory left. Then one ends by itself that runs nothing, too, which is in no script's power.
 */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { monotonicNow } from './protocol.ts';

/** Losses that are no further apart have one cause. Hosts on a busy machine take their time to end. */
const MOMENT_MS = 500;

export class OutsideCause {
  #idleLost_at_ms = Number.NEGATIVE_INFINITY;

  /** A host that was ready and ran nothing has ended by itself. */
  idleLost(): void {
    this.#idleLost_at_ms = monotonicNow();
  }

  /** Whether a host that is lost now has an outside cause; settles at once or after a moment. */
  async ofLoss(): Promise<boolean> {
    const lost_at_ms = monotonicNow();
    const isNear = (): boolean => this.#idleLost_at_ms >= lost_at_ms - MOMENT_MS;
    if (isNear()) return true;
    await delay(MOMENT_MS, undefined, { ref: false });
    // Timers come before what has happened meanwhile, when this process was held up.
    await nextTurn();
    return isNear();
  }
}
