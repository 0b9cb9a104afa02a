/** A trivial request and response transform of each request, a fresh context each. */
import type { Claim } from './claim.ts';
import { clearOrders, createProxy } from './proxy-calls.ts';
import { startGateway, startOrigin } from './proxy-lab.ts';
import { interleave, perCpuSecond, summary } from './rounds.ts';
import { startSubject } from './start-subject.ts';
import { median } from './statistics.ts';
import { createVault } from './vault.ts';

const CODE = 'module.exports = async (req) => ({ body: { ...req.args.body, seen: true } });';
const BODY_BYTES = 1024;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const proxyTransforms: Claim = {
  name: 'proxy-transforms',
  async measure(lab) {
    const vault = await createVault(lab, 'proxy_transforms');
    const origin = await startOrigin(lab);
    const proxyKey = await createProxy(vault, origin.port, CODE);
    const workload = { ...clearOrders(vault, proxyKey, BODY_BYTES), contains: '"seen":true}' };
    const product = await startSubject(lab, await startGateway(lab, vault), workload);
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave({ product }, plan);
    const rates = rounds.product.map(perCpuSecond);
    return [
      {
        title: 'requests with both transforms per CPU-second of all our processes',
        unit: '/s',
        value: median(rates),
        rounds: rates,
        target: { atLeast: 350 },
        details: summary('product', rounds.product),
      },
    ];
  },
};
