/** Attacks on the way out: every route to an address that nobody allowed (C-13, invariant 7). */
import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { expect } from 'chai';
import { request } from 'undici';
import { createPools, type DestinationPools } from '../../data-plane/proxy/pools.ts';
import { checkedAddresses, isConnectedTo, targetOf } from '../../shared/egress/guard.ts';
import { formatIpAddress, parseIpAddress } from '../../shared/egress/ip-address.ts';
import {
  allowList,
  type Destination,
  refusalOf,
  startEgress,
  startHttp,
  type TestEgress,
} from '../unit/egress/destinations.ts';

/** Spellings of this machine as a socket option or a URL may have them. */
const SELF = [
  ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0x7f.1', '①②⑦.0.0.1'],
  ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::127.0.0.1]'],
  ...['localhost', 'LOCALHOST', 'a.localhost', '0', '0.0.0.0', '[::]', '127.0.0.1.'],
];
/** What only `host` of a socket can have. */
const SELF_AS_OPTION = [...SELF, '::1', '::ffff:127.0.0.1', '::', 'localhost.', '::1%lo', ''];
const GUARDED = ['address_refused', 'host_refused'];

describe('the egress guard', () => {
  let destination: Destination;
  before(async () => {
    destination = await startHttp();
  });
  after(() => destination.close());

  const toClose: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0)) await close();
  });

  function dispatcherOf(egress: TestEgress) {
    const dispatcher = egress.dispatcher();
    toClose.push(() => dispatcher.destroy());
    return dispatcher;
  }

  function agentsOf(egress: TestEgress) {
    const agents = egress.agents();
    toClose.push(() => agents.destroy());
    return agents;
  }

  async function answerOf(sent: ClientRequest): Promise<number | undefined> {
    sent.end();
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  }

  describe('refuses this machine in every spelling', () => {
    let seenBefore: number;
    beforeEach(() => {
      seenBefore = destination.connections();
    });
    afterEach(() => {
      expect(destination.connections()).to.equal(seenBefore);
    });

    it('as the host of a socket, with and without TLS', async () => {
      const egress = startEgress('', [['127.0.0.1']]);
      for (const host of SELF_AS_OPTION) {
        for (const isPlain of [true, false]) {
          const refusal = await refusalOf(egress.connect(host, destination.port, isPlain));
          expect(GUARDED, host).to.include(refusal.code);
        }
      }
      expect(egress.resolved).to.deep.equal([]);
    });

    it('in the URL of an undici request', async () => {
      const dispatcher = dispatcherOf(startEgress('', [['127.0.0.1']]));
      for (const host of SELF) {
        const sending = request(`http://${host}:${destination.port}/`, { dispatcher });
        expect(GUARDED, host).to.include((await refusalOf(sending)).code);
      }
    });

    it('in the options of a node:http request, whatever else they say', async () => {
      const agents = agentsOf(startEgress('', [['127.0.0.1']]));
      const lookup: RequestOptions['lookup'] = (_name, _options, found) =>
        found(null, '127.0.0.1', 4);
      const { port } = destination;
      for (const host of SELF_AS_OPTION.filter((one) => /^[!-~]+$/.test(one))) {
        const sent = httpRequest({ agent: agents.http, host, port, lookup, family: 4 });
        const failing = answerOf(sent);
        expect(GUARDED, host).to.include((await refusalOf(failing)).code);
      }
      const secure = httpsRequest({
        ...{ agent: agents.https, host: '127.0.0.1', port, lookup },
        ...{ rejectUnauthorized: false, servername: 'dest.example' },
      });
      expect((await refusalOf(answerOf(secure))).code).to.equal('address_refused');
    });

    it('behind a name that resolves to it, in any of its addresses', async () => {
      for (const address of [
        '127.0.0.1',
        '::1',
        '::ffff:127.0.0.1',
        '10.0.0.1',
        '169.254.169.254',
      ]) {
        const egress = startEgress('', [['8.8.8.8', address]]);
        const refusal = await refusalOf(egress.connect('dest.example', destination.port, false));
        expect(refusal.code, address).to.equal('address_refused');
      }
    });

    it('behind a resolver that answers names, zones or short forms', async () => {
      for (const address of ['localhost', '127.1', '0x7f000001', 'fe80::1%lo', '', '127.0.0.1\0']) {
        const egress = startEgress('', [[address]]);
        const refusal = await refusalOf(egress.connect('dest.example', destination.port, false));
        expect(refusal.code, address).to.equal('address_refused');
      }
    });

    it('as a unix socket', async () => {
      const agents = agentsOf(startEgress('0.0.0.0/0', [['127.0.0.1']]));
      const sent = httpRequest({ agent: agents.http, socketPath: '/var/run/docker.sock' });
      expect((await refusalOf(answerOf(sent))).code).to.equal('host_refused');
    });
  });

  it('reaches an allow-listed destination by every client', async () => {
    const egress = startEgress('127.0.0.0/8', [['127.0.0.1']]);
    const { port } = destination;
    for (const host of ['127.0.0.1', '0x7f.1', 'localhost', 'dest.example']) {
      const answer = await request(`http://${host}:${port}/`, { dispatcher: dispatcherOf(egress) });
      expect(await answer.body.text()).to.equal('hello');
      const sent = httpRequest({ agent: agentsOf(egress).http, host, port });
      expect(await answerOf(sent)).to.equal(200);
    }
    expect(egress.resolved).to.deep.equal(['dest.example', 'dest.example']);
    expect(egress.logged).to.deep.equal([]);
  });

  it('refuses metadata services though everything is allow-listed', async () => {
    const everything = '0.0.0.0/0,::/0';
    const hosts = ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192'];
    for (const host of [...hosts, '::ffff:169.254.169.254', 'metadata.google.internal']) {
      const byHost = startEgress(everything, [['127.0.0.1']]).connect(host, 80, true);
      expect(GUARDED, host).to.include((await refusalOf(byHost)).code);
    }
    for (const address of hosts) {
      const byName = startEgress(everything, [[address]]).connect('dest.example', 80, true);
      expect((await refusalOf(byName)).code).to.equal('address_refused');
    }
  });

  it('refuses plain http and ports of other services unless the address is allow-listed', async () => {
    const egress = startEgress('', [['8.8.8.8']]);
    const codes: string[] = [];
    for (const [port, isPlain] of [
      [80, true],
      [5432, false],
      [22, false],
    ] as const) {
      codes.push((await refusalOf(egress.connect('dest.example', port, isPlain))).code);
    }
    expect(codes).to.deep.equal(['plain_http_refused', 'port_refused', 'port_refused']);
    for (const port of [0, 65_536, -1, 1.5, Number.NaN]) {
      const everywhere = startEgress('127.0.0.0/8', [['127.0.0.1']]);
      const refusal = await refusalOf(everywhere.connect('127.0.0.1', port, true));
      expect(refusal.code).to.equal('port_refused');
    }
  });

  it('refuses the public addresses of this machine, also as IPv6 spells them', async () => {
    const more = { ownAddresses: () => ['fe80::1%eth0', '8.8.4.4', '2001:4860:4860::8844'] };
    const own = ['8.8.4.4', '::ffff:8.8.4.4', '64:ff9b::808:404', '2001:4860:4860:0:0:0:0:8844'];
    for (const address of own) {
      const egress = startEgress('', [[address]], more);
      const refusal = await refusalOf(egress.connect('dest.example', 443, false));
      expect(refusal.code, address).to.equal('address_refused');
    }
  });

  describe('with a resolver that changes its answer', () => {
    it('connects only to what it checked, having resolved once', async () => {
      const egress = startEgress('127.0.0.1/32', [['127.0.0.1'], ['127.0.0.2']]);
      const seenBefore = destination.connections();
      for (let round = 1; round <= 4; round += 1) {
        const socket = await egress.connect('dest.example', destination.port, true);
        expect(socket.remoteAddress).to.equal('127.0.0.1');
        socket.destroy();
        const refusal = await refusalOf(egress.connect('dest.example', destination.port, true));
        expect(refusal.code).to.equal('address_refused');
        expect(egress.resolved).to.have.length(2 * round);
      }
      expect(destination.connections()).to.equal(seenBefore + 4);
    });

    it('judges every resolution anew, never by an earlier one', async () => {
      const answers = [['8.8.8.8'], ['127.0.0.1']];
      let asked = 0;
      const rules = {
        allow: allowList(''),
        ownAddresses: () => [],
        resolveName: async () => answers[asked++ % 2] ?? [],
      };
      const target = targetOf('dest.example', 443, false);
      const { signal } = new AbortController();
      for (let round = 1; round <= 3; round += 1) {
        const checked = await checkedAddresses(target, rules, signal);
        expect(checked.map(formatIpAddress)).to.deep.equal(['8.8.8.8']);
        const refusal = await refusalOf(checkedAddresses(target, rules, signal));
        expect(refusal.code).to.equal('address_refused');
        expect(asked).to.equal(2 * round);
      }
    });

    it('tries the next checked address when one does not answer, and no other', async () => {
      const egress = startEgress('127.0.0.0/8', [['127.0.0.2', '127.0.0.1']]);
      const socket = await egress.connect('dest.example', destination.port, true);
      expect(socket.remoteAddress).to.equal('127.0.0.1');
      expect(egress.resolved).to.have.length(1);
      socket.destroy();
    });
  });

  it('compares the address at the other end by value', async () => {
    const socket = connectTcp({ host: '127.0.0.1', port: destination.port });
    await once(socket, 'connect');
    const [loopback, other] = ['127.0.0.1', '8.8.8.8'].map(parseIpAddress);
    if (loopback === undefined || other === undefined) throw new Error('not addresses');
    expect(isConnectedTo(socket.remoteAddress, loopback)).to.equal(true);
    expect(isConnectedTo('::ffff:127.0.0.1', loopback)).to.equal(true);
    expect(isConnectedTo(socket.remoteAddress, other)).to.equal(false);
    for (const remote of [undefined, '', '127.0.0.2', '::1', 'localhost']) {
      expect(isConnectedTo(remote, loopback)).to.equal(false);
    }
    socket.destroy();
  });

  it('hands a redirect to its caller and does not follow it', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const location = 'http://169.254.169.254/latest/meta-data/';
      const redirecting = await startHttp((_request, response) => {
        response.writeHead(status, { location }).end();
      });
      toClose.push(redirecting.close);
      const egress = startEgress('127.0.0.0/8', [['127.0.0.1']]);
      const url = `http://dest.example:${redirecting.port}/`;
      const answer = await request(url, { dispatcher: dispatcherOf(egress) });
      expect(answer.statusCode).to.equal(status);
      expect(answer.headers.location).to.equal(location);
      await answer.body.dump();
      expect(egress.logged).to.deep.equal([]);
      expect(redirecting.requests).to.have.length(1);
    }
  });

  it('logs refusals without the host, and not one line for each', async () => {
    const egress = startEgress('', [['10.0.0.1']]);
    for (let index = 0; index < 100; index += 1) {
      await refusalOf(egress.connect(`n4242424242424242-${index}.example`, 443, false));
    }
    expect(egress.logged.length).to.be.within(1, 99);
    expect(egress.logged[0]).to.include({ reason: 'address_refused', count: 1 });
    expect(JSON.stringify(egress.logged)).not.to.match(/4242|10\.0\.0/);
  });

  it('logs whose connection was refused, from either kind of pool', async () => {
    const over: ((pools: DestinationPools) => Promise<unknown>)[] = [
      (pools) => request('https://dest.example/', { dispatcher: pools.dispatcher('one') }),
      (pools) =>
        answerOf(httpsRequest('https://dest.example/', { agent: pools.agents('one').https })),
    ];
    for (const ask of over) {
      const egress = startEgress('', [['10.0.0.1']]);
      const pools = createPools(egress);
      await refusalOf(ask(pools));
      const refusal = { tenant_id: 'one', reason: 'address_refused', count: 1 };
      expect(egress.logged).to.deep.equal([refusal]);
      await pools.close();
    }
  });
});
