/**
 * `ReadableStream` (WHATWG Streams) as far as bodies need it: default reader, async iteration, `tee`. A
 * queue in memory; nothing flows in from outside while it is read.
 */
let sourceOf;

class ReadableStreamDefaultReader {
  #stream;
  #closed;

  constructor(stream) {
    sourceOf(stream).lock(this);
    this.#stream = stream;
    this.#closed = sourceOf(stream).closed.promise;
  }

  get closed() {
    return this.#closed;
  }

  async read() {
    if (this.#stream === undefined) throw new TypeError('The reader has been released.');
    return sourceOf(this.#stream).next();
  }

  async cancel(reason) {
    if (this.#stream !== undefined) await sourceOf(this.#stream).cancel(reason);
  }

  releaseLock() {
    if (this.#stream !== undefined) sourceOf(this.#stream).unlock(this);
    this.#stream = undefined;
  }
}

/** The queue between who makes the chunks and who reads them. */
class Source {
  closed = Promise.withResolvers();
  isDisturbed = false;
  #underlying;
  #queue = [];
  #reader;
  #ended = false;
  #failure;
  #started;
  #wake;
  #controller;

  constructor(underlying) {
    this.#underlying = underlying ?? {};
    // Who does not look at `closed` must not have an unhandled rejection of it.
    this.closed.promise.catch(() => undefined);
    this.#controller = {
      enqueue: (chunk) => this.#change(() => this.#queue.push(chunk)),
      close: () => this.#change(() => this.#end()),
      error: (reason) => this.#change(() => this.#fail(reason)),
      desiredSize: 1,
    };
    this.#started = (async () => this.#underlying.start?.(this.#controller))();
    this.#started.catch((error) => this.#controller.error(error));
  }

  get isLocked() {
    return this.#reader !== undefined;
  }

  lock(reader) {
    if (this.#reader !== undefined) throw new TypeError('The stream is locked to a reader.');
    this.#reader = reader;
  }

  unlock(reader) {
    if (this.#reader === reader) this.#reader = undefined;
  }

  #change(change) {
    if (this.#ended && this.#failure === undefined) throw new TypeError('The stream is closed.');
    if (!this.#ended) change();
    this.#wake?.();
  }

  #end() {
    this.#ended = true;
    this.closed.resolve(undefined);
  }

  #fail(reason) {
    this.#ended = true;
    this.#failure = { reason };
    this.#queue = [];
    this.closed.reject(reason);
  }

  async next() {
    this.isDisturbed = true;
    await this.#started;
    while (this.#queue.length === 0 && !this.#ended) {
      const { promise, resolve } = Promise.withResolvers();
      this.#wake = resolve;
      try {
        await Promise.race([this.#underlying.pull?.(this.#controller), promise]);
      } catch (error) {
        this.#controller.error(error);
      }
      if (this.#queue.length === 0 && !this.#ended) await promise;
    }
    if (this.#queue.length > 0) return { value: this.#queue.shift(), done: false };
    if (this.#failure !== undefined) throw this.#failure.reason;
    return { value: undefined, done: true };
  }

  async cancel(reason) {
    this.isDisturbed = true;
    if (this.#ended) return;
    this.#queue = [];
    this.#end();
    await this.#underlying.cancel?.(reason);
  }
}

class ReadableStream {
  #source;

  constructor(underlying) {
    this.#source = new Source(underlying);
  }

  static from(iterable) {
    const asynchronous = iterable[Symbol.asyncIterator] !== undefined;
    const iterator = iterable[asynchronous ? Symbol.asyncIterator : Symbol.iterator]();
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(await value);
      },
      cancel: async (reason) => void (await iterator.return?.(reason)),
    });
  }

  get locked() {
    return this.#source.isLocked;
  }

  getReader() {
    return new ReadableStreamDefaultReader(this);
  }

  async cancel(reason) {
    if (this.locked) throw new TypeError('The stream is locked to a reader.');
    await this.#source.cancel(reason);
  }

  /** Reads on for whichever branch is behind; both see the same chunks. */
  tee() {
    const reader = this.getReader();
    const branches = new Set();
    const pull = async () => {
      const { value, done } = await reader.read();
      for (const controller of branches) {
        if (done) controller.close();
        else controller.enqueue(value);
      }
    };
    return [0, 1].map(() => {
      let own;
      const start = (controller) => {
        own = controller;
        branches.add(own);
      };
      return new ReadableStream({ start, pull, cancel: () => void branches.delete(own) });
    });
  }

  async *values() {
    const reader = this.getReader();
    let finished = false;
    try {
      for (;;) {
        const { value, done } = await reader.read();
        finished = done;
        if (done) return;
        yield value;
      }
    } finally {
      if (!finished) await reader.cancel();
      reader.releaseLock();
    }
  }

  [Symbol.asyncIterator]() {
    return this.values();
  }

  static {
    sourceOf = (stream) => stream.#source;
  }
}

exports.ReadableStream = ReadableStream;
exports.ReadableStreamDefaultReader = ReadableStreamDefaultReader;
exports.isDisturbed = (stream) => sourceOf(stream).isDisturbed;
/** A stream of the one chunk that `read` gives when it is first asked. */
exports.streamOf = (read) =>
  new ReadableStream({
    pull(controller) {
      const bytes = read();
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
