/** The same cases run by Node and inside the sandbox, from one text, so that the two can be compared. */
import crypto, { type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import type { Sandbox } from '../../support/sandbox.ts';

/** Group → what each of its cases came to: JSON of the value, or class and code of the error. */
export type Outcomes = Readonly<Record<string, readonly unknown[]>>;

/** Bytes as hex, errors as class and code: the same in Node and inside. */
const EVALUATE = `
function plain(value) {
  if (value instanceof ArrayBuffer) return plain(new Uint8Array(value));
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = value;
    return 'bytes:' + Buffer.from(buffer, byteOffset, byteLength).toString('hex');
  }
  if (typeof value === 'bigint') return String(value);
  if (value === undefined) return 'undefined';
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
}
async function evaluate(work) {
  try {
    return { value: plain(await work()) };
  } catch (error) {
    return { error: error.name, code: typeof error.code === 'string' ? error.code : undefined };
  }
}
async function evaluateAll(groups) {
  const outcomes = {};
  for (const [name, cases] of Object.entries(groups)) {
    outcomes[name] = [];
    for (const work of cases) outcomes[name].push(await evaluate(work));
  }
  return outcomes;
}`;

/** What the cases of a file come to inside, and in Node. */
export async function evaluateBoth(
  sandbox: Sandbox,
  file: string,
): Promise<{ inside: Outcomes; node: Outcomes }> {
  const cases = readFileSync(join(import.meta.dirname, `${file}.cjs`), 'utf8');
  const body = `${EVALUATE}
    const module = {};
    ${cases}
    return evaluateAll(module.exports(crypto, keys));`;
  const keys = makeKeys();
  const here = compileFunction(`return (async () => {${body}})();`, ['crypto', 'keys']);
  const inside = await sandbox.value(
    `module.exports = async ({ args: keys }) => { const crypto = require('crypto'); ${body} };`,
    { args: JSON.stringify(keys) },
  );
  const node: unknown = JSON.parse(JSON.stringify(await here(crypto, keys)));
  return { inside: outcomesOf(inside), node: outcomesOf(node) };
}

function outcomesOf(value: unknown): Outcomes {
  if (typeof value !== 'object' || value === null) throw new Error('There are no outcomes.');
  return value as Outcomes;
}

/** Fresh keys as text, under the names that the cases use. */
function makeKeys(): Record<string, unknown> {
  const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ed = crypto.generateKeyPairSync('ed25519');
  const [x, y] = [crypto.generateKeyPairSync('x25519'), crypto.generateKeyPairSync('x25519')];
  const locked = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'pw' } as const;
  return {
    RSA: pem(rsa.privateKey),
    RSAPUB: pem(rsa.publicKey),
    RSA1: rsa.privateKey.export({ format: 'pem', type: 'pkcs1' }),
    RSAPUB1: rsa.publicKey.export({ format: 'pem', type: 'pkcs1' }),
    RSAJ: rsa.privateKey.export({ format: 'jwk' }),
    ENC: rsa.privateKey.export({ type: 'pkcs8', ...locked }),
    LEG: rsa.privateKey.export({ type: 'pkcs1', ...locked }),
    EC: pem(ec.privateKey),
    EC1: ec.privateKey.export({ format: 'pem', type: 'sec1' }),
    ECPUB: pem(ec.publicKey),
    ED: pem(ed.privateKey),
    EDPUB: pem(ed.publicKey),
    EDX: ed.publicKey.export({ format: 'jwk' }).x,
    X: pem(x.privateKey),
    YPUB: pem(y.publicKey),
    SPKI: der(rsa.publicKey),
    PKCS8: der(rsa.privateKey),
    ECSPKI: der(ec.publicKey),
    ECP8: der(ec.privateKey),
    EDP8: der(ed.privateKey),
  };
}

const structureOf = (key: KeyObject) => (key.type === 'private' ? 'pkcs8' : 'spki');
const pem = (key: KeyObject) => key.export({ format: 'pem', type: structureOf(key) });
const der = (key: KeyObject) =>
  key.export({ format: 'der', type: structureOf(key) }).toString('base64');
