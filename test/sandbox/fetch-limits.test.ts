/** Scripts that fetch too much, for too long, or past the gateway (attacks C-12 row 176). */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { expect } from 'chai';
import { besideNeighbour } from '../support/sandbox.ts';
import { skipUnlessLinux } from '../support/skip.ts';
import { type FetchingSandbox, startFetching } from './fetch-echo.ts';

const SECRET = '4242424242424242';

describe('fetches of hostile scripts', () => {
  let inside: FetchingSandbox;
  before(async () => {
    // Nothing of the gateway's own ends a fetch within the time of a test.
    inside = await startFetching({ headersMs: 120_000, totalMs: 120_000 });
  });
  after(() => inside.close());

  it('are 50 in all and 10 at a time, of 10,000 in a loop', async () => {
    const before = inside.destination.requests.length;
    const value = await besideNeighbour(inside.sandbox, () =>
      inside.value(`
        const all = await Promise.allSettled(Array.from({ length: 10000 }, () => fetch(B + '/slow')));
        return [all.filter((one) => one.status === 'fulfilled').length, all.at(-1).reason.message];`),
    );
    expect(value).to.deep.equal([50, 'At most 50 calls of fetch in one run.']);
    expect(inside.destination.requests.length - before).to.equal(50);
  });

  it('do not lead to 10,000 names', async () => {
    const value = await inside.value(`
      const all = await Promise.allSettled(Array.from({ length: 10000 }, (_, at) =>
        fetch('https://n' + at + '.example.com:' + new URL(B).port)));
      return all.every((one) => one.status === 'rejected');`);
    expect(value).to.equal(true);
  });

  it('bring 10 MiB into a run, and end one that keeps too many of them', async () => {
    const value = await inside.value("return (await (await fetch(B + '/large')).text()).length;");
    expect(value).to.equal(10 * 1024 * 1024);
    const result = await besideNeighbour(inside.sandbox, () =>
      inside.sandbox.result(
        `module.exports = async ({ args }) => {
          const kept = [];
          for (let count = 0; count < 50; count += 1) kept.push(await (await fetch(args + '/large')).bytes());
          return kept.length;
        };`,
        {
          args: JSON.stringify(inside.base),
          services: { fetch: inside.fetches.fetchFor('greedy') },
          deadline_ms: 15_000,
        },
      ),
    );
    expect(result.kind).to.be.oneOf(['memory', 'error', 'crashed', 'timeout']);
  });

  it('send 5 MiB and not a byte more, text or not', async () => {
    const value = await inside.value(`
      const send = async (body) => Number(await (await fetch(B + '/length', { method: 'POST', body })).text());
      const size = 5 * 1024 * 1024;
      const refused = (body) => send(body).catch((error) => error.message);
      return [await send(new Uint8Array(size)), await send('x'.repeat(size)),
        await refused(new Uint8Array(size + 1)), await refused('x'.repeat(size + 1))];`);
    const tooLarge = 'The body of the request is larger than 5 MiB';
    expect(value).to.deep.equal([5 * 1024 * 1024, 5 * 1024 * 1024, tooLarge, tooLarge]);
  });

  it('wait beside each other: 100 runs of a tenant, none is refused', async () => {
    const waits = Array.from({ length: 100 }, () =>
      inside.value("return (await fetch(B + '/slow')).text();", 'patient'),
    );
    expect(new Set(await Promise.all(waits))).to.deep.equal(new Set(['slow']));
  });

  it('end with the run: what is under way is given up on the wire', async () => {
    const ended = await inside.value(`
      fetch(B + '/hang').catch(() => undefined);
      require('http').get(B + '/hang').on('error', () => undefined);
      await (await fetch(B + '/bytes')).text();
      return 'over';`);
    expect(ended).to.equal('over');
    await inside.destination.allClosed();
  });

  it('of one run do not answer in the next one of a context that is reused', async () => {
    const source = `
      let runs = 0;
      module.exports = async ({ args }) => {
        runs += 1;
        if (runs === 1) {
          fetch(args + '/slow').then(() => console.log('late'), () => console.log('late'));
          require('http').get(args + '/slow', () => { throw new Error('late'); });
        } else await (await fetch(args + '/slow')).text();
        return runs;
      };`;
    const request = {
      ...{ tenant_id: 'again', script_version: 'reused', source, reuse: true },
      ...{
        args: JSON.stringify(inside.base),
        services: { fetch: inside.fetches.fetchFor('again') },
      },
    };
    for (const runs of ['1', '2', '3']) {
      const run = await inside.sandbox.supervisor.run(request);
      expect(run).to.deep.equal({ result: { kind: 'ok', value: runs }, console: [] });
    }
  });

  it('never make the host open a socket', async function () {
    skipUnlessLinux(this, 'open sockets of a process are listed in /proc');
    const running = inside.value("return (await fetch(B + '/slow')).text();");
    const { pids } = inside.sandbox.supervisor.status();
    expect(pids).not.to.have.length(0);
    for (const pid of pids) expect(internetSockets(pid), String(pid)).to.deep.equal([]);
    expect(await running).to.equal('slow');
    // The same look at ourselves, with the destination listening here, finds something.
    expect(internetSockets(process.pid)).not.to.have.length(0);
  });

  it('cannot be told more than the closed list, whatever the URL holds', async () => {
    const messages = await inside.value(`
      const urls = ['https://${SECRET}.invalid:' + new URL(B).port, 'http://10.0.0.1/${SECRET}',
        'https://user:${SECRET}@example.com/', 'http://127.0.0.1:1/?${SECRET}', '${SECRET}', 'https://[${SECRET}]'];
      return Promise.all(urls.map((url) => fetch(url).then(() => '', (error) =>
        error.message + error.code + error.cause?.message)));`);
    expect(messages).to.be.an('array').with.length(6);
    expect(JSON.stringify(messages)).not.to.match(/4242|10\.0\.0\.1|127\.0\.0\.1/);
  });

  it('hold when the prototypes they may lean on are changed', async () => {
    const value = await inside.value(`
      const { parse } = JSON;
      const caught = [];
      Array.prototype.push = function (...items) { caught.push = undefined; return items.length; };
      Map.prototype.set = () => { throw new Error('mine'); };
      Object.prototype.redirect = 'manual';
      Promise.prototype.then = Promise.prototype.then;
      String.prototype.toUpperCase = () => 'CONNECT';
      try { return [(await fetch(B + '/bytes')).status]; } catch (error) { return [typeof error.message]; }`);
    expect(value).to.be.an('array').with.length(1);
    expect(await inside.value("return (await fetch(B + '/bytes')).status;")).to.equal(200);
  });
});

/** Sockets of a process that are TCP or UDP, in whichever network namespace it is. */
function internetSockets(pid: number): string[] {
  const listed = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((table) => {
    const path = `/proc/${pid}/net/${table}`;
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, 'utf8').trim().split('\n').slice(1);
    return lines.map((line) => line.trim().split(/\s+/)[9]);
  });
  const inodes = new Set(listed);
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const target = linkOf(`/proc/${pid}/fd/${fd}`);
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    return inode !== undefined && inodes.has(inode) ? [target] : [];
  });
}

/** Descriptors come and go while they are listed. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
