/** `crypto` inside a script against Node's own: the same values, and the same refusals. */
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { evaluateBoth, type Outcomes } from './crypto-cases/crypto-cases.ts';

const isRefusal = (outcome: unknown): boolean =>
  typeof outcome === 'object' && outcome !== null && 'error' in outcome;

describe('crypto inside a script', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  for (const [file, groups] of [
    ['node-hash', ['digests', 'message authentication', 'key derivation', 'random values']],
    ['node-cipher', ['ciphers']],
    ['node-keys', ['keys', 'signatures', 'RSA encryption', 'the rest']],
    ['web-secrets', ['digests and HMAC', 'AES', 'key derivation']],
    ['web-pairs', ['RSA', 'curves']],
    ['node-errors', ['ciphers', 'digests and random values', 'keys']],
    ['web-errors', ['refusals']],
  ] as const) {
    describe(file, () => {
      let both: { inside: Outcomes; node: Outcomes };
      before(async () => {
        both = await evaluateBoth(sandbox, file);
      });
      for (const group of groups) {
        it(`agrees with Node in ${group}`, () => {
          const { inside, node } = both;
          expect(Object.keys(node)).to.have.members([...groups]);
          expect(node[group]).to.satisfy((outcomes: readonly unknown[]) =>
            outcomes.every((outcome) => isRefusal(outcome) === file.endsWith('-errors')),
          );
          expect(inside[group]).to.deep.equal(node[group]);
        });
      }
    });
  }
});
