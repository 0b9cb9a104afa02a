/**
 * The cvcs that a run opens, by itself or through what it calls: whatever it comes to may be made of
 * them, and is not kept for longer than they are.
 */
import type { TokenOpener } from '../../shared/tokens/reveal.ts';

export class OpenedCvcs {
  #due_at_ms: number | null = null;

  /** When the first of them is due, by the database's clock; `null` when none was opened. */
  get due_at_ms(): number | null {
    return this.#due_at_ms;
  }

  /** The same services; which cvcs their opener opens is remembered here. */
  watch<S extends { readonly opener: TokenOpener }>(services: S): S {
    const { opener } = services;
    const watched: TokenOpener = {
      ...opener,
      openCvc: (tenantId, row) => {
        const due = row.cvc_due_at_ms;
        if (due !== null) this.#due_at_ms = Math.min(this.#due_at_ms ?? due, due);
        return opener.openCvc(tenantId, row);
      },
    };
    return { ...services, opener: watched };
  }
}
