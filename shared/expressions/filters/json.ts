/** `json: '$.path'`: the one value that a JSONPath finds in the input. Several are an error. */
import { ExpressionError } from '../expression-error.ts';
import { compileJsonPath } from '../json-path.ts';
import { isBytes } from '../values.ts';
import { type Filter, filter, literalText } from './filter.ts';

const json = filter([literalText], (path) => {
  const query = compileJsonPath(path);
  return (input, meter) => {
    if (isBytes(input)) throw new ExpressionError('Bytes have no members');
    return query(input, meter);
  };
});

export const JSON_FILTERS: Readonly<Record<string, Filter>> = { json };
