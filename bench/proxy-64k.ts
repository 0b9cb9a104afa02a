/** 64 KiB of JSON through a proxy, which is scanned for expressions, against nginx, which copies it. */
import type { Claim } from './claim.ts';
import { clearOrders, createProxy } from './proxy-calls.ts';
import { startGateway, startNginxIfThere, startOrigin } from './proxy-lab.ts';
import { interleave, perCpuSecond, ratio, summary } from './rounds.ts';
import { startSubject } from './start-subject.ts';
import { createVault } from './vault.ts';

const BODY_BYTES = 64 * 1024;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const proxy64k: Claim = {
  name: 'proxy-64k',
  async measure(lab) {
    const vault = await createVault(lab, 'proxy_64k');
    const origin = await startOrigin(lab);
    const nginx = await startNginxIfThere(lab, origin.port);
    if (nginx === undefined) return [];
    const workload = clearOrders(vault, await createProxy(vault, origin.port), BODY_BYTES);
    const gateway = await startGateway(lab, vault);
    const rounds = await interleave(
      {
        product: await startSubject(lab, gateway, workload),
        nginx: await startSubject(lab, nginx, workload),
      },
      { ...PLAN, postgresPid: lab.postgresPid() },
    );
    return [
      {
        title: '64 KiB of JSON forwarded per CPU-second : nginx',
        unit: 'x',
        ...ratio(rounds.product, rounds.nginx, perCpuSecond),
        target: { atLeast: 0.18 },
        details: { ...summary('product', rounds.product), ...summary('nginx', rounds.nginx) },
      },
    ];
  },
};
