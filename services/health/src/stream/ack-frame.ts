const ACK_TAG = 0x1a;
const SEQUENCE_TAG = 0x08;
/** Tags, a length of one byte, and a varint of five bytes at most. */
const MAX_BYTES = 8;

/**
 * Encode HeartbeatResponse{ack: {sequence}}, as the generated code would. Written out because there is one for every
 * heartbeat, and the generated encoder takes as long as all the rest of the way that a heartbeat goes.
 *
 * @param sequence a whole number from 0 to 2^32 - 1.
 */
export function encodeAck(sequence: number): Buffer {
  const frame = Buffer.allocUnsafe(MAX_BYTES);
  frame[0] = ACK_TAG;
  // 0 is the default of the field, which is not sent.
  if (sequence === 0) {
    frame[1] = 0;
    return frame.subarray(0, 2);
  }
  frame[2] = SEQUENCE_TAG;
  let end = 3;
  let rest = sequence;
  while (rest > 0x7f) {
    frame[end++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  frame[end++] = rest;
  frame[1] = end - 2;
  return frame.subarray(0, end);
}
