/**
 * Connections full of requests: each begins as a good one, with a target of its own, and most are then
 * damaged. Bodies mostly are requests themselves, which no reader may take for ones that were sent.
 */

import { Random } from '../../support/random.ts';
import { MUTATIONS } from './mutations.ts';

/** A request in parts, before it is written. */
export interface Draft {
  method: string;
  target: string;
  version: string;
  /** Whole lines, without their ends. */
  headers: string[];
  /** Between lines of the head. */
  eol: string;
  /** As on the wire, framing included. */
  body: string;
}

export interface Keys {
  readonly apiKey: string;
  readonly proxyKey: string;
}

/** What is sent on one connection. */
export interface Connection {
  readonly number: number;
  /** latin1. */
  readonly bytes: string;
  /** Where it is cut into writes. */
  readonly cuts: readonly number[];
  /** Names of what was done to its requests; `none` for one that is whole. */
  readonly mutations: readonly string[];
}

export const isWhole = ({ mutations }: Connection): boolean =>
  mutations.every((name) => name === 'none');

/**
 * Line breaks end a head that lost its own end and fill bodies that a damaged length announces; the
 * last request then ends the connection, so that nothing has to wait for a timeout.
 */
export const PADDING = '\r\n'.repeat(600);
const METHODS = ['POST', 'POST', 'PUT', 'PATCH', 'GET', 'DELETE', 'HEAD'];
const TYPES = ['text/plain', 'application/octet-stream', 'application/json'];
const WHOLE_SHARE = 0.15;
const BYTE_INSERTS = [
  '\r\n',
  '\r',
  '\n',
  '\0',
  ': ',
  ' ',
  '\t',
  ',',
  '\xe9',
  '%',
  '4',
  ';',
  'X: y',
];

/** Connection `number` of a seed: the same bytes each time. */
export function makeConnection(seed: number, number: number, keys: Keys): Connection {
  const random = new Random(seed * 1_000_003 + number);
  const count = random.pick([1, 2, 2, 3]);
  const mutations: string[] = [];
  let bytes = '';
  for (let index = 0; index < count; index += 1) {
    const draft = makeDraft(random, `c${number}-${index}`, keys);
    const name = random.chance(WHOLE_SHARE) ? 'none' : random.pick(Object.keys(MUTATIONS));
    MUTATIONS[name]?.(draft, random);
    mutations.push(name);
    const text = write(draft);
    bytes += name === 'bytes' ? damage(text, random) : text;
  }
  const last = makeDraft(random, `c${number}-last`, keys);
  Object.assign(last, { method: 'GET', body: '' });
  last.headers = [...last.headers.filter((line) => !isFraming(line)), 'Connection: close'];
  bytes += PADDING + write(last);
  const cuts = random.chance(0.5) ? [] : [1, 2, 3].map(() => random.below(bytes.length));
  return { number, bytes, cuts: cuts.sort((a, b) => a - b), mutations };
}

const isFraming = (line: string): boolean => /^(?:content-length|transfer-encoding)/i.test(line);

function makeDraft(random: Random, marker: string, { apiKey, proxyKey }: Keys): Draft {
  const query = random.pick(['', '', '?a=1', `?a=1&bt-proxy-key=${proxyKey}&b`, '?x=%20']);
  const headers = [
    'Host: localhost',
    `BT-API-KEY: ${apiKey}`,
    `BT-PROXY-KEY: ${proxyKey}`,
    `Content-Type: ${random.pick(TYPES)}`,
  ];
  // The second engine.
  if (random.chance(0.25)) headers.push('BT-PROXY-KEEP-ALIVE: timeout=5');
  const draft: Draft = {
    ...{ method: random.pick(METHODS), target: `/proxy/${marker}${query}`, version: 'HTTP/1.1' },
    ...{ headers, eol: '\r\n', body: '' },
  };
  const hidden = `GET /proxy/${marker}-hidden HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
  const text = random.pick([hidden, hidden, `0\r\n\r\n${hidden}`, 'abcd']);
  const isJson = draft.headers.includes('Content-Type: application/json');
  frame(draft, isJson ? JSON.stringify({ text }) : text, random);
  return draft;
}

function frame(draft: Draft, body: string, random: Random): void {
  const kind = draft.method === 'HEAD' ? 'none' : random.pick(['length', 'chunked', 'none']);
  if (kind === 'length') {
    draft.headers.push(`Content-Length: ${body.length}`);
    draft.body = body;
  } else if (kind === 'chunked') {
    draft.headers.push('Transfer-Encoding: chunked');
    const middle = random.below(body.length - 1) + 1;
    const chunks = random.chance(0.5) ? [body] : [body.slice(0, middle), body.slice(middle)];
    const written = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    draft.body = `${written.join('')}0\r\n\r\n`;
  }
}

function write({ method, target, version, headers, eol, body }: Draft): string {
  return [`${method} ${target} ${version}`, ...headers, '', body].join(eol);
}

/** A few random changes anywhere in it. */
function damage(text: string, random: Random): string {
  let damaged = text;
  for (let times = random.below(3); times >= 0; times -= 1) {
    const at = random.below(damaged.length);
    const insert = random.chance(0.5)
      ? random.pick(BYTE_INSERTS)
      : String.fromCharCode(random.below(256));
    damaged = damaged.slice(0, at) + insert + damaged.slice(at + random.below(5));
  }
  return damaged;
}
