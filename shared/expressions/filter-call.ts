/**
 * Binds a filter call of the source to its filter: arguments are checked as early as they are
 * known, and every error gets the position of the filter.
 */
import { nearName } from '../near-name.ts';
import { ExpressionError } from './expression-error.ts';
import { FILTERS } from './filters/catalogue.ts';
import { type BoundFilter, type Filter, readArguments } from './filters/filter.ts';
import type { Meter } from './meter.ts';
import type { FilterCall, Value } from './parser.ts';
import { pathReader, readMember } from './read-path.ts';

/** A shorter name is within two edits of too many others: `mask` would be `last`. */
const GUESSED_LENGTH_MIN = 5;

/** Variables by name, e.g. `{ data, metadata }`. */
export type Scope = Readonly<Record<string, unknown>>;

/** A filter call, compiled. Throws ExpressionError. */
export type Apply = (input: unknown, scope: Scope, meter: Meter) => unknown;

/** A literal, or the value of a path in the scope; null when there is none. */
export function compileValue(value: Value): (scope: Scope) => unknown {
  if (value.kind === 'literal') {
    const literal = value.value;
    return () => literal;
  }
  const { head } = value;
  const read = pathReader(value.steps);
  return (scope) => read(readMember(scope, head));
}

/**
 * Literal arguments are bound now, others at each evaluation. Throws ExpressionError for an unknown
 * filter, wrong arguments or a filter in the wrong place.
 */
export function compileCall(call: FilterCall, isLast: boolean): Apply {
  const { position } = call;
  try {
    const filter = findFilter(call.name);
    checkPlace(filter, isLast);
    const given = orderArguments(filter, call);
    if (given.every((value) => value === undefined || value.kind === 'literal')) {
      const literals = given.map((value) => (value?.kind === 'literal' ? value.value : undefined));
      return applyAt(position, filter.bind(readArguments(filter, literals)));
    }
    return compileDynamicCall(filter, given, position);
  } catch (error) {
    throw located(error, position);
  }
}

function findFilter(name: string): Filter {
  const filter = FILTERS.get(name);
  if (filter === undefined) throw unknownFilter(name);
  return filter;
}

/** Names the filter that was probably meant, never what was written. */
function unknownFilter(name: string): ExpressionError {
  const near = name.length < GUESSED_LENGTH_MIN ? undefined : nearName(name, FILTERS.keys());
  const question = near === undefined ? '' : `, did you mean ${near}?`;
  return new ExpressionError(`Unknown filter${question}`);
}

function checkPlace(filter: Filter, isLast: boolean): void {
  if (filter.place === 'last' && !isLast) {
    throw new ExpressionError('The filter must be the last one');
  }
  if (filter.place === 'not_last' && isLast) {
    throw new ExpressionError('The bytes of the filter must be encoded by to_base64 or to_base16');
  }
}

/** The given values by parameter; named ones go where the filter says. */
function orderArguments(filter: Filter, call: FilterCall): (Value | undefined)[] {
  const given: (Value | undefined)[] = [];
  for (const { name, value } of call.arguments) {
    const named = filter.named ?? {};
    const index = name === undefined ? given.length : named[name];
    if (index === undefined || (name !== undefined && !Object.hasOwn(named, name))) {
      throw new ExpressionError('The filter has no argument of this name');
    }
    if (given[index] !== undefined) throw new ExpressionError('An argument is given twice');
    while (given.length < index) given.push(undefined);
    given[index] = value;
  }
  return given;
}

function compileDynamicCall(
  filter: Filter,
  given: readonly (Value | undefined)[],
  position: number,
): Apply {
  const reads = given.map((value, index) => {
    if (filter.parameters[index]?.literal && value?.kind === 'path') {
      throw new ExpressionError('The argument must be written as a quoted text');
    }
    return value === undefined ? undefined : compileValue(value);
  });
  // Wrong numbers of arguments are known without the data.
  if (given.length > filter.parameters.length) readArguments(filter, given);
  return (input, scope, meter) => {
    try {
      const values = reads.map((read) => read?.(scope));
      return filter.bind(readArguments(filter, values))(input, meter);
    } catch (error) {
      throw located(error, position);
    }
  };
}

function applyAt(position: number, bound: BoundFilter): Apply {
  return (input, _scope, meter) => {
    try {
      return bound(input, meter);
    } catch (error) {
      throw located(error, position);
    }
  };
}

function located(error: unknown, position: number): unknown {
  return error instanceof ExpressionError ? error.at(position) : error;
}
