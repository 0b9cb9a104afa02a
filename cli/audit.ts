/** `sallyport audit verify|head`: whether the audit trail is still what was written, and where it ends. */
import { Command, InvalidArgumentError } from 'commander';
import { isSignedBy } from '../shared/audit/checkpoint.ts';
import { readHead, type StoredCheckpoint } from '../shared/audit/checkpoint-store.ts';
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
    .option('--head <number:digest>', 'a checkpoint kept elsewhere, which must be there', parseHead)
    .option('--json', 'answer with JSON')
    .action(async (options: VerifyOptions) => finish(await verify(source, options)));
  audit
    .command('head')
    .description('name the newest checkpoint, to be kept elsewhere for `verify --head`')
    .option('--json', 'answer with JSON')
    .action((options: JsonOption) => head(source, options));
  return audit;
}

interface VerifyOptions extends JsonOption {
  readonly head?: LoggedHead;
}

function parseHead(text: string): LoggedHead {
  const [, number, digest] = /^([1-9][0-9]{0,14}):([0-9a-f]{64})$/i.exec(text) ?? [];
  if (number === undefined || digest === undefined) {
    throw new InvalidArgumentError('It must be <number>:<digest> as `audit head` prints them.');
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

/** Throws when there is none, or none of ours: then there is nothing that is worth keeping. */
async function head(source: NodeJS.ProcessEnv, options: JsonOption): Promise<void> {
  const { number, digest, created_at } = await withDatabase(
    source,
    async (pool, { auditKey }): Promise<StoredCheckpoint> => {
      const newest = await readHead(pool);
      if (newest === undefined) throw new Error('There is no checkpoint yet.');
      if (isSignedBy(auditKey, newest.digest, newest.signature)) return newest;
      throw new Error(`checkpoint ${newest.number} ${TEXTS.checkpoint_forged}`);
    },
  );
  print(options, { number, digest, created_at }, [`${number}:${digest}`]);
}

const TEXTS: Readonly<Record<AuditProblemKind, string>> = {
  checkpoint_missing: 'is missing',
  checkpoint_changed: 'is not what was written',
  checkpoint_forged: 'has a signature that is not of this installation',
  rows_missing: 'covers rows that are missing',
  rows_added: 'finds rows that were not there',
  rows_changed: 'covers rows that were changed',
  head_missing: 'was given, but is not in the database: the end of the trail was cut off',
  head_changed: 'is not the one that was given: the trail was written anew',
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
