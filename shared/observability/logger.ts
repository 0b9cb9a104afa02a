/**
 * The process log: pino JSON on stderr. Only the fields of the allow-list below reach it, whatever a
 * caller passes: no bodies, no query strings, no header values, no token ids at info level.
 */
import { writeSync } from 'node:fs';
import { type Logger as PinoLogger, pino } from 'pino';

/** Every field a log line may carry. `err` is reduced by `describeError`. */
const FIELDS = [
  'trace_id',
  'tenant_id',
  'application_id',
  'method',
  'route',
  'status',
  'duration_ms',
  'process',
  'pid',
  'port',
  'signal',
  'exit_code',
  'attempt',
  'delay_ms',
  'count',
  // Lines of its kind that were left out since the one before.
  'repeated',
  'migration',
  'resource',
  // Of closed sets: how something ended, where it was found, why it was not done.
  'outcome',
  'place',
  'reason',
  // Ids of ours: of an asynchronous reaction, of a proxy.
  'request_id',
  'proxy_id',
  // Of audit checkpoints: a number and a hash that say nothing of the rows.
  'number',
  'digest',
  'err',
] as const;
const ALLOWED_FIELDS: ReadonlySet<string> = new Set(FIELDS);

/** What a caller may pass: a field that is not on the list would be lost without a word. */
type Fields = { readonly [Field in (typeof FIELDS)[number]]?: unknown };

interface Write {
  (message: string): void;
  (fields: Fields, message: string): void;
}

export type Logger = Pick<PinoLogger, 'isLevelEnabled'> & {
  readonly [Level in 'debug' | 'info' | 'warn' | 'error' | 'fatal']: Write;
};

interface LoggedError {
  type: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: LoggedError;
}

/** Postgres and JSON errors quote what they were given, so only their codes are kept. */
const QUOTING_ERRORS = new Set(['error', 'DatabaseError', 'SyntaxError']);
const CAUSES_MAX = 3;
/** SQLSTATE class 57 (operator intervention: shutdown, start-up, cancellation) quotes nothing. */
const QUOTES_NOTHING = /^57[0-9A-Z]{3}$/;
/** A connection was lost, whoever held it: where it was waited for says nothing. */
const LOST_CODE = /^(57P0[1-3]|08[0-9A-Z]{3}|ECONNRESET|ECONNREFUSED|EPIPE)$/;
const LOST_MESSAGE = 'Connection terminated unexpectedly';
/** A crash of Postgres is told once for each connection; one line a second of a kind says as much. */
const REPEAT_MS = 1_000;
/** Pino's number of the level "warn": below it, a line is asked for by whoever set the level. */
const WARN = 40;
/** Kinds are texts of ours, some with a line of Postgres; more than this many are forgotten. */
const KINDS_MAX = 100;

/** What of an error may be logged: its kind, code and place; never text that could quote input. */
export function describeError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an error object' };
  const code: unknown = (error as { code?: unknown }).code;
  const codeText = typeof code === 'string' ? code : '';
  const quotes = QUOTING_ERRORS.has(error.name) && !QUOTES_NOTHING.test(codeText);
  const described: LoggedError = {
    type: error.name,
    message: quotes ? 'message withheld: it may quote input' : error.message,
  };
  if (codeText !== '') described.code = codeText;
  const isLost = LOST_CODE.test(codeText) || error.message === LOST_MESSAGE;
  // The first line of a stack repeats the message.
  const lines = isLost ? undefined : error.stack?.split('\n');
  const frames = lines?.filter((line) => line.startsWith('    at '));
  if (frames !== undefined && frames.length > 0) described.stack = frames.join('\n');
  if (error.cause !== undefined && depth < CAUSES_MAX) {
    described.cause = describeError(error.cause, depth + 1);
  }
  return described;
}

function allowedOnly(fields: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!ALLOWED_FIELDS.has(name)) continue;
    kept[name] = name === 'err' ? describeError(value) : value;
  }
  return kept;
}

/**
 * Of warnings or worse that are about no request, one a second and kind is written; the kind is its text with
 * the error's kind and message. Answers how many of its kind were left out since the one before, when a line
 * with these arguments of pino's is written at `now_ms`; `undefined` when it is left out.
 */
export function repeatFilter(): (
  args: unknown[],
  level: number,
  now_ms: number,
) => number | undefined {
  const kinds = new Map<string, { written_ms: number; left_out: number }>();
  return ([first, second], level, now_ms) => {
    if (level < WARN) return 0;
    const fields = (typeof first === 'object' ? first : {}) as Record<string, unknown> | null;
    // Each request that failed is a line of its own, and so is the end of a process.
    if (fields !== null && ('trace_id' in fields || 'exit_code' in fields)) return 0;
    const { type, code, message } = describeError(fields?.err);
    const text = typeof first === 'string' ? first : second;
    const kind = JSON.stringify([level, text, type, code, message]);
    const before = kinds.get(kind);
    if (before !== undefined && now_ms - before.written_ms < REPEAT_MS) {
      before.left_out += 1;
      return undefined;
    }
    if (kinds.size >= KINDS_MAX) kinds.clear();
    kinds.set(kind, { written_ms: now_ms, left_out: 0 });
    return before?.left_out ?? 0;
  };
}

/** Arguments of pino's with how many lines of their kind were left out, if any. */
function withRepeated(args: unknown[], repeated: number): unknown[] {
  if (repeated === 0) return args;
  const [first, ...others] = args;
  return typeof first === 'string'
    ? [{ repeated }, ...args]
    : [{ ...(first as object), repeated }, ...others];
}

/** `name` tells the process apart, e.g. `data-plane`. */
export function createLogger(name: string, level: string): Logger {
  const leftOutBefore = repeatFilter();
  return pino(
    {
      level,
      hooks: {
        logMethod(args, method, number) {
          const repeated = leftOutBefore(args, number, performance.now());
          if (repeated === undefined) return;
          method.apply(this, withRepeated(args, repeated) as typeof args);
        },
      },
      base: { process: name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      // Described already, by the formatter below.
      serializers: { err: (described: unknown) => described },
      formatters: { level: (label) => ({ level: label }), log: allowedOnly },
    },
    { write: writeLine },
  );
}

const STDERR = 2;
/** A reader of our pipe that is slow for a moment gets all; one that is stuck must not hold us up. */
const BUSY_TRIES = 20;
const BUSY_PAUSE_MS = 5;

let dropped = 0;
const pause = new Int32Array(new SharedArrayBuffer(4));

/** Lines that could not be written since the process began: the disk of the log is full, say. */
export const droppedLines = (): number => dropped;

/** A log that cannot be written is no reason to stop: pino's own destination would end the process. */
function writeLine(line: string): void {
  const bytes = Buffer.from(line);
  let tries = 0;
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(STDERR, bytes, written);
    } catch (error) {
      tries += 1;
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || tries > BUSY_TRIES) {
        dropped += 1;
        return;
      }
      Atomics.wait(pause, 0, 0, BUSY_PAUSE_MS);
    }
  }
}
