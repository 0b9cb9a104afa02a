/** npm modules for data inside scripts, each used for its purpose with a known answer. */
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

describe('a script that requires', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  /** The value of a script's body; `args` as `req.args`. */
  const inside = (body: string, args: unknown = null): Promise<unknown> =>
    sandbox.value(`module.exports = async (req) => { ${body} };`, { args: JSON.stringify(args) });

  it('lodash gets it', async () => {
    const body = `const _ = require('lodash');
      return [_.get(req.args, 'a.b[1]'), _.groupBy([1, 2, 3], (n) => (n % 2 ? 'odd' : 'even')),
        _.merge({ a: { x: 1 } }, { a: { y: 2 } }), _.template('Hi <%= name %>')({ name: 'you' }), _.camelCase('a-b c')];`;
    expect(await inside(body, { a: { b: [1, 2] } })).to.deep.equal([
      ...[2, { odd: [1, 3], even: [2] }, { a: { x: 1, y: 2 } }, 'Hi you', 'aBC'],
    ]);
  });

  it('uuid gets random and name-based ids', async () => {
    const body = `const { v4, v5, v1, validate, version, NIL, parse, stringify } = require('uuid');
      const id = v4();
      return [validate(id) && version(id), v5('www.example.com', v5.DNS), v5('https://www.w3.org/', v5.URL),
        version(v1()), NIL, stringify(parse(id)) === id, v4() !== v4()];`;
    // The first is the example of RFC 9562, appendix A.4.
    expect(await inside(body)).to.deep.equal([
      ...[4, '2ed6657d-e927-568b-95e1-2665a8aea6a2', 'c106a26a-21bb-5538-8bf2-57095d1976c1'],
      ...[1, '00000000-0000-0000-0000-000000000000', true, true],
    ]);
  });

  it('json-stable-stringify gets sorted keys', async () => {
    const body = `return require('json-stable-stringify')({ b: 1, a: [{ d: 1, c: 2 }] });`;
    expect(await inside(body)).to.equal('{"a":[{"c":2,"d":1}],"b":1}');
  });

  it('p-limit gets no more at once than it said', async () => {
    const body = `const limit = require('p-limit')(2); let now = 0; let most = 0;
      const work = async (n) => { most = Math.max(most, ++now); await new Promise((r) => setTimeout(r, 2)); now -= 1; return n * n; };
      const results = await Promise.all([1, 2, 3, 4, 5].map((n) => limit(work, n)));
      return [most, results];`;
    expect(await inside(body)).to.deep.equal([2, [1, 4, 9, 16, 25]]);
  });

  it('csv-parse gets records, at once, by callback and as a stream', async () => {
    const body = `const { parse } = require('csv-parse'); const sync = require('csv-parse/sync');
      const text = 'name;note\\n"a ""b""";x\\nc;"y\\nz"\\n'; const options = { columns: true, delimiter: ';' };
      const called = await new Promise((done, fail) => parse(text, options, (error, rows) => (error ? fail(error) : done(rows))));
      const streamed = []; for await (const row of require('stream').Readable.from([text]).pipe(parse(options))) streamed.push(row);
      let wrong; try { sync.parse('a,b\\n1\\n', { columns: true }); } catch (error) { wrong = error.code; }
      return [sync.parse(text, options), called, streamed, wrong];`;
    const records = [
      { name: 'a "b"', note: 'x' },
      { name: 'c', note: 'y\nz' },
    ];
    expect(await inside(body)).to.deep.equal([
      ...[records, records, records, 'CSV_RECORD_INCONSISTENT_COLUMNS'],
    ]);
  });

  it('xmlbuilder2 gets XML, there and back', async () => {
    const body = `const { create, convert } = require('xmlbuilder2');
      const xml = create({ version: '1.0' }).ele('pay', { id: 1 }).ele('amount').txt('1 < 2 & é').up().ele('empty').end();
      return [xml, create('<pay id="1"><amount>é</amount><empty/></pay>').end({ format: 'object' }), convert({ a: { '@b': 'c', '#': 'd' } }, { headless: true })];`;
    expect(await inside(body)).to.deep.equal([
      '<?xml version="1.0"?><pay id="1"><amount>1 &lt; 2 &amp; é</amount><empty/></pay>',
      { pay: { '@id': '1', amount: 'é', empty: {} } },
      '<a b="c">d</a>',
    ]);
  });

  it('fast-xml-parser gets XML, there and back, and no entity bomb', async () => {
    const body = `const { XMLParser, XMLBuilder, XMLValidator } = require('fast-xml-parser');
      const options = { ignoreAttributes: false }; const xml = '<a x="1"><b>2</b><b>c &amp; d</b></a>';
      const parsed = new XMLParser(options).parse(xml);
      const bomb = '<!DOCTYPE a [<!ENTITY x "' + 'y'.repeat(1000) + '"><!ENTITY z "' + '&x;'.repeat(1000) + '">]><a>' + '&z;'.repeat(1000) + '</a>';
      let size = 0; try { size = JSON.stringify(new XMLParser({ processEntities: true }).parse(bomb)).length; } catch { size = -1; }
      return [parsed, new XMLBuilder(options).build(parsed), XMLValidator.validate('<a>').err.code, size < 5e6];`;
    expect(await inside(body)).to.deep.equal([
      { a: { b: [2, 'c & d'], '@_x': '1' } },
      '<a x="1"><b>2</b><b>c &amp; d</b></a>',
      ...['InvalidTag', true],
    ]);
  });

  const STORE = {
    store: {
      book: [
        { price: 5, title: 'a' },
        { price: 15, title: 'b' },
      ],
      'odd name': 1,
    },
  };
  it('jsonpath gets what a path names', async () => {
    const body = `const jp = require('jsonpath'); const data = req.args;
      return [jp.query(data, '$.store.book[?(@.price < 10)].title'), jp.query(data, '$..price', 1), jp.value(data, '$.store.book[1].title'),
        jp.paths(data, '$.store.book[*].price'), jp.nodes(data, "$.store['odd name']"), jp.parent(data, '$..book').book.length,
        jp.stringify(['$', 'store', 'book', 0, 'odd name']), jp.query(data, ['$', 'store', 'odd name']),
        jp.value(data, '$.store.book[0].price', 7), jp.apply(data, '$..price', (n) => n + 1).length, data.store.book.map((b) => b.price)];`;
    expect(await inside(body, STORE)).to.deep.equal([
      ...[['a'], [5], 'b'],
      [
        ['$', 'store', 'book', 0, 'price'],
        ['$', 'store', 'book', 1, 'price'],
      ],
      [{ path: ['$', 'store', 'odd name'], value: 1 }],
      ...[2, '$.store.book[0]["odd name"]', [1], 7, 2, [8, 16]],
    ]);
  });

  for (const path of [
    '$[(@.length-1)]',
    '$..[?(@.constructor.constructor("return 1")())]',
    '$[?(process.exit())]',
  ]) {
    it(`jsonpath never runs a path as code: ${path}`, async () => {
      const body = `globalThis.ran = false; try { require('jsonpath').query([1], req.args); } catch (error) { return [error.name, ran]; } return 'evaluated';`;
      expect(await inside(body, path)).to.deep.equal(['JSONPathSyntaxError', false]);
    });
  }

  it('jsonpath cannot be made to change a prototype', async () => {
    const body = `const jp = require('jsonpath');
      const data = JSON.parse('{"__proto__":{"x":1},"a":{}}');
      jp.value(data, "$['__proto__'].x", 'own'); jp.value(data, '$.a.__proto__.y', 'up'); jp.apply(data, "$['__proto__']", () => ({ z: 1 }));
      return [({}).x ?? null, ({}).y ?? null, ({}).z ?? null, JSON.stringify(data)];`;
    expect(await inside(body)).to.deep.equal([null, null, null, '{"__proto__":{"z":1},"a":{}}']);
  });

  it('stream gets pipelines, transforms and back-pressure', async () => {
    const body = `const { Readable, Transform, PassThrough, Writable } = require('stream'); const { pipeline } = require('stream/promises');
      const upper = new Transform({ transform(chunk, _encoding, done) { done(null, chunk.toString().toUpperCase()); } }); let text = '';
      await pipeline(Readable.from(['a', Buffer.from('b')]), upper, new Writable({ write(chunk, _encoding, done) { text += chunk; done(); } }));
      const wrong = await pipeline(Readable.from(['x']), new Transform({ transform(_chunk, _encoding, done) { done(new Error('no')); } }), new PassThrough()).catch((error) => error.message);
      const slow = new PassThrough({ highWaterMark: 2 }); const decoder = new (require('string_decoder').StringDecoder)('utf8');
      return [text, wrong, slow.write('abc'), decoder.write(Buffer.from([0xe2, 0x82])) + decoder.write(Buffer.from([0xac]))];`;
    expect(await inside(body)).to.deep.equal(['AB', 'no', false, '€']);
  });

  it('events and stream gets what older code makes of them', async () => {
    const body = `const EventEmitter = require('events'); const { inherits } = require('util'); const stream = require('stream'); const seen = [];
      function Old() { EventEmitter.call(this); } inherits(Old, EventEmitter);
      const old = new Old(); const gone = () => seen.push('gone'); old.on('x', gone); old.removeListener('x', gone);
      old.once('x', (n) => seen.push(n)); old.prependListener('x', (n) => seen.push(-n)); old.emit('x', 1); old.emit('x', 2);
      const mixed = Object.assign({}, EventEmitter.prototype); mixed.on('y', () => seen.push('y')); mixed.emit('y');
      function Words() { stream.Readable.call(this); } inherits(Words, stream.Readable); Words.prototype._read = function () { this.push('w'); this.push(null); };
      for await (const word of new Words()) seen.push(String(word));
      let thrown; try { old.emit('error', new TypeError('t')); } catch (error) { thrown = error.name; }
      return [seen, thrown, old instanceof EventEmitter, new stream.Readable() instanceof EventEmitter, EventEmitter.listenerCount(old, 'x')];`;
    expect(await inside(body)).to.deep.equal([
      ...[[-1, 1, -2, 'y', 'w'], 'TypeError', true, true, 1],
    ]);
  });

  it('yup gets values checked', async () => {
    const body = `const yup = require('yup');
      const schema = yup.object({ email: yup.string().email().required(), age: yup.number().min(18) });
      const good = await schema.validate({ email: 'a@example.com', age: '20' });
      const bad = await schema.validate({ email: 'no', age: 3 }, { abortEarly: false }).catch((error) => [error.name, error.errors.length, error instanceof yup.ValidationError]);
      return [good, bad];`;
    expect(await inside(body)).to.deep.equal([
      { email: 'a@example.com', age: 20 },
      ['ValidationError', 2, true],
    ]);
  });

  it('dayjs and luxon get dates, also of other time zones', async () => {
    const body = `const dayjs = require('dayjs');
      for (const plugin of ['utc', 'timezone', 'customParseFormat', 'duration']) dayjs.extend(require('dayjs/plugin/' + plugin));
      const { DateTime } = require('luxon');
      return [dayjs.utc('2023-01-31T10:00:00Z').add(1, 'month').format('YYYY-MM-DD'), dayjs.utc('2023-07-01T10:00:00Z').tz('America/New_York').format('HH:mm Z'),
        dayjs('05/11', 'MM/YY').month(), dayjs.duration(90, 'minutes').asHours(),
        DateTime.fromISO('2023-07-01T10:00:00Z').setZone('Asia/Tokyo').toISO(), DateTime.fromISO('2024-02-29').plus({ years: 1 }).toISODate()];`;
    expect(await inside(body)).to.deep.equal([
      ...['2023-02-28', '06:00 -04:00', 4, 1.5, '2023-07-01T19:00:00.000+09:00', '2025-02-28'],
    ]);
  });

  it('snakecase-keys gets them', async () => {
    const body = `return require('snakecase-keys')({ cardNumber: 1, nested: { expiryYear: 2 } });`;
    expect(await inside(body)).to.deep.equal({ card_number: 1, nested: { expiry_year: 2 } });
  });

  it('pdf-lib makes a PDF and reads it again', async () => {
    const body = `const { PDFDocument, StandardFonts, rgb } = require('pdf-lib');
      const pdf = await PDFDocument.create(); const page = pdf.addPage([200, 100]);
      page.drawText('Receipt', { x: 10, y: 50, size: 20, font: await pdf.embedFont(StandardFonts.Helvetica), color: rgb(0, 0, 1) });
      const bytes = await pdf.save(); const again = await PDFDocument.load(bytes);
      return [Buffer.from(bytes).toString('latin1', 0, 5), again.getPageCount(), again.getPage(0).getSize()];`;
    expect(await inside(body)).to.deep.equal(['%PDF-', 1, { width: 200, height: 100 }]);
  });
});
