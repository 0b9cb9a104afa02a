/**
 * Every setting of a Sallyport process, declared once. The only reader of `process.env`; a bad value
 * stops the start with one line that names the variable and never shows its value.
 */
import { EnvironmentError, readVariable, type Variable } from './read-variable.ts';
import { unknownSettings } from './unknown-settings.ts';
import {
  addressRanges,
  apiKey,
  flag,
  integer,
  ipAddress,
  keyEncryptionKey,
  oneOf,
  path,
  port,
  url,
} from './variable-types.ts';

type RequiredVariable<T> = Variable<T> & { readonly fallback: string };
type Value<V> =
  V extends RequiredVariable<infer T> ? T : V extends Variable<infer T> ? T | undefined : never;

// Above 1000 connections a pooler belongs in front of Postgres.
const POOL_MAX = 1000;
// Of one process: one for a transaction, one for what is read meanwhile.
const POOL_MIN = 2;
// More hops than any chain of load balancers has.
const PROXY_HOPS_MAX = 16;
// Each takes some 110 MB when idle; a machine has fewer cores than this.
const SANDBOX_HOSTS_MAX = 64;
// Some 10 MB each; what they compute they share with all others.
const SANDBOX_THREADS_MAX = 32;
// Ten years: more than any rule about such trails asks for.
const AUDIT_MONTHS_MAX = 120;
// Ten years: past every expiry a test could want to reach.
const CLOCK_OFFSET_SECONDS_MAX = 315_360_000;

const VARIABLES = {
  port: {
    name: 'PORT',
    type: port,
    fallback: '3000',
    text: 'public port of the data plane',
  },
  listenHost: {
    name: 'LISTEN_HOST',
    type: ipAddress,
    shownFallback: 'all interfaces',
    text: 'address of PORT',
  },
  controlPlanePort: {
    name: 'CONTROL_PLANE_PORT',
    type: port,
    fallback: '3001',
    text: 'port of the control plane; only on loopback when everything runs in one place',
  },
  metricsPort: {
    name: 'METRICS_PORT',
    type: port,
    shownFallback: '9090 (9091 for a control plane alone, 9092 for jobs alone)',
    text: '/metrics, /healthz and /readyz of the process',
  },
  metricsHost: {
    name: 'METRICS_HOST',
    type: ipAddress,
    shownFallback: 'all interfaces',
    text: 'address of METRICS_PORT, which asks for no key; scrapers are usually elsewhere',
  },
  tlsCertFile: {
    name: 'TLS_CERT_FILE',
    type: path,
    text: 'PEM certificate chain: TLS on the public port (with TLS_KEY_FILE)',
  },
  tlsKeyFile: { name: 'TLS_KEY_FILE', type: path, text: 'PEM private key of TLS_CERT_FILE' },
  trustedProxyHops: {
    name: 'TRUSTED_PROXY_HOPS',
    type: integer(0, PROXY_HOPS_MAX, 'hops'),
    fallback: '0',
    text: 'how many X-Forwarded-For hops to believe; no effect yet',
  },
  dataDir: {
    name: 'DATA_DIR',
    type: path,
    fallback: '.sallyport',
    text: 'directory of the embedded Postgres and the generated key file',
  },
  databaseUrl: {
    name: 'DATABASE_URL',
    type: url('postgres:', 'postgresql:'),
    text: 'Postgres 15 or newer; unset: the embedded one in DATA_DIR',
    secret: true,
  },
  databaseDirectUrl: {
    name: 'DATABASE_DIRECT_URL',
    type: url('postgres:', 'postgresql:'),
    text: 'the same database past a pooler, for LISTEN; unset: DATABASE_URL',
    secret: true,
  },
  databasePoolMax: {
    name: 'DATABASE_POOL_MAX',
    type: integer(POOL_MIN, POOL_MAX, 'connections'),
    fallback: '20',
    text: 'Postgres connections of this machine, shared out to its processes',
  },
  redisUrl: {
    name: 'REDIS_URL',
    type: url('redis:', 'rediss:'),
    text: 'Redis or Valkey for the configuration cache and change notices; unset: none',
    secret: true,
  },
  kek: {
    name: 'SALLYPORT_KEK',
    type: keyEncryptionKey,
    text: 'key-encryption key; unset: generated once in DATA_DIR',
    secret: true,
  },
  bootstrapKey: {
    name: 'SALLYPORT_BOOTSTRAP_KEY',
    type: apiKey,
    text: 'management key created on the first start; unset: generated and printed once',
    secret: true,
  },
  egressAllow: {
    name: 'SALLYPORT_EGRESS_ALLOW',
    type: addressRanges,
    fallback: '',
    text: 'private ranges that proxies, callbacks and reactors may reach, by http too',
  },
  egressCaFile: {
    name: 'SALLYPORT_EGRESS_CA_FILE',
    type: path,
    text: 'PEM certificates trusted for destinations besides the public ones',
  },
  ephemeralProxy: {
    name: 'SALLYPORT_EPHEMERAL_PROXY',
    type: flag,
    fallback: 'false',
    text: 'serve proxies whose destination comes with the request, in BT-PROXY-URL',
  },
  sandboxHosts: {
    name: 'SANDBOX_HOSTS',
    type: integer(0, SANDBOX_HOSTS_MAX, 'processes'),
    shownFallback: 'half the cores, at least 1',
    text: 'sandbox hosts for the code of reactors, besides one in reserve; 0: reactors are refused',
  },
  sandboxThreads: {
    name: 'SANDBOX_THREADS',
    type: integer(1, SANDBOX_THREADS_MAX, 'threads'),
    fallback: '4',
    text: 'threads of each sandbox host: tenants whose code can compute there at the same time; each may hold 224 MiB',
  },
  sandboxReuse: {
    name: 'SALLYPORT_SANDBOX_REUSE',
    type: oneOf('invocation', 'reactor'),
    fallback: 'invocation',
    text: 'what a context of customer code serves: one invocation, or all of a reactor version',
  },
  sandboxStrict: {
    name: 'SALLYPORT_SANDBOX_STRICT',
    type: flag,
    fallback: 'false',
    text: 'refuse to start when sandbox hosts cannot be cut off from the network',
  },
  audit: {
    name: 'SALLYPORT_AUDIT',
    type: oneOf('batched', 'strict'),
    fallback: 'batched',
    text: 'when a read is answered: at once, its audit row follows in 100 ms; or after its commit',
  },
  auditMonths: {
    name: 'SALLYPORT_AUDIT_MONTHS',
    type: integer(1, AUDIT_MONTHS_MAX, 'months'),
    fallback: '12',
    text: 'how long the audit trail is kept, besides the current month',
  },
  testClockOffsetSeconds: {
    name: 'SALLYPORT_TEST_CLOCK_OFFSET',
    type: integer(-CLOCK_OFFSET_SECONDS_MAX, CLOCK_OFFSET_SECONDS_MAX, 'seconds'),
    text: 'added to the database clock; refused unless NODE_ENV=test',
  },
  logLevel: {
    name: 'LOG_LEVEL',
    type: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    fallback: 'info',
    text: 'the least severe log line that is written',
  },
} as const;

export type Environment = {
  readonly [K in keyof typeof VARIABLES]: Value<(typeof VARIABLES)[K]>;
};

const entries = Object.entries(VARIABLES) as [keyof Environment, Variable<unknown>][];
const namesOf = (variable: Variable<unknown>): string[] =>
  variable.secret === true ? [variable.name, `${variable.name}_FILE`] : [variable.name];
const KNOWN_NAMES = new Set(entries.flatMap(([, variable]) => namesOf(variable)));

/**
 * The typed settings of this process. An empty variable counts as unset; a secret is also read from
 * the file that its `<NAME>_FILE` twin names (one trailing line break is dropped).
 * Throws one EnvironmentError for all that is wrong: bad values, unknown SALLYPORT_… variables, secrets given
 * twice, half a TLS pair.
 */
export function readEnvironment(source: NodeJS.ProcessEnv): Environment {
  const problems = unknownSettings(source, KNOWN_NAMES);
  const values = entries.map(([property, variable]) => [
    property,
    readOrNote(() => readVariable(variable, source), problems),
  ]);
  const environment = Object.fromEntries(values) as Environment;
  if ((environment.tlsCertFile === undefined) !== (environment.tlsKeyFile === undefined)) {
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must be given together');
  }
  if (environment.testClockOffsetSeconds !== undefined && source.NODE_ENV !== 'test') {
    problems.push('SALLYPORT_TEST_CLOCK_OFFSET is for tests: NODE_ENV is not test');
  }
  if (problems.length > 0) throw new EnvironmentError(problems.join('; '));
  return environment;
}

/** What is read, or `undefined` when it cannot be, which is one more of the problems then. */
function readOrNote(read: () => unknown, problems: string[]): unknown {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    problems.push(error.message);
    return undefined;
  }
}

/**
 * The environment of a child process: what this one inherited, with exactly these settings.
 * Undefined settings are left out, whatever `source` says.
 */
export function childEnvironment(
  source: NodeJS.ProcessEnv,
  settings: Environment,
): NodeJS.ProcessEnv {
  const others = Object.entries(source).filter(([name]) => !KNOWN_NAMES.has(name));
  const ours = entries.flatMap(([property, variable]) => {
    const value = settings[property];
    return value === undefined ? [] : [[variable.name, variable.type.print(value)] as const];
  });
  return Object.fromEntries([...others, ...ours]);
}

/** One row per variable, for `sallyport --help` and the documentation. */
export function describeEnvironment(): { name: string; fallback: string; text: string }[] {
  return entries.map(([, variable]) => ({
    name: variable.name + (variable.secret === true ? ', …_FILE' : ''),
    fallback: variable.shownFallback ?? (variable.fallback || 'unset'),
    text: `${variable.text} (${variable.type.expected})`,
  }));
}
