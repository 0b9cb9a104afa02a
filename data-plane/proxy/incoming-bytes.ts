/** A request body that is read before it goes on, decoded, once, however often a request is decided. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BODY_ROOM, type BodyRoom } from '../../shared/http/body-room.ts';
import { type Coding, decompress, readCoding } from '../../shared/http/decompress.ts';
import { mayBeRead, readBody } from '../../shared/http/read-body.ts';
import type { AcceptedRequest } from '../../shared/http/strict-request.ts';

/** Design section 12: scanned proxy bodies. */
const BODY_BYTES_MAX = 5 * 1024 * 1024;

export interface IncomingBytes {
  /** As sent. */
  readonly wire: Buffer;
  /** The same object when they were not compressed. */
  readonly decoded: Buffer;
}

/**
 * A promise unless the bytes are here and not compressed. Throws 413 over 5 MiB, on the wire or decoded, 415 for a
 * coding that we do not undo.
 */
export function readIncomingBytes(
  req: IncomingMessage,
  res: ServerResponse,
  head: AcceptedRequest,
  room: BodyRoom = BODY_ROOM,
): IncomingBytes | Promise<IncomingBytes> {
  const coding = readCoding(head.contentEncoding);
  if (head.expectsContinue && mayBeRead(head, BODY_BYTES_MAX)) res.writeContinue();
  const wire = readBody(req, { limitBytes: BODY_BYTES_MAX, room });
  const isHere = coding === 'identity' && !(wire instanceof Promise);
  if (isHere) return { wire, decoded: wire };
  return decode(wire, coding).then((bytes) => {
    const { length } = bytes.decoded;
    // A destination may keep thousands of them waiting.
    room.hold(bytes.wire === bytes.decoded ? length : length + bytes.wire.length, res);
    return bytes;
  });
}

async function decode(reading: Buffer | Promise<Buffer>, coding: Coding): Promise<IncomingBytes> {
  const wire = await reading;
  const isPlain = coding === 'identity' || wire.length === 0;
  return { wire, decoded: isPlain ? wire : await decompress(wire, coding, BODY_BYTES_MAX) };
}
