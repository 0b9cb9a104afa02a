/** `sallyport key issue|generate`: replaces a lost management key, or prints one to start with. */
import { Command, InvalidArgumentError } from 'commander';
import { findTenant } from '../control-plane/tenants/tenant-store.ts';
import { issueManagementKey } from '../embedded/first-start.ts';
import { generateApiKey } from '../shared/api-keys.ts';
import { inTransaction } from '../shared/postgres/pool.ts';
import { type JsonOption, print } from './print.ts';
import { withDatabase } from './with-database.ts';

export function keyCommand(source: NodeJS.ProcessEnv): Command {
  const key = new Command('key').description('issue and generate management keys');
  key
    .command('issue')
    .description('give a tenant a new management key, e.g. for a lost one; it is shown this once')
    .requiredOption('--tenant <id>', 'id of the tenant, see `tenant list`', parseUuid)
    .option('--json', 'answer with JSON')
    .action((options: IssueOptions) => issue(source, options));
  key
    .command('generate')
    .description('print a random key for SALLYPORT_BOOTSTRAP_KEY; nothing is stored')
    .option('--json', 'answer with JSON')
    .action((options: JsonOption) => generate(options));
  return key;
}

interface IssueOptions extends JsonOption {
  readonly tenant: string;
}

/** Lets through what Postgres takes as a uuid; the id need not exist. */
function parseUuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be a UUID.');
}

async function issue(source: NodeJS.ProcessEnv, options: IssueOptions): Promise<void> {
  const { application, key } = await withDatabase(source, async (pool, installation) => {
    if ((await findTenant(pool, options.tenant)) === undefined) {
      throw new Error('no tenant has this id: `tenant list` shows them');
    }
    return inTransaction(pool, (client) =>
      issueManagementKey(client, installation, options.tenant),
    );
  });
  print(options, { tenant_id: options.tenant, application_id: application.id, key }, [
    'A new management key, shown only this once:',
    '',
    `    ${key}`,
    '',
    'Keys issued before go on working: delete their application to end them.',
  ]);
}

function generate(options: JsonOption): void {
  const key = generateApiKey();
  print(options, { key }, [key]);
}
