/** Good requests with random damage: never a crash, never an undocumented answer. */
import { expect } from 'chai';
import fc from 'fast-check';
import { exchange, type RawExchange } from '../support/raw-http.ts';
import { head, StrictServer } from '../support/strict-server.ts';

/**
 * Line breaks end a head that lost its own end, and fill any body that a damaged Content-Length
 * announces below the server's limit of 1,024 bytes: no case has to wait for a timeout.
 */
const PADDING = '\r\n'.repeat(600);

const statuses = ({ answers }: RawExchange) => answers.map(({ status }) => status);

describe('mutated requests', () => {
  const strict = new StrictServer();
  before(() => strict.listen());
  after(() => strict.stop());

  it('survives mutated requests, and answers them with documented statuses only (property)', async () => {
    const valid = `${head('POST /tokens HTTP/1.1', 'Content-Length: 2', 'Connection: close')}{}`;
    const mutation = fc.record({
      at: fc.nat({ max: valid.length }),
      remove: fc.nat({ max: 6 }),
      insert: fc.oneof(
        fc.constantFrom(
          '\r\n',
          '\r',
          '\n',
          '\0',
          ': ',
          ' ',
          '\t',
          ',',
          '\u00e9',
          '%',
          '4',
          'X: y\r\n',
        ),
        fc.string({ unit: 'binary-ascii', maxLength: 4 }),
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
        let bytes = valid;
        for (const { at, remove, insert } of mutations) {
          bytes = bytes.slice(0, at) + insert + bytes.slice(at + remove);
        }
        const result = await exchange(strict.port, bytes + PADDING, 1);
        for (const status of statuses(result)) {
          expect([200, 204, 400, 401, 404, 405, 413, 414, 415, 417, 431]).to.include(status);
        }
        const probe = await exchange(strict.port, head('GET /alive HTTP/1.1'), 1);
        expect(statuses(probe)).to.deep.equal([200]);
      }),
      { numRuns: 150 },
    );
  });
});
