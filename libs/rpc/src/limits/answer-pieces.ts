/**
 * The size of a piece of a response. Each piece is written after the previous one was accepted. This shows that the
 * peer is reading, even over a slow line: the required minimum, 64 KiB in 30 s, is 2 KB per second.
 */
const PIECE_BYTES = 65_536;

/** Split bytes into pieces. Bytes that fit into one piece are not copied. */
export function piecesOf(bytes: Uint8Array): readonly Uint8Array[] {
  if (bytes.byteLength <= PIECE_BYTES) return [bytes];
  const count = Math.ceil(bytes.byteLength / PIECE_BYTES);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES));
}

/** Split the chunks of a body, so that none is larger than a piece. */
export function inPieces(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => new InPieces(body[Symbol.asyncIterator]()) };
}

/** This is a class, because a generator would cost more per message, and nearly all messages are a single piece. */
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
