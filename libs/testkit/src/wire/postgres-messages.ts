/** Size of a message's type and length, in bytes. */
export const POSTGRES_HEADER_BYTES = 5;

/** Splits the bytes of one direction of a Postgres connection into messages. */
export class PostgresMessages {
  #rest: Buffer = Buffer.alloc(0);

  *add(bytes: Buffer): Generator<{ readonly type: string; readonly whole: Buffer }> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= POSTGRES_HEADER_BYTES) {
      const end = 1 + this.#rest.readInt32BE(1);
      if (this.#rest.length < end) return;
      const whole = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(end);
      yield { type: String.fromCharCode(whole[0] ?? 0), whole };
    }
  }
}
