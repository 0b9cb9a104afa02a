/** Reads tables of limits in docs/, and numbers of the sources, to hold one against the other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');
/** Longer, and nobody reads it. */
export const DOCUMENT_LINES_MAX = 130;

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

export const count = (value: number): string => value.toLocaleString('en-US');
export const seconds = (value_ms: number): string => `${value_ms / 1_000} s`;
export function bytes(value: number): string {
  if (value % 2 ** 30 === 0) return `${value / 2 ** 30} GiB`;
  return value % 2 ** 20 === 0 ? `${value / 2 ** 20} MiB` : `${value / 2 ** 10} KiB`;
}

/** Cells of the table below a heading, without its own head. */
export function tableBelow(document: string, heading: string): string[][] {
  const section = document.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** A constant that its module keeps to itself: a number, or a product of numbers. */
export function constantIn(path: string, name: string): number {
  const pattern = new RegExp(`^(?:export )?const ${name} = ([\\d_ *]+);`, 'm');
  const [, product] = pattern.exec(read(path)) ?? [];
  if (product === undefined) throw new Error(`${path} has no constant ${name}`);
  const factors = product.split('*').map((factor) => Number(factor.trim().replaceAll('_', '')));
  return factors.reduce((all, factor) => all * factor, 1);
}
