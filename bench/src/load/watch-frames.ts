const EVENTS_TAG = 0x0a; // Field 1, length-delimited.
const LENGTH_DELIMITED = 2;
const MORE = 0x80;

/**
 * Count the events of an encoded WatchEventsResponse without decoding the
 * events.
 */
export function countEvents(message: Uint8Array): number {
  let count = 0;
  let offset = 0;
  while (offset < message.length) {
    const tag = message[offset] ?? 0;
    offset += 1;
    let length = 0;
    let shift = 0;
    for (;;) {
      const byte = message[offset] ?? 0;
      offset += 1;
      length |= (byte & ~MORE) << shift;
      shift += 7;
      if ((byte & MORE) === 0) break;
    }
    if (tag === EVENTS_TAG) count += 1;
    // Skip the content. For other wire types, the number read above is the
    // value itself.
    if ((tag & 7) === LENGTH_DELIMITED) offset += length;
  }
  return count;
}
