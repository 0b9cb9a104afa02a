/** Scripts that eat time or memory (attacks C-12), for the tests and for the bench's table of them. */

export type Kind = 'timeout' | 'memory' | 'crashed' | 'error' | 'result_too_large';
const STOPPED: readonly Kind[] = ['timeout', 'memory', 'crashed', 'error'];

/** [what it does, body of the function, how it may end]. */
export const BOMBS: readonly [string, string, readonly Kind[]][] = [
  ['an endless loop', 'while (true) {}', ['timeout']],
  ['an endless loop of microtasks', 'for (;;) await 0;', ['timeout']],
  [
    'an endless loop of chained promises',
    'const again = () => Promise.resolve().then(again); await again();',
    // None of them settles, as each waits for the next, so that all are kept. Whether their memory or
    // their time is over first depends on how fast the machine makes them; one or the other ends it.
    ['timeout', 'memory'],
  ],
  [
    // Nothing keeps these, so that only the time can be over.
    'microtasks that go on after the answer',
    'const again = () => void Promise.resolve().then(again); again(); return 1;',
    ['timeout'],
  ],
  ['a catastrophic pattern', "/^(a+)+$/.test('a'.repeat(40) + 'b');", ['timeout']],
  [
    'a comparator that never ends',
    'Array.from({ length: 9 }).sort(() => { for (;;) {} }); [3, 1].sort(() => { for (;;) {} });',
    ['timeout'],
  ],
  ['endless recursion', 'const deeper = () => deeper() + 1; deeper();', ['error']],
  ['an endless getter', 'return { get a() { for (;;) {} } };', ['timeout']],
  ['an endless toJSON', 'return { toJSON() { for (;;) {} } };', ['timeout']],
  ['an endless thenable', 'return { then() { for (;;) {} } };', ['timeout']],
  ['a promise that never settles', 'await new Promise(() => {});', ['error']],
  [
    'an endless loop in a timer',
    'await new Promise(() => setTimeout(() => { for (;;) {} }, 1));',
    ['timeout'],
  ],
  [
    'a timer that is longer than the deadline',
    'await new Promise((r) => setTimeout(r, 60_000));',
    ['timeout'],
  ],
  ['an interval without end', 'await new Promise(() => setInterval(() => {}, 1));', ['timeout']],
  ['1,000 timers', 'for (let i = 0; i < 1000; i++) setTimeout(() => {}, 9e6);', ['error']],
  ['squaring a BigInt', 'let x = 3n; for (;;) x *= x;', ['timeout', 'error', 'crashed', 'memory']],
  ['new names in one object', "const o = {}; for (let i = 0; ; i++) o['k' + i] = i;", STOPPED],
  ['a map that grows', 'const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]);', STOPPED],
  ['a set that grows', 'const s = new Set(); for (let i = 0; ; i++) s.add({ i });', STOPPED],
  ['endless Symbol.for', "for (let i = 0; ; i++) Symbol.for('s' + i);", STOPPED],
  ['an array of 1e9', 'return Array.from({ length: 1e9 });', STOPPED],
  ['a filled array of 1e9', 'return Array(1e9).fill(0);', STOPPED],
  [
    'a string that doubles',
    "let s = 'x'.repeat(99); for (;;) { s += s; s.charCodeAt(0); }",
    STOPPED,
  ],
  [
    'strings that are kept',
    "const a = []; for (;;) a.push(JSON.stringify('x'.repeat(1e5) + a.length));",
    STOPPED,
  ],
  ['buffers that are kept', 'const a = []; for (;;) a.push(new Uint8Array(1e7).fill(1));', STOPPED],
  [
    'a resizable buffer',
    'const a = []; for (;;) { const b = new ArrayBuffer(0, { maxByteLength: 1e9 }); b.resize(1e9); new Uint8Array(b).fill(1); a.push(b); }',
    STOPPED,
  ],
  [
    'a replacement that multiplies',
    "return 'a'.repeat(1 << 20).replace(/a/g, '$&'.repeat(1 << 10)).length;",
    STOPPED,
  ],
  [
    'closures that are kept',
    'const a = []; for (;;) { const b = new Array(1e4).fill(a.length); a.push(() => b); }',
    STOPPED,
  ],
  ['promises that are kept', 'const a = []; for (;;) a.push(new Promise(() => {}));', STOPPED],
  ['proxies around proxies', 'let p = {}; for (;;) p = new Proxy(p, {});', STOPPED],
  ['code made of code', "for (let i = 0; ; i++) new Function('return ' + i);", STOPPED],
  ['a result of 60 MB', "return 'x'.repeat(60e6);", ['result_too_large', 'memory', 'timeout']],
  ['a result just over the limit', "return 'x'.repeat(5 * 1024 * 1024);", ['result_too_large']],
  ['a result over the limit in UTF-8 only', "return 'é'.repeat(3e6);", ['result_too_large']],
  ['a result without end', 'const a = []; a.push(a); return a;', ['error']],
  ['an error message of 1 MB', "throw new Error('x'.repeat(1e6));", ['error']],
  [
    'a custom answer of 60 MB',
    "throw Object.assign(new Error(), { name: 'CustomHttpResponseError', status: 200, body: 'x'.repeat(6e7) });",
    ['result_too_large'],
  ],
];
