const PREFIX_BYTES = 5;
const NOTHING = Buffer.alloc(0);

/** Cuts the gRPC messages of one stream out of DATA payloads, however those are split or joined. */
export class MessageReader {
  #rest: Buffer = NOTHING;

  /** Hands every message that is complete by now to `take`. The bytes are valid during the call alone. */
  push(payload: Buffer, take: (message: Buffer) => void): void {
    const bytes = this.#rest.length === 0 ? payload : Buffer.concat([this.#rest, payload]);
    let offset = 0;
    while (bytes.length - offset >= PREFIX_BYTES) {
      const end = offset + PREFIX_BYTES + bytes.readUInt32BE(offset + 1);
      if (end > bytes.length) break;
      take(bytes.subarray(offset + PREFIX_BYTES, end));
      offset = end;
    }
    // Copied: what is left over may outlive the socket's own buffer.
    this.#rest = offset === bytes.length ? NOTHING : Buffer.from(bytes.subarray(offset));
  }
}
