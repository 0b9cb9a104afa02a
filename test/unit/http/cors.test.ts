import { expect } from 'chai';
import { CORS_HEADERS, PREFLIGHT_HEADERS } from '../../../shared/http/cors.ts';

const asRecord = (flat: readonly string[]): Record<string, string> =>
  Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? '']] : [])));

describe('CORS headers', () => {
  it('open every answer to any origin, without credentials', () => {
    const headers = asRecord(CORS_HEADERS);
    expect(headers['access-control-allow-origin']).to.equal('*');
    expect(headers).to.not.have.property('access-control-allow-credentials');
    expect(headers['access-control-expose-headers']?.split(', ')).to.include.members([
      'bt-trace-id',
      'bt-proxy-destination-status',
    ]);
  });

  it('allow the methods and headers of the API in a preflight', () => {
    const headers = asRecord(PREFLIGHT_HEADERS);
    expect(headers['access-control-allow-headers']?.split(', ')).to.include.members([
      'bt-api-key',
      'bt-idempotency-key',
      'bt-proxy-key',
      'content-type',
    ]);
    expect(headers['access-control-allow-methods']?.split(', ')).to.include.members([
      'GET',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
    ]);
    expect(headers['access-control-allow-methods']).to.not.include('TRACE');
  });
});
