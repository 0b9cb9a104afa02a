/**
 * What `reactor run` reads: the script, its arguments and its configuration, all of them from files,
 * since other users of the machine can read a command line. No message quotes a file or its name.
 */
import { createReadStream } from 'node:fs';
import { ApiError } from '../shared/errors.ts';
import { parseJson, stringifyJson } from '../shared/json-text.ts';
import { SOURCE_BYTES_MAX } from '../shared/sandbox/protocol.ts';

/** As a request to the data plane may have. */
const JSON_BYTES_MAX = 5 * 1024 * 1024;
const STANDARD_INPUT = '-';

export interface ScriptInput {
  readonly source: string;
  /** JSON texts; `undefined` when not given. */
  readonly args: string | undefined;
  readonly configuration: string | undefined;
}

/** The command cannot be carried out as it was given; the message is the line to print. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** `args` may be `-` for standard input. Throws InputError that names what is wrong with which. */
export async function readInput(
  file: string,
  args: string | undefined,
  configuration: string | undefined,
): Promise<ScriptInput> {
  return {
    source: await readSource(file),
    args: args === undefined ? undefined : stringifyJson(await readArgs(args)),
    configuration:
      configuration === undefined
        ? undefined
        : stringifyJson(await readConfiguration(configuration)),
  };
}

async function readSource(file: string): Promise<string> {
  const bytes = await readBytes(createReadStream(file), 'the script', SOURCE_BYTES_MAX);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InputError('the script is not UTF-8 text');
  }
}

async function readArgs(file: string): Promise<unknown> {
  const stream = file === STANDARD_INPUT ? process.stdin : createReadStream(file);
  return readJson(stream, 'the file of --args');
}

/** Names and values as a reactor has them; a formula may have made them numbers and booleans. */
async function readConfiguration(file: string): Promise<unknown> {
  const what = 'the file of --configuration';
  const value = await readJson(createReadStream(file), what);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || Object.values(value).some((item) => typeof item === 'object' && item !== null)) {
    throw new InputError(`${what} must hold one object of texts, numbers, booleans and nulls`);
  }
  return value;
}

async function readJson(stream: AsyncIterable<Buffer>, what: string): Promise<unknown> {
  const bytes = await readBytes(stream, what, JSON_BYTES_MAX);
  try {
    return parseJson(bytes);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new InputError(`${what} cannot be used. ${error.message}`);
  }
}

/** Stops at the bound: a device or a pipe has no size to look at first. */
async function readBytes(
  stream: AsyncIterable<Buffer>,
  what: string,
  bytes_max: number,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of stream) {
      length += chunk.length;
      if (length > bytes_max) break;
      chunks.push(chunk);
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'an error';
    throw new InputError(`${what} cannot be read (${code})`);
  }
  if (length > bytes_max) throw new InputError(`${what} is larger than ${bytes_max} bytes`);
  return Buffer.concat(chunks);
}
