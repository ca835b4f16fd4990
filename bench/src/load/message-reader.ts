const PREFIX_BYTES = 5;
const NOTHING = Buffer.alloc(0);

/**
 * Extracts the gRPC messages of one stream from DATA payloads, regardless of how the messages are
 * split or joined.
 */
export class MessageReader {
  #rest: Buffer = NOTHING;

  /** Passes every complete message to `take`. The bytes are valid only during the call. */
  push(payload: Buffer, take: (message: Buffer) => void): void {
    const bytes = this.#rest.length === 0 ? payload : Buffer.concat([this.#rest, payload]);
    let offset = 0;
    while (bytes.length - offset >= PREFIX_BYTES) {
      const end = offset + PREFIX_BYTES + bytes.readUInt32BE(offset + 1);
      if (end > bytes.length) break;
      take(bytes.subarray(offset + PREFIX_BYTES, end));
      offset = end;
    }
    // Copy the rest, because it may outlive the socket's buffer.
    this.#rest = offset === bytes.length ? NOTHING : Buffer.from(bytes.subarray(offset));
  }
}
