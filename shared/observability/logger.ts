/**
 * The process log: pino JSON on stderr. Only the fields of the allow-list below reach it, whatever a
 * caller passes: no bodies, no query strings, no header values, no token ids at info level.
 */
import { type Logger as PinoLogger, pino } from 'pino';

export type Logger = Pick<
  PinoLogger,
  'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'isLevelEnabled'
>;

/** Every field a log line may carry. `err` is reduced by `describeError`. */
const ALLOWED_FIELDS = new Set([
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
  'migration',
  'resource',
  'err',
]);

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

/** What of an error may be logged: its kind, code and place; never text that could quote input. */
export function describeError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an error object' };
  const quotes = QUOTING_ERRORS.has(error.name);
  const described: LoggedError = {
    type: error.name,
    message: quotes ? 'message withheld: it may quote input' : error.message,
  };
  const code: unknown = (error as { code?: unknown }).code;
  if (typeof code === 'string') described.code = code;
  // The first line of a stack repeats the message.
  const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at '));
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

/** `name` tells the process apart, e.g. `data-plane`. */
export function createLogger(name: string, level: string): Logger {
  return pino(
    {
      level,
      base: { process: name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      // Described already, by the formatter below.
      serializers: { err: (described: unknown) => described },
      formatters: { level: (label) => ({ level: label }), log: allowedOnly },
    },
    pino.destination({ dest: 2, sync: true }),
  );
}
