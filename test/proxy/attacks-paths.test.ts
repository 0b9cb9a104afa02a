/**
 * Paths that climb, made from climbing ones by every disguise that decoders are known to take off, alone
 * and on top of each other. A reader of this file's own takes all of them off, in any combination.
 */
import { expect } from 'chai';
import { isWithinBase, readDestination, targetAt } from '../../data-plane/proxy/destination.ts';
import { ApiError } from '../../shared/errors.ts';

const RUNS = 20_000;
const BASE = '/base/of/it';
const destination = readDestination(`https://dest.example${BASE}`);

/** Seeded, so that a failure can be looked at again (mulberry32). */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

type Random = ReturnType<typeof randomFrom>;
const pick = <T>(random: Random, all: readonly T[]): T => all[random(all.length)] as T;

const DOTS = ['.', '%2e', '%2E', '%c0%ae', '%C0%AE', '%e0%80%ae', '%f0%80%80%ae', '%c0%2e'];
const SLASHES = ['/', '/', '/', '%2f', '%5c', '\\', '%c0%af', '%e0%80%af', '%c1%9c', '%u002f'];
const ENDS = ['', '', '', ';', ';a=b', '%3b', '%00', '%20', '%09', '%3fx', '%23x'];
const WORDS = ['a', 'b.c', '...', 'x;y=z', '%41', 'caf%c3%a9', '.well-known', 'a%20b', '~', '@:'];

/** The percent signs of a text encoded once more, or twice. */
const veil = (text: string, times: number): string =>
  times === 0 ? text : veil(text.replaceAll('%', '%25'), times - 1);

function climbingPath(random: Random): string {
  let path = '';
  for (let left = random(3); left > 0; left -= 1) path += `/${pick(random, WORDS)}`;
  const climb = pick(random, DOTS) + pick(random, DOTS) + pick(random, ENDS);
  path += pick(random, SLASHES) + climb + pick(random, ['', '/', '/x', '%2fx', '\\x']);
  return veil(path.startsWith('/') ? path : `/${path}`, random(4));
}

const randomPath = (random: Random): string => {
  let path = '/';
  const parts = [...DOTS, ...SLASHES, ...ENDS, ...WORDS, '%', '%2', '%25'];
  for (let left = random(9); left > 0; left -= 1) path += pick(random, parts);
  return veil(path, random(3));
};

/** One decoding: of plain bytes, of overlong ones, of `%u`. */
function decode(text: string): string {
  const overlong: [RegExp, string][] = [
    [/%(?:c0|e0%80|f0%80%80)%(?:ae|2e)/gi, '.'],
    [/%(?:c0|e0%80|f0%80%80)%(?:af|2f)/gi, '/'],
    [/%(?:c1|e0%81|f0%80%81)%(?:9c|1c)/gi, '\\'],
  ];
  const plain = overlong.reduce((all, [form, byte]) => all.replace(form, byte), text);
  return plain.replace(/%(?:u00)?([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Whether a reader who takes off everything would leave the base, after any number of decodings. */
function climbs(path: string): boolean {
  let text = path;
  for (let times = 0; times < 12; times += 1) {
    let depth = 0;
    for (const segment of text.split(/[/\\]/)) {
      const name = segment.replace(/[;?#\0].*$/s, '').trim();
      if (name === '..') depth -= 1;
      else if (name !== '' && name !== '.') depth += 1;
      if (depth < 0) return true;
    }
    text = decode(text);
  }
  return false;
}

function isAccepted(path: string): boolean {
  let target: string;
  try {
    target = targetAt(destination, { path, query: '' });
  } catch (error) {
    expect(error).to.be.instanceOf(ApiError);
    return false;
  }
  expect(target.startsWith(`${BASE}/`), path).to.equal(true);
  return true;
}

describe('paths in disguise', () => {
  it('never climb: no climbing segment is accepted in any of 20,000', () => {
    const random = randomFrom(20_261_120);
    for (let run = 0; run < RUNS; run += 1) {
      const path = climbingPath(random);
      expect(isWithinBase(path), path).to.equal(false);
      expect(isAccepted(path), path).to.equal(false);
    }
  });

  it('never climb: what is accepted stays below the base, in any of 20,000', () => {
    const random = randomFrom(4_104_021);
    let accepted = 0;
    for (let run = 0; run < RUNS; run += 1) {
      const path = randomPath(random);
      if (!isAccepted(path)) continue;
      accepted += 1;
      expect(climbs(path), path).to.equal(false);
    }
    expect(accepted).to.be.greaterThan(1_000);
  });

  it('are not all there is: ordinary names pass', () => {
    for (const word of WORDS) expect(isAccepted(`/${word}/${word}`), word).to.equal(true);
  });
});
