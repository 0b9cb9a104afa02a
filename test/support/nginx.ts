/**
 * A real nginx for a test, found on PATH: one process with a folder of its own, listening on a socket
 * in it. Where there is none the tests say so loudly; with `CI` set that is an error.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { skipLoudly } from './skip.ts';

export interface TestNginx {
  /** Path of the socket that `listen` names: `<folder>/<name>`. */
  socket(name: string): string;
  /** Ends it when every request has been answered and logged; settles with its access log, latin1. */
  stop(): Promise<string>;
}

const START_MS_MAX = 10_000;
/** Longer than it keeps a connection whose client has gone. */
const REST_MS_MAX = 40_000;
const LOOK_AGAIN_MS = 20;
const KINDS = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Starts one, or skips the suite: call it in `before(async function () { … })` with its `this`. */
export async function startNginxOrSkip(
  context: Mocha.Context,
  http: (folder: string) => string,
): Promise<TestNginx> {
  const nginx = await startNginx(http);
  if (nginx !== undefined) return nginx;
  return skipLoudly(context, 'nginx is not on PATH; install it to run what stands behind it');
}

/** `http`: what goes into the block of that name. `undefined` when the program is not installed. */
async function startNginx(http: (folder: string) => string): Promise<TestNginx | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'nginx-'));
  await writeFile(join(folder, 'nginx.conf'), configuration(folder, http(folder)));
  // Distributions keep it where the PATH of a plain user does not lead.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'], {
    ...{ env, stdio: ['ignore', 'ignore', 'pipe'] },
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const outcome = await Promise.race([listening(join(folder, 'ready')), failed(child)]);
  if (outcome === 'ready') return running(child, folder);
  child.kill('SIGKILL');
  await rm(folder, { recursive: true });
  if (outcome === 'ENOENT') return undefined;
  throw new Error(`nginx does not start: ${outcome} ${said}`);
}

function configuration(folder: string, http: string): string {
  const temporary = KINDS.map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  return `daemon off; master_process off; worker_processes 1; pid ${folder}/pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  ${temporary.join(' ')}
  server { listen unix:${folder}/ready; access_log off; stub_status; }
  ${http}
}
`;
}

async function listening(path: string): Promise<string> {
  const giveUpAt = Date.now() + START_MS_MAX;
  while (Date.now() < giveUpAt) {
    const isThere = await access(path).then(
      () => connects(path),
      () => false,
    );
    if (isThere) return 'ready';
    await delay(LOOK_AGAIN_MS);
  }
  return 'it does not listen';
}

function connects(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

/** How it ended, or the code of the error that kept it from starting. */
function failed(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
  });
}

/**
 * Settles when it has no connection but the one that asks. A client has its whole answer before the request is
 * logged, and a single process ends at once when told to, whatever it has not logged.
 */
async function atRest(path: string): Promise<void> {
  const giveUpAt = Date.now() + REST_MS_MAX;
  while (Date.now() < giveUpAt) {
    const asked = get({ socketPath: path, agent: false });
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    if ((await text(answer)).startsWith('Active connections: 1 ')) return;
    await delay(LOOK_AGAIN_MS);
  }
  throw new Error('nginx still has connections');
}

function running(child: ChildProcess, folder: string): TestNginx {
  return {
    socket: (name) => join(folder, name),
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        await atRest(join(folder, 'ready'));
        child.kill('SIGQUIT');
        await ended;
      }
      const log = await readFile(join(folder, 'access.log'), 'latin1').catch(() => '');
      await rm(folder, { recursive: true, force: true });
      return log;
    },
  };
}
