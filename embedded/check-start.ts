/**
 * What would make a start fail later, in a child process, is found out first and said in a sentence
 * that names the setting to change.
 */
import { createServer } from 'node:net';
import pg from 'pg';
import type { Environment } from '../config/environment.ts';

/** Throws when a port is taken. Only a hint: somebody may take it a moment later. */
export async function checkPorts(environment: Environment, metricsPort: number): Promise<void> {
  const ports = [
    ['PORT', environment.port],
    ['CONTROL_PLANE_PORT', environment.controlPlanePort],
    ['METRICS_PORT', metricsPort],
  ] as const;
  const taken = new Map<number, string>();
  for (const [name, port] of ports) {
    if (port === 0) continue;
    const other = taken.get(port);
    if (other !== undefined) throw new Error(`${name} and ${other} are the same port`);
    taken.set(port, name);
    await checkPort(name, port);
  }
}

function checkPort(name: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', ({ code }: NodeJS.ErrnoException) => {
      const why = code === 'EADDRINUSE' ? 'is in use by another program' : 'cannot be used';
      reject(new Error(`port ${port} ${why}: set ${name} to another one`));
    });
    probe.listen(port, () => probe.close(() => resolve()));
  });
}

/** Throws when the server could never give the pools what DATABASE_POOL_MAX says. */
export async function checkPoolSize(connectionString: string, poolMax: number): Promise<void> {
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
