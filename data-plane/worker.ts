/** One worker's wiring: what it uses is made here, handed down, and ended in reverse order. */
import { readFile } from 'node:fs/promises';
import { createHttpMetrics } from '../shared/observability/http-metrics.ts';
import { listen } from '../shared/process/listen.ts';
import { openServices, type ServiceOptions, type ServiceSettings } from './open-services.ts';
import { createRelay } from './relay.ts';
import { createDataPlaneServer, type DataPlaneServer } from './server.ts';

export interface WorkerSettings extends ServiceSettings {
  /** 0 takes any free port. */
  port: number;
  /** An address of this machine; unset: all interfaces. */
  listenHost: string | undefined;
  controlPlanePort: number;
  tlsCertFile: string | undefined;
  tlsKeyFile: string | undefined;
}

/** The sandbox is the machine's; the worker does not end it. */
interface WorkerOptions extends ServiceOptions {
  settings: WorkerSettings;
}

export interface Worker extends DataPlaneServer {
  /** Where it listens. */
  port: number;
  /** Ends what the worker made, once its server has closed. */
  close(): Promise<void>;
}

/** Settles when the worker listens. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { settings, installation, metrics } = options;
  const open = openServices(options);
  const controlPlane = `http://127.0.0.1:${settings.controlPlanePort}`;
  const relay = createRelay(controlPlane, installation.relaySecret);
  const dataPlane = createDataPlaneServer({
    services: open.services,
    relay,
    http: createHttpMetrics(metrics, 'data'),
    tls: await readTls(settings),
  });
  const port = await listen(dataPlane.server, settings.port, settings.listenHost);
  return {
    ...dataPlane,
    port,
    async close() {
      relay.close();
      await open.close();
    },
  };
}

async function readTls({
  tlsCertFile,
  tlsKeyFile,
}: WorkerSettings): Promise<{ cert: string; key: string } | undefined> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  return { cert: await readFile(tlsCertFile, 'utf8'), key: await readFile(tlsKeyFile, 'utf8') };
}
