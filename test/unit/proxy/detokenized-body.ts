/** Bodies with their expressions replaced, for tests: tokens come from a table instead of a vault. */
import { detokenizeTexts, type ExpressionTexts } from '../../../data-plane/proxy/body-texts.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { TokenView } from '../../../shared/expressions/detokenization.ts';

export type TokenTable = Readonly<Record<string, unknown>>;

export interface Detokenized {
  readonly text: string;
  /** Whether the very bytes that came are passed on. */
  readonly untouched: boolean;
  /** Ids of each read. */
  readonly reads: readonly (readonly string[])[];
}

export async function detokenized(
  find: (body: Buffer) => ExpressionTexts | undefined,
  body: string | Buffer,
  tokens: TokenTable = {},
): Promise<Detokenized> {
  const bytes = Buffer.from(body as string);
  const reads: (readonly string[])[] = [];
  const found = find(bytes);
  const done =
    found &&
    (await detokenizeTexts(found, {
      requireAny: () => undefined,
      readViews: async ({ tokenIds }) => {
        reads.push(tokenIds);
        return new Map(tokenIds.map((id) => [id, viewOf(id, tokens[id])]));
      },
    }));
  return { text: (done?.body ?? bytes).toString(), untouched: done === undefined, reads };
}

export const viewOf = (id: string, data: unknown): TokenView => ({
  data,
  token: { id, data, type: 'token' },
});

/** The error that it must end with. */
export async function refusal(work: () => Promise<unknown>): Promise<ApiError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
