/** The maximum length of a message on a framed socket, in bytes. */
export const MOST_FRAME_BYTES = 1_048_576;

const LENGTH_BYTES = 4;

/** Prefix a message with its length in four bytes, the most significant first. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(LENGTH_BYTES + message.length);
  new DataView(framed.buffer).setUint32(0, message.length);
  framed.set(message, LENGTH_BYTES);
  return framed;
}

/** Splits the bytes from a socket into messages. Holds at most one message and the beginning of the next. */
export class FrameReader {
  #rest: Uint8Array = new Uint8Array();

  /**
   * Return the messages that these bytes complete. Throws if the length of a message is too large, because nothing
   * after it can be read.
   */
  take(chunk: Uint8Array): readonly Uint8Array[] {
    let bytes = this.#rest.length === 0 ? chunk : concat(this.#rest, chunk);
    const messages: Uint8Array[] = [];
    while (bytes.length >= LENGTH_BYTES) {
      const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
      if (length > MOST_FRAME_BYTES)
        throw new Error(`a message of ${length} bytes is longer than the limit of ${MOST_FRAME_BYTES}`);
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
