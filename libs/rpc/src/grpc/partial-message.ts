/** Room that is taken at first; it doubles until what comes fits. */
const FIRST_BYTES = 256;

/** Bytes of a message of which not all have come, however small the pieces are in which they come. */
export class PartialMessage {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  /** Take more bytes; all that are there. They are overwritten by nothing. */
  add(more: Uint8Array): Buffer {
    const length = this.#length + more.byteLength;
    if (length > this.#bytes.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.byteLength));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(more, this.#length);
    this.#length = length;
    return this.#bytes.subarray(0, length);
  }
}
