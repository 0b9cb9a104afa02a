/** How one setting is declared, and read: from its variable, or from the file that its `_FILE` twin names. */
import { readFileSync } from 'node:fs';
import type { VariableType } from './variable-types.ts';

export interface Variable<T> {
  readonly name: string;
  readonly type: VariableType<T>;
  /** As text, parsed like a given value; absent when the variable may stay unset. */
  readonly fallback?: string;
  /** What the documentation says instead, where each process has its own default. */
  readonly shownFallback?: string;
  readonly text: string;
  /** Has a `<NAME>_FILE` twin that names a file to read the value from. */
  readonly secret?: true;
}

/** The environment is unusable; the message is the one line to print. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

/** Its value, or its default; `undefined` when it is unset and has none. Throws EnvironmentError for a bad one. */
export function readVariable(variable: Variable<unknown>, source: NodeJS.ProcessEnv): unknown {
  const given = readTwin(variable, source) || source[variable.name] || variable.fallback;
  if (given === undefined) return undefined;
  const value = variable.type.parse(given);
  if (value === undefined) {
    const advice = variable.type.advise?.(given);
    const more = advice === undefined ? '' : ` (${advice})`;
    throw new EnvironmentError(`${variable.name} must be ${variable.type.expected}${more}`);
  }
  return value;
}

function readTwin(variable: Variable<unknown>, source: NodeJS.ProcessEnv): string | undefined {
  const name = `${variable.name}_FILE`;
  const file = variable.secret === true ? source[name] : undefined;
  if (!file) return undefined;
  if (source[variable.name])
    throw new EnvironmentError(`give ${variable.name} or ${name}, not both`);
  try {
    const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    if (text !== '') return text;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'an error';
    throw new EnvironmentError(`${name} names a file that cannot be read (${code})`);
  }
  throw new EnvironmentError(`${name} names an empty file`);
}
