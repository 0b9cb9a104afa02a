/**
 * Reads the body of a response for a script: bounded as it comes, bounded again as it is decoded, and
 * counted against what the tenant may hold. A bomb costs at most the limit.
 */
import { isUtf8 } from 'node:buffer';
import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { GatheredBytes } from '../gathered-bytes.ts';
import { fetchError } from './script-fetch-failure.ts';

/** Quoting blocks the process: 64 KiB take well under a millisecond. */
const TEXT_BYTES_MAX = 64 * 1024;

/** Bytes that are held for somebody; `take` throws when there is no room for more. */
export interface Room {
  take(bytes: number): void;
}

/** Collects a stream. Throws ScriptCallError above `bytes_max`; leaving early ends the stream. */
export async function collect(
  source: AsyncIterable<unknown>,
  bytes_max: number,
  room: Room,
): Promise<Buffer> {
  const gathered = new GatheredBytes();
  for await (const chunk of source) {
    if (!(chunk instanceof Uint8Array)) continue;
    if (gathered.length + chunk.length > bytes_max) throw fetchError('response_too_large');
    room.take(chunk.length);
    gathered.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
  }
  return gathered.whole();
}

/**
 * The bytes without their Content-Encoding; as they are when it is unknown or several are named, which
 * the script can see from the header.
 */
export async function collectDecoded(
  source: Readable,
  coding: string | undefined,
  bytes_max: number,
  room: Room,
): Promise<Buffer> {
  switch (coding?.trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return collectThrough(source, createGunzip(), bytes_max, room);
    case 'br':
      return collectThrough(source, createBrotliDecompress(), bytes_max, room);
    case 'deflate': {
      const bytes = await collect(source, bytes_max, room);
      if (bytes.length === 0) return bytes;
      // Meant as zlib's format (RFC 9110 section 8.4.1.2); some servers send the bare one.
      const decoder = ((bytes[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
      return collectThrough(
        Readable.from([bytes], { objectMode: false }),
        decoder,
        bytes_max,
        room,
      );
    }
    default:
      return collect(source, bytes_max, room);
  }
}

/** Decodes as it comes, so that an endless bomb ends at the first byte above the limit. */
async function collectThrough(
  source: Readable,
  decoder: Transform & { readonly bytesWritten: number },
  bytes_max: number,
  room: Room,
): Promise<Buffer> {
  // Carries errors on to the decoder, where they are seen, and destroys both at the end of either.
  pipeline(source, decoder, () => undefined);
  try {
    return await collect(decoder, bytes_max, room);
  } catch (error) {
    if (!isZlibError(error)) throw error;
    // No body at all, as of HEAD or 304, is a broken one only for the decoder.
    if (decoder.bytesWritten === 0) return Buffer.alloc(0);
    throw fetchError('response_not_decoded');
  }
}

/**
 * The member of the answer's JSON that carries the body: text where it is text and small, which spares
 * the script decoding it; base64 otherwise, which costs this process a tenth of quoting megabytes.
 */
export function bodyMember(bytes: Buffer): string {
  if (bytes.length <= TEXT_BYTES_MAX && isUtf8(bytes)) {
    return `"text":${JSON.stringify(bytes.toString('utf8'))}`;
  }
  return `"base64":"${bytes.toString('base64')}"`;
}

function isZlibError(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && /^(?:Z_|ERR_BROTLI|ERR__ERROR|ERR_PADDING)/.test(code);
}
