/** Starts the `nginx` on PATH as a plain reverse proxy, with files of its own in the bench's folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../free-port.ts';
import type { Lab, Stoppable } from '../lab.ts';

const START_MS = 10_000;

export interface Nginx extends Stoppable {
  readonly pid: number;
  readonly port: number;
}

/** Its path in this environment; undefined when the machine has none. */
export async function findNginx({ PATH = '' }: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const folder of PATH.split(delimiter).filter((entry) => entry !== '')) {
    const path = join(folder, 'nginx');
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}

/** Settles when it forwards to `originPort`. Throws when it cannot be started. */
export async function startNginx(program: string, lab: Lab, originPort: number): Promise<Nginx> {
  const port = await freePort();
  const prefix = join(lab.directory, `nginx-${port}`);
  await mkdir(prefix);
  await writeFile(join(prefix, 'nginx.conf'), configuration(port, originPort));
  const argv = ['-p', prefix, '-c', 'nginx.conf', '-e', 'stderr'];
  const child = spawn(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = once(child, 'exit');
  const { pid } = child;
  if (pid === undefined) throw new Error('nginx could not be started');
  const started = {
    pid,
    port,
    // Its master ends its workers before it ends.
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
  const ended = exited.then(() => Promise.reject(new Error('nginx ended by itself')));
  try {
    await Promise.race([untilReady(port), ended]);
  } catch (error) {
    await started.stop();
    throw error;
  }
  ended.catch(() => undefined);
  return started;
}

/** As it is fastest: no log, connections kept on both sides, bodies of the bench never in files. */
const configuration = (port: number, originPort: number): string => `
daemon off;
pid nginx.pid;
worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream origin {
    server 127.0.0.1:${originPort};
    keepalive 128;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
  }
  server {
    listen 127.0.0.1:${port};
    client_body_buffer_size 256k;
    proxy_buffers 16 16k;
    location = /ready { return 204; }
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;

async function untilReady(port: number): Promise<void> {
  const until = performance.now() + START_MS;
  while (performance.now() < until) {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
    if (answer?.status === 204) return;
    await delay(50);
  }
  throw new Error('nginx does not answer');
}
