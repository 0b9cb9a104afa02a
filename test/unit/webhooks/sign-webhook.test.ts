import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import {
  newWebhookSecret,
  SECRET_BYTES,
  webhookHeaders,
  webhookSecretText,
} from '../../../shared/webhooks/sign-webhook.ts';

const asObject = (flat: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])),
  );

describe('webhook signatures', () => {
  it('are what the library of the standard verifies, with each of the secrets and no other', () => {
    // Of this test, not of the file: the library refuses what is five minutes old.
    const now = Math.floor(Date.now() / 1000);
    fc.assert(
      fc.property(fc.jsonValue(), fc.uuid(), fc.integer({ min: 1, max: 4 }), (value, id, count) => {
        const secrets = Array.from({ length: count }, newWebhookSecret);
        const body = JSON.stringify(value);
        const keys = secrets.map((secret) => createSecretKey(secret));
        const headers = asObject(webhookHeaders({ id, timestamp_s: now, body }, keys));
        for (const secret of secrets) {
          const webhook = new Webhook(webhookSecretText(secret));
          expect(webhook.verify(body, headers)).to.deep.equal(JSON.parse(body));
          expect(() => webhook.verify(`${body} `, headers)).to.throw();
          expect(() => webhook.verify(body, { ...headers, 'webhook-id': `${id}0` })).to.throw();
          const later = { ...headers, 'webhook-timestamp': String(now + 1) };
          expect(() => webhook.verify(body, later)).to.throw();
        }
        const other = new Webhook(webhookSecretText(newWebhookSecret()));
        expect(() => other.verify(body, headers)).to.throw();
      }),
      { numRuns: 50 },
    );
  });

  it('are left out without a secret; id and time are sent all the same', () => {
    expect(webhookHeaders({ id: 'a', timestamp_s: 1, body: '{}' }, [])).to.deep.equal([
      ...['webhook-id', 'a', 'webhook-timestamp', '1'],
    ]);
  });

  it('come of random secrets of the length that the standard asks for', () => {
    expect(SECRET_BYTES).to.be.within(24, 64);
    const texts = Array.from({ length: 100 }, () => webhookSecretText(newWebhookSecret()));
    expect(new Set(texts).size).to.equal(100);
    for (const text of texts) expect(text).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });
});
