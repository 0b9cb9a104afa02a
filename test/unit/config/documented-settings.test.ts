/** docs/settings.md and README.md against the code: every setting there is, and no other. */
import { globSync } from 'node:fs';
import { expect } from 'chai';
import { describeEnvironment } from '../../../config/environment.ts';
import { DOCUMENT_LINES_MAX, ROOT, read, tableBelow } from '../documented-limits.ts';

const SETTINGS = describeEnvironment();
const NAMES = SETTINGS.flatMap(({ name }) => {
  const [own = '', twin] = name.split(', ');
  return twin === undefined ? [own] : [own, `${own}_FILE`];
});

describe('docs/settings.md', () => {
  it('has every setting with its default and its text, and no other', () => {
    const document = read('docs/settings.md');
    const rows = SETTINGS.map(({ name, fallback, text }) => {
      const names = name.split(', ').map((one) => `\`${one}\``);
      return `| ${names.join(', ')} | ${fallback} | ${text} |`;
    });
    const documented = document.split('\n').filter((line) => /^\| `[A-Z]/.test(line));
    expect(documented).to.deep.equal(rows);
    expect(document.split('\n').length).to.be.below(DOCUMENT_LINES_MAX);
  });
});

describe('README.md', () => {
  it('shows the defaults there are', () => {
    const rows = tableBelow(read('README.md'), 'Running it');
    expect(rows).to.have.length.above(5);
    for (const [name = '', shown = ''] of rows) {
      const setting = SETTINGS.find((one) => `\`${one.name.split(',')[0]}\`` === name);
      expect(setting, name).not.to.equal(undefined);
      // Words such as "generated" say what becomes of an unset one.
      if (setting?.fallback === 'unset') expect(shown, name).to.match(/^[a-z]+$/);
      else expect(setting?.fallback.split(' ')[0], name).to.equal(shown.replaceAll('`', ''));
    }
  });
});

describe('the documents', () => {
  it('name no setting of Sallyport that there is not', () => {
    const documents = ['*.md', 'docs/*.md'].flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
    expect(documents).to.include.members(['README.md', 'docs/reactors.md']);
    const named = documents.flatMap((path) => [...read(path).matchAll(/\bSALLYPORT_[A-Z_]+\b/g)]);
    const unknown = named.map(([name]) => name).filter((name) => !NAMES.includes(name));
    expect([...new Set(unknown)]).to.deep.equal([]);
  });
});
