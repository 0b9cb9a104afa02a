import { expect } from 'chai';
import { createVersionGate } from '../../../data-plane/version-gate.ts';
import type { Queryable } from '../../../shared/postgres/pool.ts';

interface Statement {
  readonly tenantIds: string[];
  answer(version: string): void;
  fail(error: Error): void;
}

/** A gate on a database that answers when the test says so. */
function gateOnHeldDatabase() {
  const statements: Statement[] = [];
  const query = ({ values: [tenantIds] }: { values: [string[]] }) =>
    new Promise((resolve, reject) => {
      const rowsAt = (config_version: string) =>
        tenantIds.map((id) => ({ config_version: `${id} ${config_version}`, now_ms: 0 }));
      const answer = (version: string): void => resolve({ rows: rowsAt(version) });
      statements.push({ tenantIds, answer, fail: reject });
    });
  const db = { query } as unknown as Queryable;
  const gate = createVersionGate(db, () => undefined);
  const versionOf = async (id: string) => (await gate.read(id)).config_version;
  return { statements, versionOf };
}

/** As long as a statement can be waited for, and more. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('the version gate', () => {
  it('asks once for all callers of a tenant, and answers each tenant its own version', async () => {
    const { statements, versionOf } = gateOnHeldDatabase();
    const versions = Promise.all(['a', 'b', 'a', 'a'].map(versionOf));
    await until(() => statements.length === 1);
    expect(statements[0]?.tenantIds).to.deep.equal(['a', 'b']);
    statements[0]?.answer('1');
    expect(await versions).to.deep.equal(['a 1', 'b 1', 'a 1', 'a 1']);
  });

  it('never answers from a statement that had begun before the call', async () => {
    const { statements, versionOf } = gateOnHeldDatabase();
    const early = versionOf('a');
    await until(() => statements.length === 1);
    const late = versionOf('a');
    await until(() => statements.length === 2);
    statements[1]?.answer('2');
    expect(await late).to.equal('a 2');
    statements[0]?.answer('1');
    expect(await early).to.equal('a 1');
  });

  it('fails all callers of a statement, and asks anew for the next one', async () => {
    const { statements, versionOf } = gateOnHeldDatabase();
    const failing = Promise.allSettled([versionOf('a'), versionOf('a')]);
    await until(() => statements.length === 1);
    statements[0]?.fail(new Error('broken'));
    const outcomes = (await failing).map(({ status }) => status);
    expect(outcomes).to.deep.equal(['rejected', 'rejected']);
    const next = versionOf('a');
    await until(() => statements.length === 2);
    statements[1]?.answer('1');
    expect(await next).to.equal('a 1');
  });
});
