/**
 * What would make a start fail later, in a child process, is found out first and said in a sentence
 * that names the setting to change.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createSecureContext } from 'node:tls';
import pg from 'pg';
import type { Environment } from '../config/environment.ts';
import { failureLine } from './failure-line.ts';
import { POOL_MIN } from './planes.ts';

/** An unreachable database shall not keep a person waiting for the operating system's patience. */
const CONNECT_MS = 5_000;

/** Throws when ports are taken, naming all of them. Only a hint: one may be taken a moment later. */
export async function checkPorts(environment: Environment, metricsPort: number): Promise<void> {
  const ports = [
    ['PORT', environment.port, 'LISTEN_HOST', environment.listenHost],
    ['CONTROL_PLANE_PORT', environment.controlPlanePort],
    ['METRICS_PORT', metricsPort, 'METRICS_HOST', environment.metricsHost],
  ] as const;
  const seen = new Map<number, string>();
  const problems: string[] = [];
  for (const [name, port, hostName, host] of ports) {
    if (port === 0) continue;
    const other = seen.get(port);
    if (other !== undefined) throw new Error(`${name} and ${other} are the same port`);
    seen.set(port, name);
    const problem = await portProblem(port, host);
    if (problem === 'EADDRNOTAVAIL') problems.push(`${hostName} is no address of this machine`);
    else if (problem !== undefined) {
      const what =
        problem === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${problem})`;
      problems.push(`port ${port} ${what}: set ${name} to another one`);
    }
  }
  if (problems.length > 0) throw new Error(problems.join('; '));
}

/** The code of the error, if any. Without a host: on all interfaces. */
function portProblem(port: number, host?: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });
}

/** Throws, naming the variable, when the data plane could not serve TLS with these files. */
export async function checkTls(environment: Environment): Promise<void> {
  const { tlsCertFile, tlsKeyFile } = environment;
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return;
  const cert = await readPem('TLS_CERT_FILE', tlsCertFile);
  const key = await readPem('TLS_KEY_FILE', tlsKeyFile);
  const certificate = parsed('TLS_CERT_FILE', tlsCertFile, 'a PEM certificate', () => {
    return new X509Certificate(cert);
  });
  const privateKey = parsed(
    'TLS_KEY_FILE',
    tlsKeyFile,
    'a PEM private key without passphrase',
    () => createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Error('TLS_KEY_FILE does not belong to TLS_CERT_FILE');
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`TLS_CERT_FILE and TLS_KEY_FILE cannot be used (${code})`);
  }
}

async function readPem(variable: string, path: string): Promise<string> {
  return readFile(path, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`${variable} ${path} cannot be read (${code})`);
  });
}

/** The parser's own error is left out: it says nothing to a person, and may quote the file. */
function parsed<T>(variable: string, path: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new Error(`${variable} ${path} is not ${expected}`);
  }
}

/** Throws one line with the variable's name when no connection can be made with what it says. */
export async function checkReachable(variable: string, connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: CONNECT_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw new Error(`${variable}: ${failureLine(error)}`);
  } finally {
    // Not waited for: a connection that never was made may not say that it ended.
    client.end().catch(() => undefined);
  }
}

/** Throws when the pools cannot do with DATABASE_POOL_MAX, or the server could never give it. */
export async function checkPoolSize(connectionString: string, poolMax: number): Promise<void> {
  if (poolMax < POOL_MIN) {
    throw new Error(
      `DATABASE_POOL_MAX must be at least ${POOL_MIN} where everything runs together`,
    );
  }
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query<{ available: number }>(
      `SELECT current_setting('max_connections')::int
              - current_setting('superuser_reserved_connections')::int AS available`,
    );
    const available = rows[0]?.available ?? 0;
    if (available < poolMax) {
      throw new Error(
        `DATABASE_POOL_MAX is ${poolMax}, but the server gives ${available} connections in all`,
      );
    }
  } finally {
    await client.end();
  }
}
