/** What claims about proxies start: an origin, a data plane that may reach it, and the peers. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Environment } from '../config/environment.ts';
import { parseAddressRange } from '../shared/egress/ip-address.ts';
import { startProcess } from './child-process.ts';
import type { Lab } from './lab.ts';
import type { ForwarderSettings } from './peers/forwarder.ts';
import type { HttpProxySettings } from './peers/http-proxy.ts';
import { findNginx, startNginx } from './peers/nginx.ts';
import { startDataPlane, type Vault } from './vault.ts';

const HTTP_PROXY = join(import.meta.dirname, 'peers/http-proxy');

export interface Server {
  readonly port: number;
  readonly pid: number;
}

export async function startOrigin(lab: Lab): Promise<Server> {
  const { ready, pid } = lab.keep(await startProcess<{ port: number }>('peers/origin.ts', {}));
  return { port: ready.port, pid };
}

/** With default settings, but that it may forward to loopback. */
export async function startGateway(
  lab: Lab,
  vault: Vault,
  own: Partial<Environment> = {},
): Promise<Server> {
  const loopback = parseAddressRange('127.0.0.0/8');
  if (loopback === undefined) throw new Error('not a range');
  return startDataPlane(lab, vault, { ...own, egressAllow: [loopback] });
}

/** The nginx of the machine; undefined, with a word about it, when there is none. */
export async function startNginxIfThere(lab: Lab, originPort: number): Promise<Server | undefined> {
  const program = await findNginx(lab.inherited);
  if (program === undefined) {
    process.stdout.write('  ·  no nginx on PATH: nothing is compared with it\n');
    return undefined;
  }
  return lab.keep(await startNginx(program, lab, originPort));
}

/** Node's own parts with nothing in between. */
export async function startForwarder(lab: Lab, originPort: number): Promise<Server> {
  const settings: ForwarderSettings = { originPort };
  const started = await startProcess<{ port: number }>('peers/forwarder.ts', settings);
  const { ready, pid } = lab.keep(started);
  return { port: ready.port, pid };
}

/** Installs the package, pinned by its own lock, when it is not there. */
export async function startHttpProxy(lab: Lab, originPort: number): Promise<Server> {
  if (!existsSync(join(HTTP_PROXY, 'node_modules/http-proxy'))) {
    await promisify(execFile)('npm', ['ci'], { cwd: HTTP_PROXY });
  }
  const settings: HttpProxySettings = { originPort };
  const started = await startProcess<{ port: number }>('peers/http-proxy.ts', settings);
  const { ready, pid } = lab.keep(started);
  return { port: ready.port, pid };
}
