/**
 * Clients that each open a transaction, create tokens in it one after another, and commit it. An
 * operation is a committed token; the latency is that of a whole transaction.
 */
import { runAsBenchProcess } from '../child-process.ts';
import { type Exchange, openConnection } from './connection.ts';
import { goesOn, type RunLimit, type RunResult, resultOf } from './load.ts';

export interface TransactionLoadSettings {
  readonly port: number;
  readonly connections: number;
  readonly key: string;
  /** JSON of tokens, all of one length. */
  readonly bodies: readonly string[];
  readonly creates: number;
}

type Send = (exchange: Exchange) => Promise<string>;

async function begin(settings: TransactionLoadSettings) {
  return { ready: {}, serve: (limit: RunLimit) => run(settings, limit) };
}

async function run(settings: TransactionLoadSettings, limit: RunLimit): Promise<RunResult> {
  const { port, connections, creates } = settings;
  const latencies_ms: number[] = [];
  let begun = 0;
  let startedAt = 0;

  async function callInTurn(send: Send): Promise<void> {
    while (goesOn(limit, begun * creates, startedAt)) {
      begun += 1;
      const sentAt = performance.now();
      await oneTransaction(send, settings);
      latencies_ms.push(performance.now() - sentAt);
    }
  }
  const clients = await Promise.all(Array.from({ length: connections }, () => openClient(port)));
  startedAt = performance.now();
  await Promise.all(clients.map(({ send }) => callInTurn(send)));
  const result = resultOf(latencies_ms, startedAt);
  for (const { close } of clients) close();
  return { ...result, operations: result.operations * creates };
}

async function openClient(port: number): Promise<{ send: Send; close(): void }> {
  let settle: (answer: string) => void = () => undefined;
  const connection = await openConnection(port, (answer) => settle(answer));
  return {
    send: (exchange) =>
      new Promise((resolve) => {
        settle = resolve;
        connection.send(exchange);
      }),
    close: () => connection.close(),
  };
}

async function oneTransaction(
  send: Send,
  { key, bodies, creates }: TransactionLoadSettings,
): Promise<void> {
  const head = (line: string, more: string): string =>
    `POST ${line} HTTP/1.1\r\nhost: localhost\r\nbt-api-key: ${key}\r\n${more}\r\n`;
  const empty = 'content-length: 0\r\n';
  const opened = await send({
    request: head('/transactions', empty),
    status: 201,
    contains: 'expires_at',
  });
  const { id } = JSON.parse(opened.slice(opened.indexOf('{'))) as { id: string };
  for (let count = 0; count < creates; count += 1) {
    const body = bodies[Math.floor(Math.random() * bodies.length)] ?? '';
    const more =
      `bt-transaction-id: ${id}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n`;
    await send({ request: head('/tokens', more) + body, status: 201, contains: 'XXXX' });
  }
  const request = head(`/transactions/${id}/commit`, empty);
  await send({ request, status: 200, contains: '' });
}

runAsBenchProcess(begin);
