/** README.md as its reader tries it: every command works, and answers what is shown. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { JsonObject } from '../support/http-call.ts';
import { type Program, startProgram } from '../support/start-program.ts';
import {
  blocksBelow,
  commandsOf,
  expectShown,
  isCall,
  README,
  Reader,
  ROOT,
} from './readme-walk.ts';

const run = promisify(execFile);
const READY = /^Sallyport is ready at (http:\/\/localhost:[0-9]+)$/m;
const KEY = /^ {4}(key_[1-9A-HJ-NP-Za-km-z]+)$/m;
const ORDER = /^POST \/orders item=7&card=([0-9a-f-]{36})\n/m;
const ANY_PORT = { PORT: '0', CONTROL_PLANE_PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'warn' };

describe('README.md', function () {
  // One installation, and what a reader does within minutes.
  this.timeout(120_000);
  let root: string;
  let program: Program;
  let reader: Reader;
  const stubs: ChildProcess[] = [];
  let printed = '';

  before(async () => {
    root = await fs.mkdtemp(join(tmpdir(), 'sallyport-readme-'));
    const [, allowed] = /^SALLYPORT_EGRESS_ALLOW=(\S+) .*npm start$/m.exec(README) ?? [];
    const settings = { ...ANY_PORT, DATA_DIR: join(root, 'data'), SALLYPORT_EGRESS_ALLOW: allowed };
    program = startProgram('embedded/start.ts', [], settings);
    const baseUrl = (await program.says(READY))[1] ?? '';
    const [psp, orders] = [await freePort(), await freePort()];
    reader = new Reader({
      'http://localhost:3000': baseUrl,
      '127.0.0.1:4999': `127.0.0.1:${psp}`,
      '127.0.0.1:4998': `127.0.0.1:${orders}`,
      'listen(4999': `listen(${psp}`,
      'listen(4998': `listen(${orders}`,
    });
    reader.variables.MANAGEMENT_KEY = KEY.exec(program.stdout())?.[1] ?? '';
  });
  after(async () => {
    for (const stub of stubs) stub.kill('SIGKILL');
    program?.child.kill('SIGTERM');
    await program?.finished;
    await fs.rm(root, { recursive: true });
  });

  /** The stub of the README, which prints what it gets. Settles when it listens. */
  async function startStub(command: string): Promise<void> {
    const code = /^node -e '([\s\S]*)'$/.exec(reader.fill(command))?.[1] ?? '';
    const listening = code.replace(/\)\s*$/, ', () => console.log("listening"))');
    const stub = spawn(process.execPath, ['-e', listening], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    stubs.push(stub);
    stub.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    await once(stub.stdout, 'data');
  }

  /** Does what a section says, in order; what is shown must be the answer to what came before it. */
  async function walk(heading: string): Promise<JsonObject[]> {
    const answers: JsonObject[] = [];
    for (const block of blocksBelow(heading)) {
      if (block.language === 'json') expectShown(answers.at(-1), block);
      if (block.language === 'js') await runLibrary(block.text);
      if (block.language !== 'sh') continue;
      for (const command of commandsOf(block)) {
        if (command.startsWith('node ')) await startStub(command);
        if (isCall(command)) answers.push(await reader.call(command));
      }
    }
    expect(answers.length, heading).to.be.above(2);
    return answers;
  }

  /** As the README has it, in a folder where the package is installed. */
  async function runLibrary(code: string): Promise<void> {
    const source = `const KEY = '${reader.variables.KEY}';\n${reader.fill(code)}`;
    await run(process.execPath, ['--input-type=module', '-e', source], { cwd: ROOT });
  }

  /** A text that the README puts between backticks. */
  function quoted(pattern: RegExp): string {
    const [, text] = pattern.exec(README) ?? [];
    if (text === undefined) throw new Error(`README.md has no ${pattern}`);
    return text;
  }

  /** The group of the pattern, once a stub has printed it: its answer may be here before. */
  async function printedIn(pattern: RegExp): Promise<string> {
    for (;;) {
      const [, text] = pattern.exec(printed) ?? [];
      if (text !== undefined) return text;
      await Promise.race(stubs.map((stub) => once(stub.stdout as NodeJS.ReadableStream, 'data')));
    }
  }

  const readCard = (): Promise<JsonObject> =>
    reader.call('curl -sS http://localhost:3000/tokens/$CARD -H "BT-API-KEY: $KEY"');

  it('stores a card, shows it in clear, and masked from then on', async () => {
    const answers = await walk('A walk-through');
    const numbers = answers.map(({ data }) => (data as JsonObject | undefined)?.number);
    expect(numbers).to.deep.equal([
      ...[undefined, 'XXXXXXXXXXXX4242', '4242424242424242', undefined, undefined],
    ]);
    expect((await readCard()).data).to.include({ number: 'XXXXXXXXXXXX4242' });
    const query = quoted(/`GET\s+(\/tokens\?[^`]+)`/);
    const found = await reader.call(
      `curl -sS 'http://localhost:3000${query}' -H "BT-API-KEY: $KEY"`,
    );
    expect(JSON.stringify(found)).to.contain(reader.variables.CARD);
  });

  it('charges a card that nobody sees', async () => {
    await walk('Charge a card that nobody sees');
    const charge = quoted(/`(psp-1 [^`]+)`/);
    expect(await printedIn(/^(psp-1 .*)\n/m)).to.equal(charge);
  });

  it('takes a card out of a form, and puts it into a request', async () => {
    const answers = await walk('Let a form post a card through');
    const orders = answers.find(({ name }) => name === 'Orders');
    const refused = await fetch(reader.fill('http://localhost:3000/proxy'), {
      method: 'POST',
      headers: { 'bt-proxy-key': String(orders?.key) },
      body: new URLSearchParams({ number: '1', item: '7' }),
    });
    expect(refused.status).to.equal(400);
    const { proxy_error } = (await refused.json()) as { proxy_error: JsonObject };
    expect(proxy_error.errors).to.deep.equal({ error: ['number: no card number'] });
    expect(quoted(/`(item=7&card=<token id>)`/)).not.to.equal('');
    expect(await printedIn(ORDER)).to.equal(reader.variables.NUMBER);
    await printedIn(/^ ({"number": "4242424242424242", "amount": 1250})\n/m);
  });

  it('does nothing twice, and tells who saw what', async () => {
    const heading = 'Nothing twice, nothing late, nothing lost';
    const answers = await walk(heading);
    const [first = ''] = blocksBelow(heading).flatMap(commandsOf);
    expect(await reader.call(first)).to.deep.equal(answers[0]);
    const [kept, , staged, , logs] = answers;
    expect(JSON.stringify(logs)).to.contain(kept?.id).and.to.contain(staged?.id);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
