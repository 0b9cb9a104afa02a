/** `sallyport audit verify`: whether the audit trail is still what was written. */
import { Command, InvalidArgumentError } from 'commander';
import {
  type AuditProblem,
  type AuditProblemKind,
  type AuditVerdict,
  type LoggedHead,
  verifyAudit,
} from '../shared/audit/verify-audit.ts';
import { type JsonOption, print } from './print.ts';
import { withDatabase } from './with-database.ts';

/** The trail is not what was written. */
const BROKEN = 1;

export function auditCommand(source: NodeJS.ProcessEnv, finish: (code: number) => void): Command {
  const audit = new Command('audit').description('check the audit trail');
  audit
    .command('verify')
    .description('hold all rows of the audit trail against its signed checkpoints')
    .option('--head <number:digest>', 'a checkpoint from the log, which must be there', parseHead)
    .option('--json', 'answer with JSON')
    .action(async (options: VerifyOptions) => finish(await verify(source, options)));
  return audit;
}

interface VerifyOptions extends JsonOption {
  readonly head?: LoggedHead;
}

function parseHead(text: string): LoggedHead {
  const [, number, digest] = /^([1-9][0-9]{0,14}):([0-9a-f]{64})$/i.exec(text) ?? [];
  if (number === undefined || digest === undefined) {
    throw new InvalidArgumentError('It must be <number>:<digest> as the log has them.');
  }
  return { number: Number(number), digest: digest.toLowerCase() };
}

async function verify(source: NodeJS.ProcessEnv, options: VerifyOptions): Promise<number> {
  const verdict = await withDatabase(source, (pool, installation) =>
    verifyAudit(pool, installation, options.head),
  );
  print(options, { intact: verdict.problems.length === 0, ...verdict }, linesOf(verdict));
  return verdict.problems.length === 0 ? 0 : BROKEN;
}

const TEXTS: Readonly<Record<AuditProblemKind, string>> = {
  checkpoint_missing: 'is missing',
  checkpoint_changed: 'is not what was written',
  checkpoint_forged: 'has a signature that is not of this installation',
  rows_missing: 'covers rows that are missing',
  rows_added: 'finds rows that were not there',
  rows_changed: 'covers rows that were changed',
  head_missing: 'is in the log, but not in the database: the end of the trail was cut off',
  head_changed: 'is another one in the log: the trail was written anew',
};

function lineOf({ kind, number, month, tenant_id }: AuditProblem): string {
  const place = month === undefined ? '' : ` (${month.slice(0, 7)}, tenant ${tenant_id})`;
  return `checkpoint ${number} ${TEXTS[kind]}${place}`;
}

function linesOf({ problems, checkpoints, rows, uncovered, head }: AuditVerdict): string[] {
  const summary =
    head === null
      ? 'There is no checkpoint yet.'
      : `${checkpoints} checkpoint${checkpoints === 1 ? '' : 's'} over ${rows} rows; the newest is ${head.number}:${head.digest}`;
  const outcome = problems.length === 0 ? 'The audit trail is intact.' : 'It was tampered with.';
  return [...problems.map(lineOf), outcome, summary, `${uncovered} rows wait for the next one.`];
}
