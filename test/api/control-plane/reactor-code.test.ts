/** Code is loaded in a sandbox before it is stored: what cannot run is refused, and harms nobody. */
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = function (req) { return { raw: req.args }; };';
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

describe('the code of reactors and formulas', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  function manage<T = JsonObject>(line: string, json?: unknown): Promise<Answer<T>> {
    const key = server.tenant.managementKey;
    const headers: Record<string, string> = line.startsWith('PATCH') ? MERGE_PATCH : {};
    return call<T>(server.baseUrl, line, { key, headers, ...(json === undefined ? {} : { json }) });
  }
  const codeErrors = ({ body }: Answer<JsonObject>): string[] =>
    (body.errors as { code: string[] }).code;

  const refused: [string, string, RegExp][] = [
    ['does not compile', 'const a = 1;\n\nmodule.exports = 1 +* a;', /\(line 3\)$/],
    ['exports no function', 'module.exports = { run() {} };', /function/],
    ['requires a module that is not there', "require('no-such-module');", /"no-such-module"/],
    ['requires a module of Node', "require('child_process');", /"child_process"/],
    ['throws while it loads', "throw new Error('not today');", /./],
    ['throws what is no error', 'throw null;', /./],
    ['never finishes loading', 'for (;;);', /within 5 seconds/],
  ];
  for (const [what, code, message] of refused) {
    it(`is refused when it ${what}`, async () => {
      const answer = await manage('POST /reactors', { name: 'R', code });
      expect(answer.status).to.equal(400);
      expect(answer.body.errors).to.have.all.keys('code');
      expect(codeErrors(answer)[0]).to.match(message);
    });
  }

  it('bounds the name of a module that it makes up', async () => {
    const code = "require('x'.repeat(100000));";
    const answer = await manage('POST /reactors', { name: 'R', code });
    expect(answer.status).to.equal(400);
    expect(codeErrors(answer)[0]).to.have.length.lessThan(300);
  });

  it('may require what a sandbox has, async or not', async () => {
    const code = "const { URL } = require('url');\nmodule.exports = async (req) => ({ raw: URL });";
    expect((await manage('POST /reactors', { name: 'R', code })).status).to.equal(201);
    expect((await manage('POST /reactors', { name: 'R', code: CODE })).status).to.equal(201);
  });

  const makers: [string, JsonObject][] = [
    ['reactor-formulas', { name: 'F', type: 'private', code: CODE }],
    ['reactors', { name: 'R', code: CODE }],
  ];
  for (const [resource, json] of makers) {
    it(`is not stored when it is refused, anew or over what was there: ${resource}`, async () => {
      const { body } = await manage(`POST /${resource}`, json);
      const broken = { ...json, name: 'Broken', code: 'module.exports = (' };
      expect((await manage(`POST /${resource}`, broken)).status).to.equal(400);
      expect((await manage(`PUT /${resource}/${body.id}`, broken)).status).to.equal(400);
      expect((await manage(`GET /${resource}/${body.id}`)).body).to.deep.equal(body);
      const named = await manage<{ data: [] }>(`GET /${resource}?name=Broken`);
      expect(named.body.data).to.deep.equal([]);
    });
  }

  it('is not stored by a patch when it is refused, nor is the rest of the patch', async () => {
    const { body } = await manage('POST /reactors', { name: 'R', code: CODE });
    const patch = { name: 'Broken', code: 'module.exports = (' };
    const answer = await manage(`PATCH /reactors/${body.id}`, patch);
    expect(answer.status).to.equal(400);
    expect(codeErrors(answer)[0]).to.match(/\(line 1\)$/);
    expect((await manage(`GET /reactors/${body.id}`)).body).to.deep.equal(body);
  });

  it('does not run where it is stored', async () => {
    const attacks = [
      'process.exit(1); module.exports = () => 1;',
      "globalThis.constructor.constructor('return process')().exit(1); module.exports = () => 1;",
      'Array.from({ length: 1e9 }); module.exports = () => 1;',
    ];
    for (const code of attacks) {
      expect((await manage('POST /reactors', { name: 'R', code })).status).to.equal(400);
      expect((await manage('GET /tenants/self')).status).to.equal(200);
    }
    expect((await manage('POST /reactors', { name: 'R', code: CODE })).status).to.equal(201);
  });

  it('is checked in turn: code that never loads delays others, and fails none of theirs', async () => {
    const { managementKey: key } = await server.addTenant('Other');
    const ended: string[] = [];
    const save = async (name: string, code: string, as?: string) => {
      const json = { name, code };
      const { status } = await (as === undefined
        ? manage('POST /reactors', json)
        : call(server.baseUrl, 'POST /reactors', { key: as, json }));
      ended.push(name);
      return status;
    };
    const first = save('first bomb', 'for (;;);');
    const second = save('second bomb', 'for (;;);');
    const theirs = save('theirs', CODE, key);
    expect(await Promise.all([first, second, theirs])).to.deep.equal([400, 400, 201]);
    // Whichever bomb came first, the other one was behind them.
    expect(ended.indexOf('theirs')).to.be.lessThan(2);
  });

  it('waits in a queue that has an end', async () => {
    const save = (code: string) => manage('POST /reactors', { name: 'R', code });
    const bomb = save('for (;;);');
    const answers = await Promise.all(Array.from({ length: 30 }, () => save(CODE)));
    expect((await bomb).status).to.equal(400);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).not.to.have.lengthOf(0);
    expect(refused[0]?.headers.get('retry-after')).to.equal('5');
    const saved = answers.filter(({ status }) => status === 201);
    expect(saved)
      .to.have.lengthOf(30 - refused.length)
      .and.not.lengthOf(0);
  });

  it('is not checked for those who may not store it', async () => {
    const application = { name: 'A', type: 'private', permissions: ['token:use'] };
    const made = await manage<{ key: string }>('POST /applications', application);
    const { status } = await call(server.baseUrl, 'POST /reactors', {
      ...{ key: made.body.key, json: { name: 'R', code: 'for (;;);' } },
    });
    expect(status).to.equal(403);
  });
});
