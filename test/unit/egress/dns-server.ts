/** A DNS server on loopback that answers from a table, or not at all. Knows A, AAAA and CNAME only. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

export interface DnsServer {
  /** As a resolver takes it: `address:port`. */
  readonly address: string;
  /** Names in the order in which they were asked for, with the type: `A e.com`. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** `silent`: no answer; a number is the RCODE of an answer without records (2 SERVFAIL, 3 NXDOMAIN). */
export type Zone = (type: string, name: string) => readonly string[] | number | 'silent';

const TYPES: Record<number, string> = { 1: 'A', 5: 'CNAME', 28: 'AAAA' };
const HEADER_BYTES = 12;

export async function startDnsServer(zone: Zone): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (query, from) => {
    const { name, end } = readName(query);
    const type = TYPES[query.readUInt16BE(end)] ?? 'other';
    asked.push(`${type} ${name}`);
    const answer = type === 'other' ? [] : zone(type, name);
    if (answer !== 'silent') socket.send(response(query, end + 4, answer), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    close: () => closed(socket),
  };
}

function response(query: Buffer, end: number, answer: readonly string[] | number): Buffer {
  const question = Buffer.from(query.subarray(0, end));
  const records = typeof answer === 'number' ? [] : answer;
  question.writeUInt16BE(0x8180 | (typeof answer === 'number' ? answer : 0), 2);
  question.writeUInt16BE(records.length, 6);
  // Authority and additional sections of the query (EDNS) are not repeated.
  question.writeUInt32BE(0, 8);
  const type = query.readUInt16BE(end - 4);
  return Buffer.concat([question, ...records.map((record) => resourceRecord(type, record))]);
}

/** A record of the name in the question, with TTL 0. */
function resourceRecord(type: number, record: string): Buffer {
  const data =
    TYPES[type] === 'A' ? Buffer.from(record.split('.').map(Number)) : rest(type, record);
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** An IPv6 address in eight groups, or a name. */
function rest(type: number, record: string): Buffer {
  if (TYPES[type] === 'AAAA') {
    const groups = record.split(':').map((group) => group.padStart(4, '0'));
    return Buffer.from(groups.join(''), 'hex');
  }
  const labels = record
    .split('.')
    .map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let size = query.readUInt8(at); size > 0; size = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + size));
    at += size + 1;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

async function closed(socket: Socket): Promise<void> {
  const done = once(socket, 'close');
  socket.close();
  await done;
}
