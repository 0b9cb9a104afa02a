/**
 * Reads what a host says about the end of a run into the closed union. The text was written inside the
 * sandbox: it is checked field by field, and what does not fit is a runtime error of the script.
 */
import {
  COMPUTE_MS_MAX,
  CONSOLE_LINES_MAX,
  type ConsoleLine,
  CUSTOM_HEADERS_MAX,
  DEADLINE_MS_DEFAULT,
  type Ending,
  ERROR_CHARACTERS_MAX,
  ERROR_ENTRIES_MAX,
  type HostMessage,
  MESSAGE_CHARACTERS_MAX,
  RESULT_BYTES_MAX,
  type ScriptError,
  type ScriptResult,
  SOURCE_BYTES_MAX,
  type ThreadMessage,
} from './protocol.ts';

/** name → status and detail (facts 2.4). Everything else that is thrown is a runtime error. */
const ERROR_CLASSES: Readonly<Record<string, readonly [number, string]>> = {
  BadRequestError: [400, 'Bad Request'],
  InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
  AuthenticationError: [401, 'Authentication Failed'],
  AuthorizationError: [403, 'Forbidden'],
  InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
  InvalidReactorFormulaError: [422, 'Invalid Reactor Formula'],
  RateLimitError: [429, 'Rate Limit Exceeded'],
  ReactorRuntimeError: [500, 'Reactor Runtime Error'],
  ServiceUnavailableError: [503, 'Service Unavailable'],
};
const RUNTIME_ERROR = [500, 'Reactor Runtime Error'] as const;

/** Of the texts that are parsed here; far above what is kept, 10 ms to parse. */
const MEMBERS_MAX = 10_000;

/** A source has no more. */
const LINES_MAX = SOURCE_BYTES_MAX + 1;

const STATUS_MIN = 100;
const STATUS_MAX = 599;
/** RFC 9110 sections 5.1 and 5.5: a token; no control characters. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A runtime error with one message of ours. */
export function runtimeError(message: string): ScriptResult {
  const [status, detail] = RUNTIME_ERROR;
  const errors = { error: [message] };
  return { kind: 'error', error: { name: 'ReactorRuntimeError', status, detail, errors } };
}

/** A message about code, with its place. */
export function withLine(message: string, line: number | undefined): string {
  return line === undefined ? message : `${message} (line ${line})`;
}

/** Why there is no result of a `role`, in words for its caller: which limit, and how much it is. */
export function timeoutMessage(
  role: string,
  { limit, limit_ms }: Extract<ScriptResult, { kind: 'timeout' }>,
): string {
  const seconds = `${limit_ms / 1_000} s`;
  const which =
    limit === 'compute'
      ? `it computed for more than ${seconds} in all`
      : `it was not done within ${seconds}, waiting included`;
  return `The ${role} timed out: ${which}.`;
}

/** The result of a run of at most `deadline_ms` that ended inside with `ending` and the text `body`. */
export function readResult(
  ending: Ending,
  body: string,
  deadline_ms = DEADLINE_MS_DEFAULT,
): ScriptResult {
  if (body.length > RESULT_BYTES_MAX) return { kind: 'result_too_large' };
  switch (ending) {
    case 'ok':
      return { kind: 'ok', value: body };
    case 'timeout':
      return { kind: 'timeout', limit: 'run', limit_ms: deadline_ms };
    case 'compute_timeout':
      return { kind: 'timeout', limit: 'compute', limit_ms: COMPUTE_MS_MAX };
    case 'memory':
    case 'result_too_large':
      return { kind: ending };
    case 'unknown_module':
      return { kind: 'unknown_module', module: stringOf(parsed(body)) };
    case 'type':
      return { kind: 'type', message: stringOf(parsed(body)) };
    case 'syntax': {
      const { message, line } = recordOf(parsed(body));
      return {
        kind: 'syntax',
        message: stringOf(message),
        line: typeof line === 'number' ? line : undefined,
      };
    }
    case 'error':
      return readError(body);
  }
}

/** The header of a frame on a host's own pipe as a message, or `undefined` when it is none. */
export function readHostMessage(header: unknown): HostMessage | undefined {
  const { kind, ids } = recordOf(header);
  if (kind === 'ready') return { kind };
  return kind === 'busy' && Array.isArray(ids)
    ? { kind, ids: ids.filter(Number.isInteger) }
    : undefined;
}

/** The same of a frame on the pipe of a thread. */
export function readThreadMessage(header: unknown): ThreadMessage | undefined {
  const { kind, id, ending, console, call, service } = recordOf(header);
  if (typeof id !== 'number') return undefined;
  if (kind === 'result' && isEnding(ending)) {
    const lines = Array.isArray(console) ? console.slice(0, CONSOLE_LINES_MAX) : [];
    return { kind, id, ending, console: lines.filter(isConsoleLine) };
  }
  if (kind === 'unknown_script') return { kind, id };
  if (!isCallNumber(call)) return undefined;
  if (kind === 'cancel') return { kind, id, call };
  const isService = service === 'fetch' || service === 'bt';
  return kind === 'call' && isService ? { kind, id, call, service } : undefined;
}

const ENDINGS: Record<Ending, true> = {
  ...{ ok: true, error: true, syntax: true, type: true, unknown_module: true, timeout: true },
  ...{ compute_timeout: true, memory: true, result_too_large: true },
};

function isEnding(value: unknown): value is Ending {
  return typeof value === 'string' && Object.hasOwn(ENDINGS, value);
}

function isLine(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= LINES_MAX;
}

function isCallNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isConsoleLine(value: unknown): value is ConsoleLine {
  const { level, text } = recordOf(value);
  return typeof level === 'string' && typeof text === 'string';
}

/** `text`: see `Ending`. */
function readError(text: string): ScriptResult {
  const headEnd = text.indexOf('\n');
  const head = parsed(headEnd < 0 ? text : text.slice(0, headEnd));
  if (head === undefined) return runtimeError('The error could not be read.');
  const thrown = recordOf(head);
  const name = stringOf(thrown.name);
  if (name === 'CustomHttpResponseError') {
    return readCustomResponse(thrown, headEnd < 0 ? undefined : text.slice(headEnd + 1));
  }
  const known = Object.hasOwn(ERROR_CLASSES, name) ? ERROR_CLASSES[name] : undefined;
  const [status, detail] = known ?? RUNTIME_ERROR;
  const error: ScriptError = {
    name: known === undefined ? 'ReactorRuntimeError' : name,
    ...{ status, detail },
    errors: readErrors(thrown.errors),
    ...(isLine(thrown.line) ? { line: thrown.line } : {}),
  };
  return { kind: 'error', error };
}

function readErrors(errors: unknown): Record<string, string[]> {
  const entries = Object.entries(recordOf(errors)).slice(0, ERROR_ENTRIES_MAX);
  return Object.fromEntries(
    entries.map(([name, list]) => [
      name.slice(0, MESSAGE_CHARACTERS_MAX),
      (Array.isArray(list) ? list : [])
        .slice(0, ERROR_ENTRIES_MAX)
        .filter((message) => typeof message === 'string')
        .map((message) => message.slice(0, MESSAGE_CHARACTERS_MAX)),
    ]),
  );
}

function readCustomResponse(
  { status, headers }: Record<string, unknown>,
  body: string | undefined,
): ScriptResult {
  if (typeof status !== 'number' || !Number.isInteger(status)) {
    return runtimeError('The status of a CustomHttpResponseError must be an integer.');
  }
  if (status < STATUS_MIN || status > STATUS_MAX) {
    return runtimeError('The status of a CustomHttpResponseError must be 100 to 599.');
  }
  const read: Record<string, string> = {};
  const given = Object.entries(recordOf(headers));
  if (given.length > CUSTOM_HEADERS_MAX) return invalidHeader();
  for (const [name, value] of given) {
    if (value === null || typeof value === 'object') return invalidHeader();
    const text = String(value);
    if (!HEADER_NAME.test(name) || !HEADER_VALUE.test(text)) return invalidHeader();
    Object.defineProperty(read, name, { value: text, enumerable: true });
  }
  return { kind: 'custom_response', status, headers: read, body };
}

function invalidHeader(): ScriptResult {
  return runtimeError('A header of a CustomHttpResponseError is not valid.');
}

/** `undefined` when it is no JSON, or more of it than an end of a run can be. */
function parsed(text: string): unknown {
  // Prototypes inside may have been changed, so that no bound of the prelude holds.
  if (text.length > ERROR_CHARACTERS_MAX || text.split('":', MEMBERS_MAX).length >= MEMBERS_MAX) {
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
