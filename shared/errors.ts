/**
 * The closed catalogue of API errors and the one error class that ends a request.
 * `detail` and `errors` go to the client and must never contain an input value; `cause` goes to the log.
 * Shape on the wire: problem details (RFC 9457), design section 11.
 */

const CATALOGUE = {
  validation: { status: 400, title: 'One or more validation errors occurred.' },
  bad_request: { status: 400, title: 'Bad Request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  not_found: { status: 404, title: 'Not Found' },
  method_not_allowed: { status: 405, title: 'Method Not Allowed' },
  request_timeout: { status: 408, title: 'Request Timeout' },
  conflict: { status: 409, title: 'Conflict' },
  payload_too_large: { status: 413, title: 'Payload Too Large' },
  uri_too_long: { status: 414, title: 'URI Too Long' },
  unsupported_media_type: { status: 415, title: 'Unsupported Media Type' },
  expectation_failed: { status: 417, title: 'Expectation Failed' },
  too_many_requests: { status: 429, title: 'Too Many Requests' },
  headers_too_large: { status: 431, title: 'Request Header Fields Too Large' },
  internal: { status: 500, title: 'Internal Server Error' },
  bad_gateway: { status: 502, title: 'Bad Gateway' },
  unavailable: { status: 503, title: 'Service Unavailable' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof CATALOGUE;

/** Messages by dot-separated path of the request member, e.g. `{"data.number": ["…"]}`. */
export type FieldErrors = Record<string, string[]>;

export interface ProblemDetails {
  title: string;
  status: number;
  detail?: string;
  errors?: FieldErrors;
}

interface ApiErrorOptions {
  errors?: FieldErrors;
  /** Extra response headers, e.g. `Retry-After`, `Allow`. */
  headers?: Record<string, string>;
  cause?: unknown;
}

/** Thrown anywhere below a request to end it with a documented status. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly errors: FieldErrors | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(code: ErrorCode, detail: string, options: ApiErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ApiError';
    this.code = code;
    this.status = CATALOGUE[code].status;
    this.errors = options.errors;
    this.headers = options.headers;
  }

  toProblem(): ProblemDetails {
    const problem: ProblemDetails = {
      title: CATALOGUE[this.code].title,
      status: this.status,
      detail: this.message,
    };
    if (this.errors !== undefined) problem.errors = this.errors;
    return problem;
  }
}

/** The 400 of a request whose members are wrong; `errors` names each by its path. */
export function validationError(errors: FieldErrors): ApiError {
  return new ApiError('validation', 'The inputs supplied to the API are invalid', { errors });
}

/** A validation error of one member. */
export function fieldError(path: string, message: string): ApiError {
  return validationError({ [path]: [message] });
}
