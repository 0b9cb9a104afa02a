/** A gibibyte through a proxy and as much back: how much of it the gateway ever holds. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Claim } from './claim.ts';
import type { Lab } from './lab.ts';
import { descendantsOf, residentMiB } from './process-usage.ts';
import { createProxy } from './proxy-calls.ts';
import { startGateway, startOrigin } from './proxy-lab.ts';
import { createVault, type Vault } from './vault.ts';

const MIB = 1024 * 1024;
const BODY_BYTES = 1024 * MIB;
/** What a process takes for its first requests is not what a body costs. */
const WARM_UP_BYTES = 64 * MIB;
const CHUNK = Buffer.alloc(MIB, 'sallyport');
const SAMPLE_MS = 50;

export const proxyStream: Claim = {
  name: 'proxy-stream',
  async measure(lab) {
    const vault = await createVault(lab, 'proxy_stream');
    const send = await startSending(lab, vault);
    await send.transfer(WARM_UP_BYTES);
    const before_mib = send.resident();
    let most_mib = before_mib;
    const sampling = setInterval(() => {
      most_mib = Math.max(most_mib, send.resident());
    }, SAMPLE_MS);
    const startedAt = performance.now();
    await send.transfer(BODY_BYTES).finally(() => clearInterval(sampling));
    const wall_s = (performance.now() - startedAt) / 1000;
    const growth = most_mib - before_mib;
    return [
      {
        title: 'Growth of the gateway while 1 GiB goes through it each way',
        unit: 'MiB',
        value: growth,
        rounds: [growth],
        target: { atMost: 64 },
        details: { before_mib, most_mib, wall_s },
      },
    ];
  },
};

/** A gateway without sandbox hosts, whose own coming and going is not what is asked here. */
async function startSending(lab: Lab, vault: Vault) {
  const origin = await startOrigin(lab);
  const proxyKey = await createProxy(vault, origin.port);
  const { port, pid } = await startGateway(lab, vault, { sandboxHosts: 0 });
  const headers = { 'bt-api-key': vault.key, 'bt-proxy-key': proxyKey };
  return {
    transfer: (bytes: number) => transfer(port, headers, bytes),
    resident: () =>
      [pid, ...descendantsOf(pid)].reduce((sum, process) => sum + residentMiB(process), 0),
  };
}

/** Throws unless as many bytes came back. */
async function transfer(
  port: number,
  headers: Record<string, string>,
  bytes: number,
): Promise<void> {
  const sending = httpRequest(`http://127.0.0.1:${port}/proxy`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/octet-stream',
      'content-length': String(bytes),
    },
  });
  const answering = once(sending, 'response');
  // Awaited below: until then a failure shows as the end of the writing, too.
  answering.catch(() => undefined);
  for (let sent = 0; sent < bytes; sent += CHUNK.length) {
    if (!sending.write(CHUNK)) await once(sending, 'drain');
  }
  sending.end();
  const [answer] = (await answering) as [IncomingMessage];
  let received = 0;
  for await (const chunk of answer) received += (chunk as Buffer).length;
  if (answer.statusCode !== 200 || received !== bytes) {
    throw new Error(`expected ${bytes} bytes back, got ${answer.statusCode} and ${received}`);
  }
}
