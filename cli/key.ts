/** `sallyport key issue|generate`: replaces a lost management key, or prints one to start with. */
import { Command, InvalidArgumentError } from 'commander';
import { findTenant, listTenants } from '../control-plane/tenants/tenant-store.ts';
import { issueManagementKey } from '../embedded/first-start.ts';
import type { Tenant } from '../shared/api/tenants.ts';
import { generateApiKey } from '../shared/api-keys.ts';
import { inTransaction, type Queryable } from '../shared/postgres/pool.ts';
import { type JsonOption, print } from './print.ts';
import { withDatabase } from './with-database.ts';

export function keyCommand(source: NodeJS.ProcessEnv): Command {
  const key = new Command('key').description('issue and generate management keys');
  key
    .command('issue')
    .description('give a tenant a new management key, e.g. for a lost one; it is shown this once')
    .option('--tenant <id>', 'its id, see `tenant list`; not needed where there is one', parseUuid)
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
  readonly tenant?: string;
}

/** Lets through what Postgres takes as a uuid; the id need not exist. */
function parseUuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be a UUID.');
}

async function issue(source: NodeJS.ProcessEnv, options: IssueOptions): Promise<void> {
  const { tenant_id, application, key } = await withDatabase(source, async (pool, installation) => {
    const { id } = await chosenTenant(pool, options.tenant);
    const issued = await inTransaction(pool, (client) =>
      issueManagementKey(client, installation, id),
    );
    return { tenant_id: id, ...issued };
  });
  print(options, { tenant_id, application_id: application.id, key }, [
    'A new management key, shown only this once:',
    '',
    `    ${key}`,
    '',
    `It is the key of application ${application.id}. Keys issued before go on working: delete`,
    'their application to end them.',
  ]);
}

/** Throws when there is none of this id, or, without one, more than one to choose from. */
async function chosenTenant(db: Queryable, id: string | undefined): Promise<Tenant> {
  if (id !== undefined) {
    const found = await findTenant(db, id);
    if (found === undefined) throw new Error('no tenant has this id: `tenant list` shows them');
    return found;
  }
  const [only, ...others] = await listTenants(db);
  if (only === undefined) throw new Error('there is no tenant yet: `tenant create` makes one');
  if (others.length > 0) throw new Error('say for which with --tenant: `tenant list` shows them');
  return only;
}

function generate(options: JsonOption): void {
  const key = generateApiKey();
  print(options, { key }, [key]);
}
