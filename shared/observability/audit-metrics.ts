/** What is counted of the audit trail in one process. */
import { Counter, Gauge } from 'prom-client';
import type { Metrics } from './metrics.ts';

export interface AuditMetrics {
  /** Rows of accesses that were committed; those of changes commit with the change. */
  rows: Counter;
  /** Rows that the database refused for good. */
  lost: Counter;
  /** Answers that waited because too many rows were not written yet. */
  waits: Counter;
  /** Shows how many rows are not written yet. */
  observeQueue(count: () => number): void;
}

export function createAuditMetrics({ registry }: Pick<Metrics, 'registry'>): AuditMetrics {
  const registers = [registry];
  let countQueue = (): number => 0;
  new Gauge({
    name: 'sallyport_audit_queue_rows',
    help: 'Audit rows of accesses that are not written yet',
    registers,
    collect() {
      this.set(countQueue());
    },
  });
  return {
    rows: new Counter({
      name: 'sallyport_audit_rows_total',
      help: 'Audit rows of accesses that were written; those of changes are part of the change',
      registers,
    }),
    lost: new Counter({
      name: 'sallyport_audit_rows_lost_total',
      help: 'Audit rows of accesses that could not be written for good. Alarm on any',
      registers,
    }),
    waits: new Counter({
      name: 'sallyport_audit_waits_total',
      help: 'Answers that waited because too many audit rows were not written yet',
      registers,
    }),
    observeQueue: (count) => {
      countQueue = count;
    },
  };
}
