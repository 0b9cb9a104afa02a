/** A peer of proxies: the package `http-proxy`, with a keep-alive agent and nothing else. */
import { Agent, createServer, type RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { listen } from '../../shared/process/listen.ts';
import { runAsBenchProcess } from '../child-process.ts';

export interface HttpProxySettings {
  readonly originPort: number;
}

/** What is used of the package, which has a `package.json` of its own and no types. */
interface HttpProxy {
  createProxyServer(options: { target: string; agent: Agent }): {
    web: RequestListener;
    on(event: 'error', listener: (error: Error) => void): void;
  };
}

async function begin({ originPort }: HttpProxySettings) {
  // It is as old as it is: its use of `util._extend` is no news here.
  process.noDeprecation = true;
  const requireThere = createRequire(new URL('http-proxy/package.json', import.meta.url));
  const { createProxyServer } = requireThere('http-proxy') as HttpProxy;
  const agent = new Agent({ keepAlive: true });
  const proxy = createProxyServer({ target: `http://127.0.0.1:${originPort}`, agent });
  // No figure is made of errors.
  proxy.on('error', (error) => {
    throw error;
  });
  const server = createServer((req, res) => proxy.web(req, res));
  return { ready: { port: await listen(server, 0, '127.0.0.1') } };
}

runAsBenchProcess(begin);
