/** `GET /tokens/{id}` of revealed cards at 64 connections, against a hello and against single reads. */
import { readCards } from './cards.ts';
import { startProcess } from './child-process.ts';
import type { Claim } from './claim.ts';
import type { Lab } from './lab.ts';
import type { Workload } from './load/workload.ts';
import type { HelloSettings } from './peers/hello.ts';
import type { SingleReadSettings } from './peers/single-read.ts';
import { interleave, perCpuSecond, ratio, type Subject, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { createVault, DATA_PLANE_CONNECTIONS, startDataPlane, type Vault } from './vault.ts';

const TOKENS = 10_000;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const getToken: Claim = {
  name: 'get-token',
  async measure(lab) {
    const vault = await createVault(lab, 'get_token');
    const workload = readCards(vault, await seedCards(vault, TOKENS));
    const dataPlane = await startDataPlane(lab, vault);
    const product = await startSubject(lab, dataPlane, workload);
    const hello = await startHello(lab, dataPlane.port, vault, workload);
    const single = await startSingleRead(lab, vault, workload);
    const subjects = { product, hello, single };
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave(subjects, plan);
    const details = {
      ...summary('product', rounds.product),
      ...summary('hello', rounds.hello),
      ...summary('single', rounds.single),
    };
    return [
      {
        title: 'GET /tokens/{id} per CPU-second : a bare node:http answer of the same size',
        unit: 'x',
        ...ratio(rounds.product, rounds.hello, perCpuSecond),
        target: { atLeast: 0.4 },
        details,
      },
      {
        title: 'GET /tokens/{id} per CPU-second : the same route with one query per request',
        unit: 'x',
        ...ratio(rounds.product, rounds.single, perCpuSecond),
        target: { atLeast: 2.5 },
        details,
      },
    ];
  },
};

/** Answers with the body of a real read. */
async function startHello(
  lab: Lab,
  port: number,
  { key }: Vault,
  workload: Workload,
): Promise<Subject> {
  const url = `http://127.0.0.1:${port}/tokens/${workload.values[0]}`;
  const body = await (await fetch(url, { headers: { 'bt-api-key': key } })).text();
  const settings: HelloSettings = { body };
  const hello = lab.keep(await startProcess<{ port: number }>('peers/hello.ts', settings));
  const place = { port: hello.ready.port, pid: hello.pid };
  return startSubject(lab, place, { ...workload, contains: '{"id":"' });
}

async function startSingleRead(lab: Lab, vault: Vault, workload: Workload): Promise<Subject> {
  const { databaseUrl, kek } = vault;
  const databasePoolMax = DATA_PLANE_CONNECTIONS;
  const settings: SingleReadSettings = { databaseUrl, kek, databasePoolMax };
  const peer = lab.keep(await startProcess<{ port: number }>('peers/single-read.ts', settings));
  return startSubject(lab, { port: peer.ready.port, pid: peer.pid }, workload);
}
