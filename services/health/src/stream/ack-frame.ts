const ACK_TAG = 0x1a;
const SEQUENCE_TAG = 0x08;
const INTERVAL_TAG = 0x10;
/** Maximum size of an Ack: tags, a one-byte length, and two varints of at most five bytes. */
const MAX_BYTES = 14;

/**
 * Encode HeartbeatResponse{ack: {sequence, nextIntervalMs}}, as the generated code would. Hand-written because every
 * heartbeat needs an Ack, and the generated encoder takes as long as everything else that a heartbeat costs.
 *
 * @param sequence a whole number from 0 to 2^32 - 1.
 * @param nextIntervalMs a whole number in the same range; 0 for no change.
 */
export function encodeAck(sequence: number, nextIntervalMs = 0): Buffer {
  const frame = Buffer.allocUnsafe(MAX_BYTES);
  frame[0] = ACK_TAG;
  // Both fields have the default 0, which is not encoded.
  let end = writeField(frame, 2, SEQUENCE_TAG, sequence);
  end = writeField(frame, end, INTERVAL_TAG, nextIntervalMs);
  frame[1] = end - 2;
  return frame.subarray(0, end);
}

/** Write a field at an offset unless it is 0. Returns the next offset. */
function writeField(frame: Buffer, at: number, tag: number, value: number): number {
  if (value === 0) return at;
  frame[at] = tag;
  let end = at + 1;
  let rest = value;
  while (rest > 0x7f) {
    frame[end++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  frame[end++] = rest;
  return end;
}
