/**
 * The tripwire of one exchange: reports values that the destination sends back, and masks them where the
 * proxy says so. What it masks it must have read: a compressed answer is decoded for that, and read whole
 * (whole-answer.ts), or refused. What it only reports is looked at beside, as far as that is cheap.
 */
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { LeakTripwire } from '../../shared/api/proxies.ts';
import type { BroughtOut } from './brought-out.ts';
import { contentCoding, type KnownCoding } from './content-coding.ts';
import type { DestinationBody } from './destination-body.ts';
import type { DestinationAnswer } from './exchange.ts';
import { through } from './passed-body.ts';
import type { SoughtTexts } from './sought-texts.ts';
import { LeakSearch, MaskingStream, maskText } from './tripwire.ts';

/** Where values were seen; a label of the metric. */
export type LeakPlace = 'headers' | 'body';
/** Why an answer was not looked at, or not to its end; a label of the metric. */
export type Unwatched = 'values' | 'coding' | 'size';

/** What is told of an answer. */
export interface LeakReport {
  found(place: LeakPlace, count: number): void;
  unwatched(reason: Unwatched): void;
}

/** Of a compressed body, decoded: a bomb is 165 bytes. */
const DECODED_BYTES_MAX = 10 * 1024 * 1024;
/** What may wait to be decoded; more than that is looked at no further. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Looked at in one go: at worst 8 ms. */
const SLICE_BYTES = 256 * 1024;

const DECODERS = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  deflate: createInflate,
} satisfies Record<KnownCoding, unknown>;

/** `undefined`: nothing is looked for, with the tripwire off or nothing, or too much, brought out. */
export function createTripwire(
  broughtOut: BroughtOut,
  setting: LeakTripwire,
  report: LeakReport,
): Tripwire | undefined {
  if (setting === 'off' || broughtOut.isEmpty) return undefined;
  if (!broughtOut.isTooMuch) {
    return new Tripwire(broughtOut.sought(), setting === 'redact', report);
  }
  // Whoever lets such a request go must know.
  if (setting === 'redact') throw new Error('too much was brought out to be masked');
  report.unwatched('values');
  return undefined;
}

export class Tripwire {
  readonly #sought: SoughtTexts;
  readonly #report: LeakReport;
  /** Whether values are masked, besides being reported. */
  readonly masks: boolean;

  constructor(sought: SoughtTexts, masks: boolean, report: LeakReport) {
    this.#sought = sought;
    this.masks = masks;
    this.#report = report;
  }

  /** Flat, as they go on. */
  headers(headers: string[]): string[] {
    if (this.#sought.areMissingFrom(Buffer.from(headers.join('\n'), 'latin1'))) return headers;
    let count = 0;
    // Names too: a star may be in one.
    const masked = headers.map((text, index) => {
      const found = maskText(this.#sought.needles, text);
      count += found.count;
      return this.masks && !isFraming(headers, index) ? found.text : text;
    });
    if (count > 0) this.#report.found('headers', count);
    return masked;
  }

  /** The bytes of a whole body as they go on, decoded before. */
  async bytes(bytes: Buffer): Promise<Buffer> {
    if (this.#sought.areMissingFrom(bytes)) return bytes;
    const stream = new MaskingStream(this.#sought.needles);
    const out: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      // Others have their turn in between.
      if (at > 0) await new Promise(setImmediate);
      out.push(stream.push(bytes.subarray(at, at + SLICE_BYTES)));
    }
    out.push(stream.end());
    if (stream.count === 0) return bytes;
    this.#report.found('body', stream.count);
    return this.masks ? Buffer.concat(out) : bytes;
  }

  /** A body as it comes; one that is coded only when nothing is masked. */
  stream({ headers, body }: Pick<DestinationAnswer, 'headers' | 'body'>): DestinationBody {
    const coding = contentCoding(headers);
    if (coding === 'identity') {
      if (body.whole !== undefined && this.#sought.areMissingFrom(body.whole)) return body;
      return this.masks ? this.#masked(body) : this.#searched(body);
    }
    if (this.masks) throw new Error('a coded answer cannot be masked on its way');
    if (coding !== 'other') return this.#decodedBeside(body, coding);
    this.#report.unwatched('coding');
    return body;
  }

  /** Every byte is looked at before it goes on; masked ones keep their place. */
  #masked(body: DestinationBody): DestinationBody {
    const stream = new MaskingStream(this.#sought.needles);
    return through(body, {
      piece: (chunk) => stream.push(chunk),
      end: () => {
        const rest = stream.end();
        if (stream.count > 0) this.#report.found('body', stream.count);
        return rest;
      },
    });
  }

  #searched(body: DestinationBody): DestinationBody {
    const search = new LeakSearch(this.#sought.needles);
    return through(body, {
      piece: (chunk) => {
        search.look(chunk);
        return chunk;
      },
      end: () => {
        if (search.count > 0) this.#report.found('body', search.count);
        return undefined;
      },
    });
  }

  /** The bytes go on as they are; what they decode to is looked at beside, within limits. */
  #decodedBeside(body: DestinationBody, coding: KnownCoding): DestinationBody {
    const search = new LeakSearch(this.#sought.needles);
    const decoder = DECODERS[coding]();
    let given = 0;
    let decoded = 0;
    let isCut = false;
    let isTold = false;
    const tell = (reason: Unwatched): void => {
      if (!isTold) this.#report.unwatched(reason);
      isTold = true;
    };
    const stop = (reason: Unwatched): void => {
      if (decoder.destroyed) return;
      tell(reason);
      decoder.destroy();
    };
    decoder.on('data', (chunk: Buffer) => {
      decoded += chunk.length;
      if (decoded > DECODED_BYTES_MAX) stop('size');
      else search.look(chunk);
    });
    // What was found until then counts, also of a body that does not decode to its end.
    decoder
      .on('error', () => {
        if (!isCut) tell('coding');
      })
      .on('end', () => {
        // What comes behind the end of the coded data is left alone by decoders.
        if (decoder.bytesWritten < given) tell('coding');
      })
      .on('close', () => {
        if (search.count > 0) this.#report.found('body', search.count);
      });
    return through(body, {
      piece: (chunk) => {
        if (decoder.writableLength > WAITING_BYTES_MAX) stop('size');
        else if (!decoder.destroyed) {
          given += chunk.length;
          decoder.write(chunk);
        }
        return chunk;
      },
      end: (isWhole) => {
        isCut = !isWhole;
        if (decoder.bytesWritten === 0 && decoder.writableLength === 0) decoder.destroy();
        else if (!decoder.destroyed) decoder.end();
        return undefined;
      },
    });
  }
}

/** How long an answer is stays as it is, whatever the digits: masked, nobody could read the rest. */
function isFraming(headers: readonly string[], index: number): boolean {
  const name = (headers[index - (index % 2)] ?? '').toLowerCase();
  return name === 'content-length' || name === 'transfer-encoding';
}
