/** A destination's answer as text for a transform: all of its body, without its coding, bounded. */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import type { ApiError } from '../../shared/errors.ts';
import type { DestinationBody } from './destination-body.ts';
import { badGateway, destinationError } from './proxy-error.ts';

/** On the wire, and decoded: 165 bytes of brotli are 1 GiB. */
export const TRANSFORMED_BYTES_MAX = 10 * 1024 * 1024;

const DECODERS = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  br: promisify(brotliDecompress),
} as const;

/** Throws 502 when it is too large, breaks off, or is not what its coding says. */
export async function readWholeAnswer(
  body: DestinationBody,
  contentEncoding: string | undefined,
): Promise<Buffer> {
  const bytes = body.whole ?? (await collect(body));
  if (bytes.length > TRANSFORMED_BYTES_MAX) throw tooLarge();
  const coding = contentEncoding?.trim().toLowerCase() ?? '';
  if (bytes.length === 0 || coding === '' || coding === 'identity') return bytes;
  return decode(bytes, coding);
}

function collect(body: DestinationBody): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    body.deliverTo({
      data(chunk) {
        length += chunk.length;
        if (length <= TRANSFORMED_BYTES_MAX) chunks.push(chunk);
        else {
          reject(tooLarge());
          body.abort();
        }
        return true;
      },
      end: () => resolve(Buffer.concat(chunks, Math.min(length, TRANSFORMED_BYTES_MAX))),
      fail: (error) => reject(destinationError(error)),
    });
  });
}

async function decode(bytes: Buffer, coding: string): Promise<Buffer> {
  const decoder = decoderOf(bytes, coding);
  if (decoder === undefined) {
    throw badGateway('The answer of the destination has a Content-Encoding that is not served');
  }
  try {
    return await decoder(bytes, { maxOutputLength: TRANSFORMED_BYTES_MAX });
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw badGateway('The answer of the destination does not match its Content-Encoding', error);
  }
}

/** `deflate` is zlib's format (RFC 9110 section 8.4.1.2); some servers send the bare one. */
function decoderOf(bytes: Buffer, coding: string): typeof DECODERS.gzip | undefined {
  if (coding === 'deflate') {
    return ((bytes[0] ?? 0) & 0x0f) === 8 ? promisify(inflate) : promisify(inflateRaw);
  }
  return Object.hasOwn(DECODERS, coding) ? DECODERS[coding as keyof typeof DECODERS] : undefined;
}

function tooLarge(): ApiError {
  return badGateway(`The answer of the destination is over ${TRANSFORMED_BYTES_MAX} bytes`);
}
