/** What the writer of a script is told of the place where it does not compile, or fails. */
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

describe('a script with a mistake', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  const NOT_COMPILED: readonly [string, string, string, number][] = [
    ['a bracket is open', 'module.exports = () => {\n  return 1;\n', 'Unexpected end of input', 3],
    ['a bracket is closed twice', 'module.exports = () => {\n}};', "Unexpected token '}'", 2],
    ['it returns where it may, too', "return;\nconst a = ';", 'Invalid or unexpected token', 2],
    [
      ...(['it is a module', 'const a = 1;\nexport default () => a;'] as const),
      "Unexpected token 'export'. Code is CommonJS: it has `require` and assigns its function to `module.exports`.",
      2,
    ],
    [
      ...(['it imports', "import axios from 'axios';\nmodule.exports = () => axios;"] as const),
      'Cannot use import statement outside a module. Code is CommonJS: it has `require` and assigns its function to `module.exports`.',
      1,
    ],
  ];
  for (const [what, source, message, line] of NOT_COMPILED) {
    it(`that does not compile says so of its own code when ${what}`, async () => {
      expect(await sandbox.result(source)).to.deep.equal({ kind: 'syntax', message, line });
    });
  }

  const LINES: readonly [string, string, number | undefined][] = [
    [
      'of its own function',
      'const deep = () => {\n null.a;\n};\nmodule.exports = () => deep();',
      2,
    ],
    ['behind a wait', 'module.exports = async () => {\n await null;\n\n null.a; };', 4],
    ['of a timer', 'module.exports = () => new Promise(() =>\n setTimeout(() => null.a, 1));', 2],
    [
      'of its own that called a module',
      "const { sortBy } = require('lodash');\nmodule.exports = () =>\n sortBy([1, 2], () => null.a);",
      3,
    ],
    ['of nothing', "module.exports = () => { throw 'a text'; };", undefined],
    [
      ...([
        'that it makes up',
        'module.exports = () => { throw { stack: "script.js:-1" }; };',
      ] as const),
      undefined,
    ],
    [
      'beyond any source',
      'module.exports = () => { throw { stack: "script.js:99999999999" }; };',
      undefined,
    ],
    [
      'that cannot be read',
      'module.exports = () => { throw { get stack() { throw 1; }, message: 1 }; };',
      undefined,
    ],
  ];
  for (const [what, source, line] of LINES) {
    it(`that fails says the line ${what}`, async () => {
      const ended = await sandbox.result(source);
      expect(ended.kind === 'error' && ended.error.line).to.equal(line);
    });
  }

  it('that fails where nobody waits says with what', async () => {
    const source = `module.exports = async () => {
      Promise.reject(new Error('later' + 'x'.repeat(2_000)));
      await new Promise((end) => setTimeout(end, 50)); };`;
    const ended = await sandbox.result(source);
    const [message = ''] = ended.kind === 'error' ? (ended.error.errors.error ?? []) : [];
    expect(message).to.match(/^The code failed outside of its function: laterx+$/);
    expect(message).to.have.length(1024);
  });

  const NO_CLIENT = ': `req.bt` is null without an application';
  const NO_ARGS = ': `req.args` is null';
  const HINTS: readonly [read: string, args: string, member: string, hint: string][] = [
    ['req.bt.tokens.create({})', '{}', 'tokens', NO_CLIENT],
    ['req.bt.tokenize({})', 'null', 'tokenize', NO_CLIENT],
    ['req.args.card.number', 'null', 'card', NO_ARGS],
    ['req.args.card.number', '{"card":null}', 'number', ''],
  ];
  for (const [read, args, member, hint] of HINTS) {
    it(`that reads of null is told what of its request is: ${read}, args ${args}`, async () => {
      const ended = await sandbox.result(`module.exports = async (req) => ${read};`, { args });
      const message = `Cannot read properties of null (reading '${member}')${hint}`;
      expect(ended.kind === 'error' && ended.error.errors).to.deep.equal({ error: [message] });
    });
  }

  for (const source of [
    'exports.default = async () => ({});',
    "Object.defineProperty(exports, '__esModule', { value: true });\nexports.default = () => 1;",
  ]) {
    it(`that was made of a module says what to export: ${source.slice(0, 40)}`, async () => {
      const message = 'module.exports must be a function, in place of exports.default.';
      expect(await sandbox.result(source)).to.deep.equal({ kind: 'type', message });
    });
  }
});
