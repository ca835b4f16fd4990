/** The longest message of a framed socket. */
export const MOST_FRAME_BYTES = 1_048_576;

const LENGTH_BYTES = 4;

/** Put its length before a message: four bytes, the most significant first. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(LENGTH_BYTES + message.length);
  new DataView(framed.buffer).setUint32(0, message.length);
  framed.set(message, LENGTH_BYTES);
  return framed;
}

/** Takes the bytes of a socket apart into messages. Holds one message at most, and the outcome of the next. */
export class FrameReader {
  #rest: Uint8Array = new Uint8Array();

  /** The messages that these bytes complete. Throws for one that says to be too long: nothing after it can be read. */
  take(chunk: Uint8Array): readonly Uint8Array[] {
    let bytes = this.#rest.length === 0 ? chunk : concat(this.#rest, chunk);
    const messages: Uint8Array[] = [];
    while (bytes.length >= LENGTH_BYTES) {
      const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
      if (length > MOST_FRAME_BYTES) throw new Error(`a message of ${length} bytes is too long`);
      const end = LENGTH_BYTES + length;
      if (bytes.length < end) break;
      messages.push(bytes.slice(LENGTH_BYTES, end));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes.slice();
    return messages;
  }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}
