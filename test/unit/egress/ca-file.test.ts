import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readCaFile } from '../../../shared/egress/trusted-tls.ts';
import { issueCertificate } from './issue-certificate.ts';

describe('readCaFile', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'sallyport-egress-ca-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  function file(text: string): string {
    const path = join(directory, 'ca.pem');
    writeFileSync(path, text);
    return path;
  }

  it('reads every certificate of the file and nothing between them', () => {
    const [one, two] = ['One', 'Two'].map((subject) => issueCertificate({ subject }).cert.trim());
    const path = file(`# our roots\n${one}\nSubject: CN=Two\n${two}\n`);
    expect(readCaFile(path)).to.deep.equal([one, two]);
  });

  it('refuses a file that is missing, has no certificate, or a broken one', () => {
    const { cert, key } = issueCertificate({ subject: 'One' });
    const broken = cert.replace(/^(.*\n.{20})./, '$1*');
    const truncated = cert.replace(/\n.*\n(?=-----END)/, '\n');
    expect(() => readCaFile(join(directory, 'missing'))).to.throw('cannot be read');
    for (const text of ['', 'hello', key, cert.slice(0, -30)]) {
      expect(() => readCaFile(file(text))).to.throw('without a PEM certificate');
    }
    for (const text of [broken, truncated, `${cert}${truncated}`]) {
      expect(() => readCaFile(file(text))).to.throw('broken certificate');
    }
  });
});
