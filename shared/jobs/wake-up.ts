/** Waiting for a reason to look again: told, or after a while. Being told while nobody waits counts. */
export class WakeUp {
  #told = false;
  #resolve: (() => void) | undefined;

  wake(): void {
    this.#told = true;
    this.#resolve?.();
  }

  /** Settles when told, also before, and at the latest after `ms`. One waits at a time. */
  async wait(ms: number): Promise<void> {
    if (!this.#told) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#resolve = resolve;
      const timer = setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
      this.#resolve = undefined;
    }
    this.#told = false;
  }
}
