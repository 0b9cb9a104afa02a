/** A card number everywhere it does not belong: each request must be refused without repeating it. */
import { expect } from 'chai';
import { type Call, call, type JsonObject } from '../support/http-call.ts';
import { exchange } from '../support/raw-http.ts';

export interface MisusedVault {
  readonly url: string;
  /** Of an application that may create and read tokens. */
  readonly key: string;
  readonly managementKey: string;
}

/** The number everywhere it does not belong: each request must be refused. */
export async function misuse(number: string, vault: MisusedVault): Promise<void> {
  const card = { type: 'card', data: { number } };
  const spread = number.replace(/(.{4})/g, '$1-');
  const wrong: JsonObject[] = [
    { ...card, id: number },
    { ...card, id: `card ${spread}x` },
    { ...card, id: '{{ data.number }}' },
    { ...card, id: '{{ data.number | base64_encode }}' },
    { ...card, containers: [`/pci/${number}/`] },
    { ...card, containers: [`/pci/${number.slice(0, 8)}/${number.slice(8)}/`] },
    { ...card, metadata: { number } },
    { ...card, metadata: { [number]: 'x' } },
    { ...card, metadata: { card: spread } },
    { ...card, mask: '{{ data.number }}' },
    { ...card, mask: { shown: `is ${spread}` } },
    { ...card, search_indexes: [number] },
    { ...card, search_indexes: [`{{ data.number | no_such_filter: '${number}' }}`] },
    { ...card, fingerprint_expression: `{{ data.number }}${number}` },
    { ...card, fingerprint_expression: `{{ '${number}' | ` },
    { ...card, expires_at: number },
    { ...card, deduplicate_token: number },
    { type: number, data: number },
    { type: 'card', data: { number: `${number}x` } },
    { type: 'card', data: { number, expiration_month: number } },
    { type: 'card', data: { number, cvc: number } },
    { type: 'bank', data: { routing_number: number, account_number: number } },
    { data: number },
  ];
  for (const json of wrong) {
    const answer = await call(vault.url, 'POST /tokens', { key: vault.key, json });
    expect(answer.status, Object.keys(json).join()).to.equal(400);
    expect(answer.text).not.to.contain(number);
  }
  await misuseTransport(number, vault);
  await misuseManagement(number, vault);
}

async function misuseTransport(number: string, vault: MisusedVault): Promise<void> {
  const json = { 'content-type': 'application/json' };
  const calls: [number, string, Call][] = [
    [400, 'POST /tokens', { headers: json, body: `{"type":"card","data":{"number":"${number}"` }],
    [400, 'POST /tokens', { headers: json, body: `{"type":${number}${number}e${number}}` }],
    [415, 'POST /tokens', { headers: { 'content-type': `text/${number}` }, body: number }],
    [415, 'POST /tokens', { headers: { ...json, 'content-encoding': number }, body: number }],
    [404, `GET /tokens/${number}`, {}],
    [404, `DELETE /tokens/${number}`, {}],
    [404, `GET /${number}`, {}],
    [405, `PUT /tokens/${number}`, { json: { number } }],
    [400, `GET /tokens?page=${number}`, {}],
    [200, `GET /tokens?type=card&metadata.card=${number}&number=${number}`, {}],
    [200, `GET /tokens?id=${number}`, {}],
    [401, 'GET /tokens', { key: number }],
    [401, 'GET /tokens', { key: `key_${number}` }],
  ];
  const headers = Object.fromEntries(
    ['authorization', 'cookie', 'user-agent', 'referer', 'x-forwarded-for', 'x-request-id'].map(
      (name) => [name, number],
    ),
  );
  for (const [status, line, rest] of calls) {
    const given = { ...rest, headers: { ...headers, ...rest.headers } };
    const answer = await call(vault.url, line, { key: vault.key, ...given });
    expect(answer.status, line.replace(number, 'N')).to.equal(status);
    expect(answer.text).not.to.contain(number);
  }
  const port = Number(new URL(vault.url).port);
  const lines = [`GET /${number} HTTP/1.1`, `GET /${number} HTTP/9.9`, `${number} / HTTP/1.1`];
  for (const line of lines) {
    const { answers } = await exchange(port, `${line}\r\nBad ${number}\r\n\r\n`);
    expect(answers[0]?.status).to.be.within(400, 599);
    expect(answers[0]?.body).not.to.contain(number);
  }
}

async function misuseManagement(number: string, vault: MisusedVault): Promise<void> {
  const application = { name: 'x', type: 'private', permissions: ['token:read'] };
  const rule = { priority: 1, container: '/', transform: 'mask', permissions: ['token:read'] };
  const calls: [number, string, JsonObject?][] = [
    [400, 'POST /applications', { ...application, type: number }],
    [400, 'POST /applications', { ...application, permissions: [number] }],
    [400, 'POST /applications', { ...application, expires_at: number }],
    [400, 'POST /applications', { ...application, rules: [{ ...rule, transform: number }] }],
    [400, 'POST /applications', { ...application, rules: [{ ...rule, container: number }] }],
    [404, `PUT /applications/${number}`, application],
    [404, `POST /applications/${number}/regenerate`],
    [404, `GET /applications/${number}`],
    [400, `GET /permissions?application_type=${number}`],
    [400, 'PUT /tenants/self', { name: 'x', settings: { fingerprint_tokens: number } }],
    [400, 'PUT /tenants/self', { name: [number] }],
  ];
  for (const [status, line, json] of calls) {
    const rest = json === undefined ? {} : { json };
    const answer = await call(vault.url, line, { key: vault.managementKey, ...rest });
    expect(answer.status, line.replace(number, 'N')).to.equal(status);
    expect(answer.text).not.to.contain(number);
  }
}
