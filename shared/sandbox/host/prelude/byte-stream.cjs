/**
 * A stream in Node's form of bytes that are all there: response bodies. Events, `pipe`, async iteration
 * and reading by hand, in one piece. What a listener throws ends the run, as an uncaught exception would.
 */
const EventEmitter = require('node-events');
const { Buffer } = require('node-buffer');

/** After what runs now, as Node's `process.nextTick`. */
function later(work) {
  void (async () => {
    await undefined;
    try {
      work();
    } catch (error) {
      internal.fail(error);
    }
  })();
}

class ByteStream extends EventEmitter {
  /** Bytes, or what gives them when they are first read. */
  #source;
  #taken = false;
  #encoding;
  #flowing = null;
  #scheduled = false;
  #ended = false;
  #destroyed = false;

  constructor(source) {
    super();
    this.#source = source;
  }

  get readable() {
    return !this.#ended && !this.#destroyed;
  }

  get readableEnded() {
    return this.#ended;
  }

  get readableFlowing() {
    return this.#flowing;
  }

  get readableEncoding() {
    return this.#encoding ?? null;
  }

  get destroyed() {
    return this.#destroyed;
  }

  on(name, listener) {
    super.on(name, listener);
    if (name === 'data' && this.#flowing !== false) this.resume();
    if (name === 'readable' && !this.#taken) later(() => this.emit('readable'));
    return this;
  }

  addListener(name, listener) {
    return this.on(name, listener);
  }

  setEncoding(encoding) {
    this.#encoding = `${encoding}`;
    return this;
  }

  isPaused() {
    return this.#flowing === false;
  }

  pause() {
    this.#flowing = false;
    return this;
  }

  resume() {
    this.#flowing = true;
    if (!this.#scheduled) {
      this.#scheduled = true;
      later(() => this.#flow());
    }
    return this;
  }

  /** All that has not been read; `null` at the end. */
  read() {
    const chunk = this.#take();
    if (chunk === null) this.#endLater();
    return chunk;
  }

  pipe(destination, { end = true } = {}) {
    this.on('data', (chunk) => destination.write(chunk));
    if (end) this.once('end', () => destination.end());
    destination.emit?.('pipe', this);
    return destination;
  }

  unpipe() {
    return this.pause();
  }

  destroy(error) {
    if (this.#destroyed) return this;
    this.#destroyed = true;
    later(() => {
      if (error) this.emit('error', error);
      this.emit('close');
    });
    return this;
  }

  async *[Symbol.asyncIterator]() {
    const chunk = this.#take();
    if (chunk !== null) yield chunk;
    this.#endLater();
  }

  #take() {
    if (this.#taken || this.#destroyed) return null;
    this.#taken = true;
    const bytes = typeof this.#source === 'function' ? this.#source() : this.#source;
    this.#source = undefined;
    if (bytes.length === 0) return null;
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return this.#encoding === undefined ? chunk : chunk.toString(this.#encoding);
  }

  #flow() {
    this.#scheduled = false;
    if (!this.#flowing || this.#destroyed) return;
    const chunk = this.#take();
    if (chunk !== null) this.emit('data', chunk);
    if (this.#flowing) this.#endLater();
  }

  #endLater() {
    if (this.#ended) return;
    this.#ended = true;
    later(() => {
      if (this.#destroyed) return;
      this.emit('end');
      this.#destroyed = true;
      this.emit('close');
    });
  }
}

exports.ByteStream = ByteStream;
exports.later = later;
