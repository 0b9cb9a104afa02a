/** Small JSON through a proxy, with and without expressions, against nginx and against http-proxy. */
import type { Claim, Finding } from './claim.ts';
import { clearOrders, createProxy, tokenOrders } from './proxy-calls.ts';
import {
  startForwarder,
  startGateway,
  startHttpProxy,
  startNginxIfThere,
  startOrigin,
} from './proxy-lab.ts';
import { interleave, perCpuSecond, type Round, ratio, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { createVault } from './vault.ts';

const TOKENS = 10_000;
const BODY_BYTES = 1024;
/** Short rounds: how fast the machine is drifts within seconds, and neighbours are to have the same of it. */
const PLAN = { rounds: 21, limit: { seconds: 1 }, warmUp: { seconds: 5 } };

export const proxy: Claim = {
  name: 'proxy',
  async measure(lab) {
    const vault = await createVault(lab, 'proxy');
    const origin = await startOrigin(lab);
    const proxyKey = await createProxy(vault, origin.port);
    const clear = clearOrders(vault, proxyKey, BODY_BYTES);
    const tokens = tokenOrders(vault, proxyKey, await seedCards(vault, TOKENS), BODY_BYTES);
    const gateway = await startGateway(lab, vault);
    const subjects = {
      clear: await startSubject(lab, gateway, clear),
      tokens: await startSubject(lab, gateway, tokens),
      http_proxy: await startSubject(lab, await startHttpProxy(lab, origin.port), clear),
      forwarder: await startSubject(lab, await startForwarder(lab, origin.port), clear),
    };
    const nginx = await startNginxIfThere(lab, origin.port);
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds: Rounds =
      nginx === undefined
        ? await interleave(subjects, plan)
        : await interleave({ ...subjects, nginx: await startSubject(lab, nginx, clear) }, plan);
    return findingsOf(rounds);
  },
};

type Rounds = Record<'clear' | 'tokens' | 'http_proxy' | 'forwarder', Round[]> & {
  nginx?: Round[];
};

function findingsOf(rounds: Rounds): Finding[] {
  const { clear, tokens, http_proxy, forwarder, nginx } = rounds;
  const details = Object.assign(
    {},
    ...Object.entries(rounds).map(([name, of]) => summary(name, of)),
  );
  const reported = (title: string, ours: Round[], peer: Round[]): Finding => ({
    ...{ title, unit: 'x', details },
    ...ratio(ours, peer, perCpuSecond),
  });
  const finding = (title: string, ours: Round[], peer: Round[], atLeast: number): Finding => ({
    ...reported(title, ours, peer),
    target: { atLeast },
  });
  const small = '1 KiB of JSON forwarded per CPU-second';
  return [
    ...(nginx === undefined ? [] : [finding(`${small} : nginx`, clear, nginx, 0.2)]),
    finding(`${small} : http-proxy 1.18.1`, clear, http_proxy, 1.6),
    reported(`${small} : node:http and undici with nothing in between`, clear, forwarder),
    finding(`${small}, three expressions in it : none`, tokens, clear, 0.6),
  ];
}
