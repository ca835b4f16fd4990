import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { refuse } from "@rollcall/errors";

/**
 * A value of a request costs a tenth of a microsecond; a message within a message, or an object, some forty times as
 * much.
 */
const VALUE_POINTS = 1;
const MESSAGE_POINTS = 4;
/** 10,000 messages, lists of lists, or texts. The largest requests of the contract have a third of it. */
const MOST_POINTS = 40_000;
/** No message of the contract nests so deep. */
const MOST_DEPTH = 16;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

/**
 * Whether decoding a message, in protobuf or JSON, would make so many objects that all else in the process had to wait
 * for it: a megabyte of empty messages takes seconds. Told from the bytes alone, without a schema: whatever could be a
 * message counts as one, and its texts hardly ever do.
 */
export function hasTooManyParts(bytes: Uint8Array): boolean {
  // No field of ours begins so: it would be the begin of a group.
  const isJson = /^\s*[{[]/.test(String.fromCharCode(...bytes.subarray(0, 64)));
  return isJson ? hasManyValues(bytes) : countFields(new Cursor(bytes), bytes.length, 0) < 0;
}

/** Where a count is, and what is left of its points. */
class Cursor {
  readonly bytes: Uint8Array;
  at = 0;
  points = MOST_POINTS;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/**
 * Count the fields up to `end`, or to where they are none, and those within them. Answers the points that are left;
 * less than 0 for none.
 */
function countFields(cursor: Cursor, end: number, depth: number): number {
  while (cursor.at < end && cursor.points >= 0) {
    const tag = varint(cursor, end);
    if (tag < 8) break;
    cursor.points -= VALUE_POINTS;
    if (!skipValue(cursor, tag & 7, end, depth)) break;
  }
  return cursor.points;
}

function skipValue(cursor: Cursor, wireType: number, end: number, depth: number): boolean {
  switch (wireType) {
    case VARINT:
      return varint(cursor, end) >= 0;
    case FIXED64:
      cursor.at += 8;
      return true;
    case FIXED32:
      cursor.at += 4;
      return true;
    case LENGTH_DELIMITED: {
      const length = varint(cursor, end);
      if (length < 0) return false;
      cursor.points -= MESSAGE_POINTS - VALUE_POINTS;
      // What is cut short fails to decode, but only once all before it has been decoded.
      const inner = Math.min(end, cursor.at + length);
      if (depth < MOST_DEPTH) countFields(cursor, inner, depth + 1);
      cursor.at = inner;
      return true;
    }
    default:
      return false;
  }
}

/** A number of up to ten bytes; -1 where there is none. Only its lowest bits and whether it is large matter here. */
function varint(cursor: Cursor, end: number): number {
  let value = 0;
  for (let count = 0; count < 10 && cursor.at < end; count += 1) {
    const byte = cursor.bytes[cursor.at] ?? 0;
    cursor.at += 1;
    value += (byte & 0x7f) * 2 ** (7 * count);
    if (byte < 0x80) return value;
  }
  return -1;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

function hasManyValues(bytes: Uint8Array): boolean {
  let points = MOST_POINTS;
  let isText = false;
  for (let at = 0; at < bytes.length && points >= 0; at += 1) {
    const byte = bytes[at];
    if (isText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isText = false;
    } else if (byte === QUOTE) isText = true;
    else if (byte === COMMA || byte === BRACKET || byte === BRACE) points -= MESSAGE_POINTS;
  }
  return points < 0;
}

/**
 * Decode a message. Throws MESSAGE_TOO_LARGE for one of too many parts, and what protobuf throws for bytes that are no
 * message.
 */
export function decodeMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  checkParts(bytes);
  return fromBinary(schema, bytes);
}

/** Check that a message in protobuf or JSON can be decoded within a moment. Throws MESSAGE_TOO_LARGE. */
export function checkParts(bytes: Uint8Array): void {
  if (hasTooManyParts(bytes)) {
    throw refuse("MESSAGE_TOO_LARGE", "the message has more fields than any request needs");
  }
}
