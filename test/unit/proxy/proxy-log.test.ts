/** What the operator is told of proxies that fail: which, how and why, never what was in it. */
import { expect } from 'chai';
import { badGateway } from '../../../data-plane/proxy/proxy-error.ts';
import { createProxyLog } from '../../../data-plane/proxy/proxy-log.ts';
import { runtimeProblem, TransformError } from '../../../data-plane/proxy/transform-failure.ts';
import { EgressError } from '../../../shared/egress/egress-error.ts';

const CARD = '4242424242424242';
const PROXY = { tenant_id: 't', proxy_id: 'p', slot: 's' };
const coded = (code: string): Error => Object.assign(new Error(CARD), { code });

describe('the log of proxies', () => {
  const realNow = performance.now;
  let now = 5_000;
  let lines: [Record<string, unknown>, string][];
  let log: ReturnType<typeof createProxyLog>;
  beforeEach(() => {
    performance.now = () => now;
    lines = [];
    const warn = (fields: object | string, text?: string) =>
      void lines.push([JSON.parse(JSON.stringify(fields)), text ?? '']);
    log = createProxyLog({ warn });
  });
  afterEach(() => {
    performance.now = realNow;
  });

  const failed = (error?: unknown) => log.failed(PROXY, 'trace', 'destination_failed', error);

  it('names tenant, proxy, trace, outcome and the reason', () => {
    failed(badGateway('…', new EgressError('tls_failed', coded('CERT_HAS_EXPIRED'))));
    expect(lines).to.deep.equal([
      [
        {
          ...{ tenant_id: 't', proxy_id: 'p', trace_id: 'trace', outcome: 'destination_failed' },
          ...{ reason: 'CERT_HAS_EXPIRED', count: 1 },
        },
        'a proxied request failed',
      ],
    ]);
  });

  for (const [error, reason] of [
    [badGateway('…', new EgressError('connect_failed')), 'connect_failed'],
    [badGateway('…', coded('HPE_INVALID_CONSTANT')), 'HPE_INVALID_CONSTANT'],
    [badGateway('…', coded(CARD)), undefined],
    [badGateway('…', coded(`E_${'9'.repeat(80)}`)), undefined],
    [coded('no code of the system'), undefined],
    [runtimeProblem(CARD), undefined],
    [undefined, undefined],
  ] as const) {
    it(`takes for a reason only what is a code: ${reason}`, () => {
      failed(error);
      expect(lines[0]?.[0].reason).to.equal(reason);
      expect(JSON.stringify(lines)).to.not.include(CARD);
    });
  }

  it('is silent about who was refused, by us or by a script, and about callers who left', () => {
    log.failed(PROXY, 'trace', 'refused', coded('X'));
    log.failed(PROXY, 'trace', 'caller_gone');
    log.failed(PROXY, 'trace', 'forwarded');
    const refusal = { title: CARD, status: 422, detail: CARD, errors: {} };
    log.failed(PROXY, 'trace', 'transform_failed', new TransformError(refusal));
    expect(lines).to.deep.equal([]);
    log.failed(PROXY, 'trace', 'transform_failed', runtimeProblem(CARD));
    expect(lines[0]?.[0]).to.include({ outcome: 'transform_failed', status: 500 });
  });

  it('has a line a second for each proxy and kind, and counts', () => {
    for (let index = 0; index < 50; index += 1) {
      failed();
      log.failed({ ...PROXY, proxy_id: 'other' }, 'trace', 'destination_failed');
      log.failed(PROXY, 'trace', 'destination_timeout');
      log.leaked(PROXY, 'trace', 'body', 3);
      log.unwatched(PROXY, 'trace', 'coding');
    }
    expect(lines).to.have.length(5);
    now += 1_000;
    failed();
    log.leaked(PROXY, 'trace', 'body', 3);
    expect(lines.slice(5).map(([{ count }]) => count)).to.deep.equal([50, 150]);
  });

  it('has no id for a proxy that is stored nowhere', () => {
    log.leaked({ ...PROXY, slot: '' }, 'trace', 'headers', 1);
    expect(lines[0]?.[0]).to.deep.equal({
      ...{ tenant_id: 't', trace_id: 'trace', place: 'headers', count: 1 },
    });
  });
});
