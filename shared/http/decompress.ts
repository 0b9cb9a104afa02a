/**
 * Undoes one `Content-Encoding` of a whole, bounded body. Output and window are capped, so a bomb
 * costs at most the limit; two encodings on top of each other are not served.
 */
import {
  brotliDecompress,
  type CompressCallback,
  constants,
  gunzip,
  type ZlibOptions,
  zstdDecompress,
} from 'node:zlib';
import { ApiError } from '../errors.ts';

/** RFC 8878 section 3.1.1.1.2 asks for 8 MiB; the library's own 128 MiB is a bomb by itself. */
const ZSTD_WINDOW_LOG_MAX = 23;

export type Coding = 'identity' | 'gzip' | 'br' | 'zstd';

/** The coding that `Content-Encoding` names; 415 for an unknown one or several. */
export function readCoding(contentEncoding: string | undefined): Coding {
  if (contentEncoding === undefined || contentEncoding === '') return 'identity';
  switch (contentEncoding.toLowerCase()) {
    case 'identity':
      return 'identity';
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'br':
      return 'br';
    case 'zstd':
      return 'zstd';
    default:
      throw new ApiError(
        'unsupported_media_type',
        'The Content-Encoding must be one of gzip, br, zstd, identity',
        { headers: { 'accept-encoding': 'gzip, br, zstd, identity' } },
      );
  }
}

/**
 * The decoded bytes. Throws 413 when they are more than `limitBytes`, 400 when the stream is
 * broken, cut off or followed by other bytes.
 */
export function decompress(
  bytes: Buffer,
  coding: Exclude<Coding, 'identity'>,
  limitBytes: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done: CompressCallback = (error, result) => {
      if (error !== null) reject(asApiError(error, limitBytes));
      else {
        // With `info: true` the result is the output and the engine that made it.
        const { buffer, engine } = result as unknown as Inflated;
        if (engine.bytesWritten === bytes.length) resolve(buffer);
        else reject(brokenBody());
      }
    };
    inflate(bytes, coding, limitBytes, done);
  });
}

interface Inflated {
  buffer: Buffer;
  engine: { bytesWritten: number };
}

function inflate(bytes: Buffer, coding: Coding, limitBytes: number, done: CompressCallback): void {
  const options: ZlibOptions = { maxOutputLength: limitBytes, info: true };
  if (coding === 'gzip') gunzip(bytes, options, done);
  else if (coding === 'br') brotliDecompress(bytes, options, done);
  else {
    const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };
    zstdDecompress(bytes, { maxOutputLength: limitBytes, info: true, params }, done);
  }
}

function asApiError(error: NodeJS.ErrnoException, limitBytes: number): ApiError {
  if (error.code !== 'ERR_BUFFER_TOO_LARGE') return brokenBody(error);
  return new ApiError('payload_too_large', `The decoded body is over ${limitBytes} bytes`);
}

function brokenBody(cause?: Error): ApiError {
  return new ApiError('bad_request', 'The body does not match its Content-Encoding', { cause });
}
