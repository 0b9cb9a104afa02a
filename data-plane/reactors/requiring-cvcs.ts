/** A cvc that code was to see, and that is gone before it runs, must not be missing silently. */
import { ApiError } from '../../shared/errors.ts';
import type { TokenOpener } from '../../shared/tokens/reveal.ts';

/** The opener, refusing to open one of these tokens once it has no cvc any more. */
export function requiringCvcs(opener: TokenOpener, tokenIds: readonly string[]): TokenOpener {
  if (tokenIds.length === 0) return opener;
  return {
    ...opener,
    open(tenantId, row) {
      if (row.cvc_sealed === null && tokenIds.includes(row.id)) {
        throw new ApiError(
          'bad_request',
          `Failed to detokenize some tokens: the cvc of ${row.id} is not kept any more`,
        );
      }
      return opener.open(tenantId, row);
    },
  };
}
