/** The unmodified client library @basis-theory/basis-theory-js: reactors run and fail as it expects. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { startCallbackReceiver } from '../api/reactors/callback-receiver.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const NUMBER = '4242424242424242';

describe('@basis-theory/basis-theory-js with reactors', () => {
  let sallyport: TestSallyport;
  let managementKey: string;
  let key: string;

  const clientOf = (apiKey: string) =>
    new BasisTheory().init(apiKey, { apiBaseUrl: sallyport.baseUrl, disableTelemetry: true });

  before(async () => {
    sallyport = await startSallyport({
      SANDBOX_HOSTS: '1',
      SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8',
    });
    managementKey = sallyport.tenant.managementKey;
    const { applications } = await clientOf(managementKey);
    const permissions = ['token:create', 'token:use'];
    const made = await applications.create({ name: 'Paying', type: 'private', permissions });
    key = made.key ?? '';
  });
  after(() => sallyport?.stop());

  async function reactorOf(code: string): Promise<string> {
    const client = await clientOf(managementKey);
    const formula = await client.reactorFormulas.create({
      ...{ name: 'Pay', type: 'private', code },
      configuration: [{ name: 'PSP_KEY', type: 'string' }],
      requestParameters: [{ name: 'card.number', type: 'string' }],
    });
    // The library's type of a new reactor knows no formula; its documentation and its code do.
    const draft = { name: 'Pay', formula, configuration: { PSP_KEY: 'k1' } };
    const reactor = await client.reactors.create(draft);
    return reactor.id;
  }

  it('reacts', async () => {
    const id = await reactorOf(`module.exports = async ({ args, configuration }) => ({
      raw: { charged: args.card.number.length, with: configuration.PSP_KEY, snake_case: true },
      tokenize: { type: 'token', data: 'a receipt' },
    })`);
    const client = await clientOf(key);
    const data = { number: NUMBER, expirationMonth: 12, expirationYear: 2030 };
    const card = await client.tokens.create({ type: 'card', data: { number: data.number } });
    const answer = await client.reactors.react(id, { args: { card: `{{ ${card.id} }}` } });
    expect(answer.raw).to.deep.include({ charged: 16, with: 'k1' });
    expect((answer.tokens as { type: string }).type).to.equal('token');
    expect(JSON.stringify(answer)).not.to.contain(NUMBER);
  });

  it('reacts asynchronously, and its answer comes to the callback', async () => {
    const id = await reactorOf('module.exports = ({ args }) => ({ raw: args.card.number.length })');
    const client = await clientOf(key);
    const card = await client.tokens.create({ type: 'card', data: { number: NUMBER } });
    const receiver = await startCallbackReceiver();
    try {
      const accepted = await client.reactors.react(id, {
        args: { card: `{{ ${card.id} }}` },
        callbackUrl: receiver.url,
        timeoutMs: 20_000,
      });
      expect(accepted).to.deep.equal({});
      expect((await receiver.callback(0)).body).to.deep.equal({ raw: 16 });
    } finally {
      await receiver.close();
    }
  });

  it('learns why code failed', async () => {
    const id = await reactorOf(`
      const { InvalidPaymentMethodError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      module.exports = async () => { throw new InvalidPaymentMethodError({ card: 'expired' }) }`);
    const client = await clientOf(key);
    const failed = client.reactors.react(id, { args: { card: { number: NUMBER } } }).then(
      () => undefined,
      (error: unknown) => error as { name: string; status: number; data: { errors: unknown } },
    );
    const error = await failed;
    expect(error).to.include({ name: 'BasisTheoryApiError', status: 402 });
    expect(error?.data.errors).to.deep.equal({ card: ['expired'] });
  });
});
