/** What is done to good requests (attacks C-14): each by name, so that a failure says what it was. */
import type { Random } from '../../support/random.ts';
import type { Draft } from './requests.ts';

export type Mutation = (draft: Draft, random: Random) => void;

const HUGE = '9'.repeat(23);

const lengthOf = ({ body }: Draft): string => String(body.length);
const isFraming = (line: string): boolean => /^(?:content-length|transfer-encoding)/i.test(line);
const unframed = (draft: Draft): string[] => draft.headers.filter((line) => !isFraming(line));

/** A line somewhere among the headers. */
function insertLine(draft: Draft, line: string, random: Random): void {
  draft.headers.splice(random.below(draft.headers.length + 1), 0, line);
}

function replaceLine(draft: Draft, name: string, line: string): void {
  draft.headers = draft.headers.map((one) => (one.startsWith(`${name}:`) ? line : one));
}

/** `change` gets one line of the head, each as likely. */
function changeLine(draft: Draft, random: Random, change: (line: string) => string): void {
  const index = random.below(draft.headers.length);
  draft.headers[index] = change(draft.headers[index] as string);
}

/** The body in one chunk whose parts are given. */
function chunked(draft: Draft, size: (hex: string) => string, tail = '\r\n0\r\n\r\n'): void {
  const data = draft.body === '' ? 'abcde' : draft.body;
  draft.headers = [...unframed(draft), 'Transfer-Encoding: chunked'];
  draft.body = `${size(data.length.toString(16))}\r\n${data}${tail}`;
}

const inserting =
  (lines: readonly string[]): Mutation =>
  (draft, random) =>
    insertLine(draft, random.pick(lines), random);

const FRAMING: Record<string, Mutation> = {
  'a second Content-Length': (draft, random) => {
    const length = random.pick([lengthOf(draft), '0', '4', `${draft.body.length + 7}`]);
    insertLine(draft, `Content-Length: ${length}`, random);
    if (random.chance(0.5)) insertLine(draft, `content-length: ${lengthOf(draft)}`, random);
  },
  'an odd Content-Length': (draft, random) => {
    const n = lengthOf(draft);
    const values = [`+${n}`, `0x${n}`, `0${n}`, `${n}, ${n}`, `${n} `, `\t${n}`, `-${n}`, '', HUGE];
    const more = [`${n};`, `${n}.0`, `1e2`, `${n} ${n}`, `${n}\v`, `"${n}"`, `${n}\xa0`, ` ${n}`];
    draft.headers = [...unframed(draft), `Content-Length: ${random.pick([...values, ...more])}`];
  },
  'a wrong Content-Length': (draft, random) => {
    const length = random.pick([
      0,
      1,
      draft.body.length - 1,
      draft.body.length + random.below(900),
    ]);
    draft.headers = [...unframed(draft), `Content-Length: ${Math.max(0, length)}`];
  },
  'both framings': (draft, random) => {
    const isChunked = draft.headers.includes('Transfer-Encoding: chunked');
    const other = isChunked ? `Content-Length: ${lengthOf(draft)}` : 'Transfer-Encoding: chunked';
    insertLine(draft, other, random);
    if (!isChunked) draft.body = `0\r\n\r\n${draft.body}`;
  },
  'an odd Transfer-Encoding': (draft, random) => {
    const values = [
      'xchunked',
      'chunked, identity',
      'identity',
      'Chunked',
      '\vchunked',
      '"chunked"',
    ];
    const more = ['chunked\t', 'chunked;a=b', 'gzip, chunked', 'chunked, chunked', '', 'ch\0unked'];
    const all = [...values, ...more, '\tchunked', 'x: chunked', 'chunked\x0c', 'cow', ',chunked'];
    const lines = random.chance(0.5) ? unframed(draft) : draft.headers;
    draft.headers = [...lines, `Transfer-Encoding: ${random.pick(all)}`];
  },
  'a Transfer-Encoding by another name': inserting([
    ...['Transfer-Encoding : chunked', 'Transfer_Encoding: chunked', ' Transfer-Encoding: chunked'],
    ...['Transfer-Encoding\t: chunked', 'Transfer-Encoding\0: chunked', 'TE: chunked, trailers'],
    ...['Transfer-\xadEncoding: chunked', 'X: y\nTransfer-Encoding: chunked', 'Trailer: X'],
    ...['X: y\rTransfer-Encoding: chunked', 'Content_Length: 3', 'Content-Length : 3'],
    ...[
      'Transfer-Encoding\r\n : chunked',
      'Transfer-Encoding:\r\n chunked',
      'Content-Encoding: br',
    ],
  ]),
  'an odd chunk size': (draft, random) => {
    const sizes: ((hex: string) => string)[] = [
      ...[(n: string) => `0x${n}`, (n: string) => `${n} `, (n: string) => ` ${n}`],
      ...[(n: string) => `+${n}`, (n: string) => `-${n}`, (n: string) => `00000${n}`],
      ...[(n: string) => `F${'0'.repeat(16)}${n}`, (n: string) => `${n};a=b`, () => ''],
      ...[(n: string) => `${n};a="\n"`, (n: string) => `${n}\n`, (n: string) => `${n}\r`],
      ...[(n: string) => `${n};${'x'.repeat(900)}`, (n: string) => n.toUpperCase(), () => 'g'],
      ...[(n: string) => `${n};a\nb`, (n: string) => `${n};\r\n`, (n: string) => `${n}\t;a`],
    ];
    chunked(draft, random.pick(sizes));
  },
  'an odd end of a chunk': (draft, random) => {
    const ends = [
      '\n0\r\n\r\n',
      '0\r\n\r\n',
      '\r0\r\n\r\n',
      'xx\r\n0\r\n\r\n',
      '\r\n\r\n0\r\n\r\n',
    ];
    chunked(draft, (size) => size, random.pick(ends));
  },
  'an odd last chunk': (draft, random) => {
    const zeros = ['00', '0000;a', '0 ', '-0', '0x0', '0\t', '', '0;a="', '0\n'];
    chunked(draft, (size) => size, `\r\n${random.pick(zeros)}\r\n\r\n`);
  },
  'no last chunk': (draft) => chunked(draft, (size) => size, '\r\n'),
  trailers: (draft, random) => {
    const good = ['X: y', 'Host: evil', 'BT-API-KEY: x', 'Connection: close', 'X: y\r\nZ: y'];
    const bad = ['Content-Length: 5', 'Transfer-Encoding: chunked', 'no colon', ' folded', 'X: \0'];
    chunked(draft, (size) => size, `\r\n0\r\n${random.pick([...good, ...bad])}\r\n\r\n`);
  },
};

const LINES: Record<string, Mutation> = {
  'a folded line': (draft, random) =>
    changeLine(draft, random, (line) => line.replace(': ', random.pick([':\r\n ', ': a\r\n\t']))),
  'a bare LF': (draft, random) =>
    changeLine(
      draft,
      random,
      (line) => `${line}\n${random.pick(['X: y', 'Content-Length: 3', ''])}`,
    ),
  'a bare CR': (draft, random) =>
    changeLine(draft, random, (line) => `${line}\r${random.pick(['X: y', '', '\r'])}`),
  'other line ends': (draft, random) => {
    draft.eol = random.pick(['\n', '\r', '\r\r\n', '\n\r', '\v\r\n']);
  },
  'an odd header': inserting([
    ...[
      'X Y: z',
      ': z',
      'X\x7f: z',
      'X\xe9: z',
      'X(: z',
      'no colon',
      'X:y',
      'X:',
      'X: \0',
      'X: \xff',
    ],
    ...['\0: z', 'X: caf\xc3\xa9', 'X: \x1b[2J', 'X;: y', '"X": y', 'X_Y: z', "X'*: z", 'X: \x7f'],
  ]),
  'empty lines before it': (draft, random) => {
    draft.method = random.pick(['\r\n', '\r\n\r\n', '\n', '\r', ' ', '\0']) + draft.method;
  },
  'very long': (draft, random) => {
    const length = random.pick([3_000, 7_000, 8_200, 15_000, 17_000]);
    if (random.chance(0.5)) draft.target += `${random.pick(['?', '-'])}${'l'.repeat(length)}`;
    else insertLine(draft, `X-Long: ${'l'.repeat(length)}`, random);
  },
  'many headers': (draft, random) => {
    const count = random.pick([80, 94, 110, 300]);
    for (let index = 0; index < count; index += 1) draft.headers.push(`X-${index}: y`);
  },
};

const HEADS: Record<string, Mutation> = {
  'an odd target': (draft, random) => {
    const path = draft.target;
    const rest = path.slice('/proxy'.length);
    const forms = [`http://localhost${path}`, `//localhost${path}`, `https://evil.example${path}`];
    const climbs = [`/proxy/../tokens${rest}`, `/proxy/%2e%2e${rest}`, `/proxy/..%2f${rest}`];
    const deeper = [`/proxy/%252e%252e${rest}`, `/proxy/.;a${rest}`, `/proxy/\\..${rest}`];
    const spelled = [`/%70roxy${rest}`, `/PROXY${rest}`, `/proxy;x${rest}`, `/proxy/${rest}`];
    const others = [
      '*',
      path.slice(1),
      `${path}#f`,
      `${path} x`,
      `${path}/./`,
      `${path}//`,
      '/proxy',
    ];
    const escapes = [`${path}%41`, `${path}%`, `${path}%00`, `${path}%0d%0aX:y`, `${path}\xe9`];
    const all = [...forms, ...climbs, ...deeper, ...spelled, ...others, ...escapes, '/proxy/', '/'];
    draft.target = random.pick([...all, `${path}&bt-proxy-key=x`, `${path}?bt%2Dproxy-key=x&c=d`]);
  },
  'an odd method': (draft, random) => {
    draft.method = random.pick([
      ...[
        'GeT',
        'TRACE',
        'CONNECT',
        'OPTIONS',
        'PRI',
        'POST ',
        '',
        'X',
        'GET\t',
        'QUERY',
        'PO\0ST',
      ],
    ]);
  },
  'an odd version': (draft, random) => {
    draft.version = random.pick([
      ...['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', 'http/1.1', 'HTTP/1.1 ', 'HTTP/1,1', ''],
      ...['HTTP/01.1', 'HTTP/1.1\0', 'HTTP/1.10', ' HTTP/1.1', 'HTTP/1.1 HTTP/1.1'],
    ]);
  },
  'an odd Host': (draft, random) => {
    const values = [
      'localhost/x',
      'a@localhost',
      'localhost:99999',
      '',
      'evil',
      'a b',
      '[::1',
      'a,b',
    ];
    if (random.chance(0.3)) insertLine(draft, `Host: ${random.pick(values)}`, random);
    else replaceLine(draft, 'Host', random.pick([...values.map((one) => `Host: ${one}`), 'X: y']));
  },
  'an Expect': inserting([
    ...['Expect: 100-continue', 'Expect: 100-Continue', 'Expect: x', 'Expect: 100-continue, x'],
    ...['Expect:', 'Expect: 100-continue\r\nExpect: 100-continue', 'Expect : 100-continue'],
  ]),
  'a Connection': inserting([
    ...['Connection: close, Content-Length', 'Connection: Transfer-Encoding', 'Connection: Host'],
    ...['Connection: BT-API-KEY', 'Connection: BT-PROXY-KEY', 'Connection: keep-alive, X-Y'],
    ...['Connection: close', 'Connection: keep-alive', 'Connection: upgrade', 'Connection:'],
    ...[`Connection: ${'x, '.repeat(60)}x`, 'Proxy-Connection: close', 'Keep-Alive: timeout=1'],
    ...[
      'Connection: close\r\nConnection: keep-alive',
      'Connection: cl\xf6se',
      'Connection: ,close,',
    ],
  ]),
  'a key twice': (draft, random) =>
    draft.headers.push(
      random.pick([
        ...['BT-PROXY-KEY: other', 'BT-API-KEY: other', 'bt-proxy-key:', 'Content-Type: text/html'],
        ...[
          'BT_PROXY_KEY: other',
          'BT-PROXY-URL: http://127.0.0.1:1/',
          'Bt-Trace-Id: a\r\nBt-Trace-Id: b',
        ],
      ]),
    ),
  'a reserved header': inserting([
    ...['BT-PROXY-KEEP-ALIVE: timeout=5, max=3', 'BT-PROXY-KEEP-ALIVE: close, content-length'],
    ...[
      'BT-PROXY-KEEP-ALIVE: timeout=5\tx',
      'BT-PROXY-CONNECTION: close',
      'BT-PROXY-CONNECTION: te',
    ],
    ...['BT-PROXY-CONNECTION: keep-alive', 'BT-PROXY-CONNECTION: close, content-length'],
  ]),
  'an Upgrade': inserting([
    ...[
      'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nConnection: Upgrade, HTTP2-Settings',
    ],
    ...[
      'Upgrade: websocket\r\nConnection: Upgrade',
      'Upgrade: TLS/1.0',
      'Proxy-Authorization: Basic x',
    ],
  ]),
};

/** `bytes` is done to the text of the request, once it is written. */
export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  ...FRAMING,
  ...LINES,
  ...HEADS,
  bytes: () => undefined,
};
