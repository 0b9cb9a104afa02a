/**
 * The peer of creates: parses the body, inserts one row of a token's size by one prepared statement
 * per request, answers bytes of a created token's size. It validates, evaluates and seals nothing.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool } from '../../shared/postgres/pool.ts';
import { listen } from '../../shared/process/listen.ts';
import { runAsBenchProcess } from '../child-process.ts';

export interface InsertRowSettings {
  readonly databaseUrl: string;
  readonly databasePoolMax: number;
  readonly tenantId: string;
  readonly applicationId: string;
  /** As a created token has them: their sizes are what matters. */
  readonly row: {
    readonly container: string;
    readonly fingerprint: string;
    readonly fingerprint_expression: string;
    readonly sealed_bytes: number;
  };
  readonly answer: string;
}

const INSERT_ROW = {
  name: 'insert-row',
  text: `
    INSERT INTO tokens (tenant_id, id, type, container, fingerprint, fingerprint_expression,
      sealed, created_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
};

async function begin(settings: InsertRowSettings) {
  const { databaseUrl, databasePoolMax, tenantId, applicationId, row, answer } = settings;
  const pool = createPool({
    connectionString: databaseUrl,
    max: databasePoolMax,
    applicationName: 'bench-peer',
    log: createLogger('bench-peer', 'warn'),
  });
  const sealed = Buffer.alloc(row.sealed_bytes, 1);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(answer),
  };

  async function insert(body: Buffer, res: ServerResponse): Promise<void> {
    const { type } = JSON.parse(body.toString()) as { type: string };
    const { container, fingerprint, fingerprint_expression } = row;
    const kind = [type, container, fingerprint, fingerprint_expression];
    const values = [tenantId, randomUUID(), ...kind, sealed, applicationId];
    await pool.query({ ...INSERT_ROW, values });
    res.writeHead(201, headers);
    res.end(answer);
  }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => void insert(Buffer.concat(chunks), res));
  });
  return { ready: { port: await listen(server, 0, '127.0.0.1') } };
}

runAsBenchProcess(begin);
