import { expect } from 'chai';
import { startJobRunner } from '../reactors/job-runner.ts';
import { type AccessTrail, startAccessTrail, told } from './access-trail.ts';
import { trailOf } from './trail.ts';

describe('the audit trail of tokens that go through reactors', () => {
  let planes: AccessTrail['planes'];
  let tenant_id: string;
  let owner: AccessTrail['owner'];
  let send: AccessTrail['send'];
  let token: AccessTrail['token'];
  /** Of the code: what it does with tokens, it does by this right. */
  let script: AccessTrail['owner'];

  before(async () => {
    ({ planes, tenant_id, owner, send, token } = await startAccessTrail());
    script = await planes.application({
      permissions: ['token:read', 'token:create', 'token:delete'],
    });
  });
  after(() => planes?.stop());

  it('tells of what the caller used, what the code did, and what was made of its result', async () => {
    const [used, asked] = [await token(), await token({ containers: ['/b/'] })];
    const reactor = await planes.script(
      `await req.bt.tokens.retrieve('${asked}');
       await req.bt.tokens.delete('${asked}');
       return { raw: {}, tokenize: { made: { type: 'token', data: 'm', containers: ['/m/'] } } };`,
      { application: { id: script.id } },
    );
    const answer = await send(`POST /reactors/${reactor.id}/react`, {
      args: { value: `{{ ${used} }}` },
    });
    expect(answer.status, answer.text).to.equal(200);
    const made = (answer.body.tokens as { made: { id: string } }).made.id;
    const via = `via reactor ${reactor.id}`;
    expect(told(answer.rows)).to.deep.equal([
      `use token ${used} in /general/high/ ${via} by application ${owner.id}`,
      `read token ${asked} in /b/ ${via} by application ${script.id}`,
      `delete token ${asked} in /b/ ${via} by application ${script.id}`,
      `create token ${made} in /m/ ${via} by application ${script.id}`,
    ]);
  });

  it('tells the same of a run that came later, by the trace of the request', async () => {
    const used = await token();
    const reactor = await planes.script(
      `return { raw: 1, tokenize: { made: { type: 'token', data: 'm' } } };`,
      { application: { id: script.id } },
    );
    const json = { args: { value: `{{ ${used} }}` } };
    const { body, rows } = await send(`POST /reactors/${reactor.id}/react-async`, json);
    expect(rows).to.deep.equal([]);
    const settings = { SALLYPORT_AUDIT: 'strict' };
    const jobs = await startJobRunner(planes, { settings });
    try {
      const request = String(body.asyncReactorRequestId);
      const line = `GET /reactors/${reactor.id}/results/${request}`;
      let result = await send(line);
      while (result.status === 404) result = await send(line);
      expect(result.status, result.text).to.equal(200);
      const made = (result.body.tokens as { made: { id: string } }).made.id;
      const via = `via reactor ${reactor.id}`;
      const all = await trailOf(planes.control.pool, tenant_id);
      const ofRun = all.filter(({ entity_id, via_id }) => via_id !== null && entity_id !== null);
      expect(told(ofRun.slice(-2))).to.have.members([
        `use token ${used} in /general/high/ ${via} by application ${owner.id}`,
        `create token ${made} in /general/high/ ${via} by application ${script.id}`,
      ]);
      expect(new Set(ofRun.slice(-2).map(({ trace_id }) => trace_id)).size).to.equal(1);
    } finally {
      await jobs.stop();
    }
  });

  it('tells who was denied to use what, through which reactor', async () => {
    const id = await token({ containers: ['/secret/'] });
    const reactor = await planes.script('return { raw: 1 };');
    const none = await planes.application({ permissions: ['token:read'] });
    const poor = await planes.application({
      rules: [
        {
          ...{ priority: 1, container: '/a/', transform: 'reveal' },
          permissions: ['token:use'],
        },
      ],
    });
    const line = `POST /reactors/${reactor.id}/react`;
    const json = { args: { value: `{{ ${id} }}` } };
    const via = `via reactor ${reactor.id} by application`;
    expect(told((await send(line, json, poor.key)).rows)).to.deep.equal([
      `denied use token ${id} in /secret/ via reactor ${reactor.id} by application ${poor.id}`,
    ]);
    expect(told((await send(line, json, none.key)).rows)).to.deep.equal([
      `denied use token null in null ${via} ${none.id}`,
    ]);
  });

  it('tells of what the code was denied', async () => {
    const id = await token();
    const weak = await planes.application({ permissions: ['token:create'] });
    const reactor = await planes.script(
      `return { raw: await req.bt.tokens.retrieve('${id}').catch((e) => e.status) };`,
      { application: { id: weak.id } },
    );
    const answer = await send(`POST /reactors/${reactor.id}/react`, { args: {} });
    expect(answer.body.raw).to.equal(403);
    expect(told(answer.rows)).to.deep.equal([
      `denied read token ${id} in null via reactor ${reactor.id} by application ${weak.id}`,
    ]);
  });
});
