/** What the bench prints, and the file it leaves: figures with their spread, never one without. */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Finding, isMet, type Target } from './claim.ts';

const RESULTS = new URL('results/', import.meta.url);

/** What ran where, for both. */
export function environmentLine(): string {
  const cores = cpus();
  const [load = 0] = loadavg();
  const processor = `${cores.length} × ${cores[0]?.model.trim() ?? 'unknown'}`;
  return `Node ${process.versions.node} · ${processor} · load ${load.toFixed(1)} before`;
}

const COLUMNS = '  {mark}  {value}  {target}  {spread}  {title}\n';

/** The table's head. */
export function headText(): string {
  return row({ mark: ' ', value: 'found', target: 'target', spread: 'rounds', title: '' });
}

export function findingText(finding: Finding): string {
  const { value, rounds, unit, target, title } = finding;
  const spread = `${figure(Math.min(...rounds))} – ${figure(Math.max(...rounds))}`;
  return row({
    mark: target === undefined ? '·' : isMet(finding) ? '✓' : '✗',
    value: `${figure(value)} ${unit}`,
    target: target === undefined ? '' : `${boundText(target)} ${unit}`,
    spread,
    title,
  });
}

const boundText = (target: Target): string =>
  'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;

/** A claim that could not be measured to its end. */
export function failureText(name: string, error: unknown): string {
  return `  ✗  ${name} could not be measured: ${error instanceof Error ? error.message : 'unknown'}\n`;
}

function row(cells: Record<'mark' | 'value' | 'target' | 'spread' | 'title', string>): string {
  return COLUMNS.replace('{mark}', cells.mark)
    .replace('{value}', cells.value.padStart(9))
    .replace('{target}', cells.target.padEnd(9))
    .replace('{spread}', cells.spread.padEnd(13))
    .replace('{title}', cells.title);
}

/** Three digits are more than the noise leaves. */
const figure = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

/** Writes `results/<time>.json`; returns its path. */
export async function writeResults(machine: string, findings: readonly Finding[]): Promise<string> {
  const at = new Date().toISOString();
  const file = new URL(`${at.slice(0, 19).replaceAll(':', '-')}.json`, RESULTS);
  const judged = findings.map((finding) => ({ ...finding, met: isMet(finding) }));
  await mkdir(RESULTS, { recursive: true });
  await writeFile(file, `${JSON.stringify({ at, machine, findings: judged }, null, 2)}\n`);
  return fileURLToPath(file);
}
