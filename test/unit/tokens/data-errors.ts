import { expect } from 'chai';
import { ApiError, type FieldErrors } from '../../../shared/errors.ts';
import { readTokenData } from '../../../shared/tokens/token-data.ts';
import type { TokenType } from '../../../shared/tokens/token-types.ts';

/** The messages by path of the 400 that this data ends with. */
export function errorsOf(type: TokenType, data: unknown): FieldErrors {
  try {
    readTokenData(type, data);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).to.equal(400);
    return error.errors ?? {};
  }
  throw new Error('the data was accepted');
}
