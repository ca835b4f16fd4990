/**
 * An answer is written in pieces of this size, each once the one before was taken: so that it shows whether its reader
 * reads, however slow the line. At 64 KiB in 30 s, which is the least, that is 2 KB a second.
 */
const PIECE_BYTES = 65_536;

/** The pieces of some bytes; the bytes themselves where they are few. */
export function piecesOf(bytes: Uint8Array): readonly Uint8Array[] {
  if (bytes.byteLength <= PIECE_BYTES) return [bytes];
  const count = Math.ceil(bytes.byteLength / PIECE_BYTES);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES));
}

/** A body whose chunks are no larger than a piece. */
export function inPieces(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => new InPieces(body[Symbol.asyncIterator]()) };
}

/** A class, since a generator would cost each message more, of which nearly all are one piece. */
class InPieces implements AsyncIterator<Uint8Array> {
  readonly #inner: AsyncIterator<Uint8Array>;
  #left: readonly Uint8Array[] = [];

  constructor(inner: AsyncIterator<Uint8Array>) {
    this.#inner = inner;
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    const [first, ...rest] = this.#left;
    if (first === undefined) return this.#inner.next().then(this.#onResult);
    this.#left = rest;
    return Promise.resolve({ done: false, value: first });
  }

  async return(value?: unknown): Promise<IteratorResult<Uint8Array>> {
    this.#left = [];
    return (await this.#inner.return?.(value)) ?? { done: true, value };
  }

  async throw(error?: unknown): Promise<IteratorResult<Uint8Array>> {
    this.#left = [];
    if (this.#inner.throw === undefined) throw error;
    return await this.#inner.throw(error);
  }

  readonly #onResult = (result: IteratorResult<Uint8Array>): IteratorResult<Uint8Array> => {
    if (result.done === true) return result;
    const [first = result.value, ...rest] = piecesOf(result.value);
    this.#left = rest;
    return { done: false, value: first };
  };
}
