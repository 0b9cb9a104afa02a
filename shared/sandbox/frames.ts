/**
 * Frames on a pipe: 4 bytes length of the whole, 4 bytes length of the header, JSON header, body text.
 * What is sent in one turn of the loop leaves in one write; what the pipe does not take yet is kept as it
 * came, not encoded a second time. A frame above the bound ends the stream: lengths come from the other
 * side and must never size a buffer unchecked.
 */
import type { Duplex } from 'node:stream';

/** Larger than any frame either side builds, in bytes: the text of a call is 8 Mi units at most, 24 MiB. */
const FRAME_BYTES_MAX = 32 * 1024 * 1024;
/** JSON that is parsed unseen: a whole console with every character escaped is half of it. */
const HEADER_BYTES_MAX = 1024 * 1024;
/** Frames are gathered into a write until they are this many bytes together. */
const WRITE_BYTES_GOOD = 64 * 1024;
const LENGTH_BYTES = 4;
const HEAD_BYTES = 2 * LENGTH_BYTES;

export interface FrameStream<Out> {
  /** Queues a frame; it leaves with the others of this turn, or when the pipe takes it. */
  send(header: Out, body?: string): void;
  /** Takes a queued frame back, by the very header it was sent with. `false`: it has left. */
  cancel(header: Out): boolean;
}

interface Frame {
  readonly header: unknown;
  readonly body: string;
}

/** Encodes one frame. `header` must be JSON; `body` is UTF-8 on the wire. */
export function encodeFrame(header: unknown, body = ''): Buffer {
  const headerText = JSON.stringify(header);
  const headerBytes = Buffer.byteLength(headerText);
  const bodyBytes = Buffer.byteLength(body);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + headerBytes + bodyBytes);
  frame.writeUInt32BE(LENGTH_BYTES + headerBytes + bodyBytes, 0);
  frame.writeUInt32BE(headerBytes, LENGTH_BYTES);
  frame.write(headerText, HEAD_BYTES);
  frame.write(body, HEAD_BYTES + headerBytes);
  return frame;
}

/** Gathers chunks and yields whole frames. `push` throws a RangeError on impossible lengths. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;

  /** Header as parsed JSON (`unknown`: check it) and body of each frame that is now complete. */
  *push(chunk: Buffer): Generator<{ header: unknown; body: string }> {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    for (;;) {
      if (this.#bytes < HEAD_BYTES) return;
      const head = this.#peek(HEAD_BYTES);
      const length = head.readUInt32BE(0);
      const headerBytes = head.readUInt32BE(LENGTH_BYTES);
      const tooLarge = length > FRAME_BYTES_MAX || headerBytes > HEADER_BYTES_MAX;
      if (tooLarge || headerBytes + LENGTH_BYTES > length) {
        throw new RangeError('a frame of impossible length');
      }
      if (this.#bytes < LENGTH_BYTES + length) return;
      const frame = this.#take(LENGTH_BYTES + length);
      const header = frame.toString('utf8', HEAD_BYTES, HEAD_BYTES + headerBytes);
      yield {
        header: JSON.parse(header),
        body: frame.toString('utf8', HEAD_BYTES + headerBytes),
      };
    }
  }

  #peek(bytes: number): Buffer {
    const first = this.#chunks[0];
    if (first !== undefined && first.length >= bytes) return first;
    // A head cut in two: joined once, and only once the frame is long enough.
    this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] as Buffer;
  }

  #take(bytes: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
    const joined = all as Buffer;
    this.#chunks = joined.length === bytes ? [] : [joined.subarray(bytes)];
    this.#bytes -= bytes;
    return joined.subarray(0, bytes);
  }
}

/**
 * Reads and writes frames on a pipe. `onFrame` gets unchecked headers; `onBroken` is called once when
 * the other side sends what is no frame. The stream's own errors stay with its owner.
 */
export function frameStream<Out>(
  pipe: Duplex,
  onFrame: (header: unknown, body: string) => void,
  onBroken: () => void,
): FrameStream<Out> {
  const reader = new FrameReader();
  let broken = false;
  pipe.on('data', (chunk: Buffer) => {
    if (broken) return;
    try {
      for (const { header, body } of reader.push(chunk)) onFrame(header, body);
    } catch {
      broken = true;
      onBroken();
    }
  });
  let waiting: Frame[] = [];
  let isPlanned = false;
  const flush = (): void => {
    isPlanned = false;
    while (waiting.length > 0 && pipe.writable && !pipe.writableNeedDrain) {
      const frames = encodeSome(waiting);
      waiting = frames.length === waiting.length ? [] : waiting.slice(frames.length);
      pipe.write(frames.length === 1 ? frames[0] : Buffer.concat(frames));
    }
    if (!pipe.writable) waiting = [];
  };
  pipe.on('drain', flush);
  return {
    send(header, body = '') {
      if (!isPlanned) setImmediate(flush);
      isPlanned = true;
      waiting.push({ header, body });
    },
    cancel(header) {
      const at = waiting.findIndex((frame) => frame.header === header);
      if (at >= 0) waiting.splice(at, 1);
      return at >= 0;
    },
  };
}

/** The first of them, as many as make one write. */
function encodeSome(frames: readonly Frame[]): Buffer[] {
  const encoded: Buffer[] = [];
  let bytes = 0;
  for (const { header, body } of frames) {
    if (bytes >= WRITE_BYTES_GOOD) break;
    const frame = encodeFrame(header, body);
    bytes += frame.length;
    encoded.push(frame);
  }
  return encoded;
}
