import { type DescField, type DescMessage, fromBinary, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { refuse } from "@rollcall/errors";

/** How a message is encoded. */
export type MessageFormat = "binary" | "json";

/** How to check the messages of a body. */
export interface BodyCheck {
  readonly schema: DescMessage;
  /** The address that the body comes from. */
  readonly source: string;
  /** Maximum size of a message, in bytes. */
  readonly mostBytes: number;
}

/** The size of a message in bytes above which it waits for its turn: what a peer can send on a new stream at once. */
export const LARGE_BYTES = 65_535;

/**
 * The costs of decoding, in units of 1/20 µs in a warm process: for an element of a packed list, a field, an unknown
 * field, and a message. The first messages after a start cost four times as much.
 */
const ELEMENT_POINTS = 2;
const FIELD_POINTS = 3;
const UNKNOWN_POINTS = 5;
const MESSAGE_POINTS = 30;
/** The cost, in JSON, of a value after a comma or at the start of a list. */
const VALUE_POINTS = 4;
/**
 * Points that a message can cost in addition to one point for each of its bytes. The densest messages of the API are
 * lists of one-letter strings, with one point per byte, and lists of numbers, which are short. An empty message costs
 * 15 points per byte: about 35,000 of them fit into the largest message, and 5,000 into a frame from an agent.
 */
const BASE_POINTS = 100_000;
/** The maximum depth of nested messages that the decoder accepts. */
const MOST_DEPTH = 100;

/**
 * Whether decoding a message would block the process because of the number of its values: a megabyte of empty messages
 * takes seconds. As in the decoder, the schema decides what counts as a value, and the contents of strings and bytes
 * are skipped.
 */
export function hasTooManyParts(schema: DescMessage, bytes: Uint8Array): boolean {
  const counter = new PartCounter(bytes);
  try {
    counter.countMessage(partsOf(schema), bytes.length, 0);
  } catch {
    // Ignore the error. Either the limit is reached, or the bytes are malformed, which the decoder will report.
  }
  return counter.points < 0;
}

/** Like hasTooManyParts(), for a message in JSON. */
export function hasTooManyValues(bytes: Uint8Array): boolean {
  let points = BASE_POINTS + bytes.length;
  let isText = false;
  for (let at = 0; at < bytes.length && points >= 0; at += 1) {
    const byte = bytes[at];
    if (isText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isText = false;
    } else if (byte === QUOTE) isText = true;
    else if (byte === COMMA || byte === BRACKET) points -= VALUE_POINTS;
    else if (byte === BRACE) points -= MESSAGE_POINTS;
  }
  return points < 0;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** Check the size of a message. Throws MESSAGE_TOO_LARGE. */
export function checkSize(bytes: number, mostBytes: number): void {
  if (bytes > mostBytes) throw tooLarge(mostBytes);
}

/** The error for a message above the size limit. */
export function tooLarge(mostBytes: number): Error {
  const text = `the message is larger than the limit of ${mostBytes} bytes: send less in one request`;
  return refuse("MESSAGE_TOO_LARGE", text);
}

/**
 * Decode a message. Throws MESSAGE_TOO_LARGE if it has too many parts, and MALFORMED_MESSAGE if the bytes are not a
 * message.
 */
export function decodeMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  checkParts(schema, bytes, "binary");
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw refuse("MALFORMED_MESSAGE", "the message cannot be decoded", { cause });
  }
}

/** Check that a message can be decoded quickly. Throws MESSAGE_TOO_LARGE. */
export function checkParts(schema: DescMessage, bytes: Uint8Array, format: MessageFormat): void {
  const hasTooMany = format === "json" ? hasTooManyValues(bytes) : hasTooManyParts(schema, bytes);
  if (hasTooMany) throw tooManyParts();
}

/** The error for a request without a message. */
export function noMessage(): Error {
  return refuse("ONE_MESSAGE_REQUIRED", "the request has no message, and the method takes exactly one");
}

/** The error for a request with several messages. */
export function severalMessages(): Error {
  return refuse("ONE_MESSAGE_REQUIRED", "the request has several messages, and the method takes exactly one");
}

/** The error for a message that is marked as compressed in a call without an encoding. */
export function compressionNotNamed(): Error {
  return refuse("COMPRESSION_NOT_NAMED", "the message is marked as compressed, but the headers name no encoding");
}

/** The error for a message with too many parts. */
export function tooManyParts(): Error {
  return refuse("MESSAGE_TOO_LARGE", "the message has more fields than any request needs");
}

/** How the value of a field is encoded. */
type Value =
  | { readonly kind: "varint" | "fixed32" | "fixed64" | "text" }
  | { readonly kind: "message"; readonly schema: DescMessage }
  | { readonly kind: "entry"; readonly key: Value; readonly value: Value };

interface Part {
  readonly value: Value;
  /** Whether a single occurrence of the field can contain several packed values. */
  readonly canBePacked: boolean;
}

/** The fields of a message type, keyed by number. */
type Parts = ReadonlyMap<number, Part>;

const known = new WeakMap<DescMessage, Parts>();

function partsOf(schema: DescMessage): Parts {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const parts = new Map(schema.fields.map((field) => [field.number, partOf(field)]));
  known.set(schema, parts);
  return parts;
}

function partOf(field: DescField): Part {
  switch (field.fieldKind) {
    case "scalar":
      return { value: scalarValue(field.scalar), canBePacked: false };
    case "enum":
      return { value: VARINT, canBePacked: false };
    case "message":
      return { value: messageValue(field), canBePacked: false };
    case "list": {
      const value = elementValue(field);
      return { value, canBePacked: value.kind !== "text" && value.kind !== "message" };
    }
    case "map": {
      const value =
        field.mapKind === "scalar"
          ? scalarValue(field.scalar)
          : field.mapKind === "enum"
            ? VARINT
            : messageValue(field);
      return { value: { kind: "entry", key: scalarValue(field.mapKey), value }, canBePacked: false };
    }
  }
}

function elementValue(field: DescField & { readonly fieldKind: "list" }): Value {
  switch (field.listKind) {
    case "scalar":
      return scalarValue(field.scalar);
    case "enum":
      return VARINT;
    case "message":
      return messageValue(field);
  }
}

function messageValue(field: { readonly message: DescMessage; readonly delimitedEncoding?: boolean }): Value {
  // Refuse groups, which only proto editions have. No schema here uses them.
  if (field.delimitedEncoding)
    throw new Error(`${field.message.typeName} is encoded as a group, which is not supported`);
  return { kind: "message", schema: field.message };
}

const VARINT: Value = { kind: "varint" };
const FIXED32: Value = { kind: "fixed32" };
const FIXED64: Value = { kind: "fixed64" };
const TEXT: Value = { kind: "text" };

function scalarValue(type: ScalarType): Value {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return TEXT;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return FIXED64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return FIXED32;
    default:
      return VARINT;
  }
}

const TOO_MANY = new Error("too many parts");
const NOT_A_MESSAGE = new Error("not a message");

/**
 * Counts down the points of a message. It must read the bytes exactly as fromBinary() does: otherwise the counter and
 * the decoder could see different messages in the same bytes. So it reads a known field by the field's type, whatever
 * wire type the tag names, and a length may reach beyond the enclosing message. Throws where the decoder would, or
 * when the message exceeds the limit.
 */
class PartCounter {
  points: number;
  readonly #bytes: Uint8Array;
  readonly #reader: BinaryReader;

  constructor(bytes: Uint8Array) {
    this.points = BASE_POINTS + bytes.length;
    this.#bytes = bytes;
    this.#reader = new BinaryReader(bytes);
  }

  countMessage(parts: Parts, end: number, depth: number): void {
    if (depth >= MOST_DEPTH) throw TOO_MANY;
    const reader = this.#reader;
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag < 8) throw NOT_A_MESSAGE;
      const part = parts.get(tag >>> 3);
      if (part === undefined) {
        this.#take(UNKNOWN_POINTS);
        reader.skip(tag & 7, tag >>> 3, MOST_DEPTH - depth);
      } else if (part.canBePacked && (tag & 7) === WireType.LengthDelimited) {
        this.#take(FIELD_POINTS);
        const packedEnd = reader.uint32() + reader.pos;
        while (reader.pos < packedEnd) {
          this.#take(ELEMENT_POINTS);
          this.#countValue(part.value, depth);
        }
      } else {
        this.#take(FIELD_POINTS);
        this.#countValue(part.value, depth);
      }
    }
  }

  #countValue(value: Value, depth: number): void {
    const reader = this.#reader;
    switch (value.kind) {
      case "varint":
        while (((this.#bytes[reader.pos] ?? 0) & 0x80) !== 0) reader.pos += 1;
        reader.pos += 1;
        break;
      case "fixed32":
        reader.pos += 4;
        break;
      case "fixed64":
        reader.pos += 8;
        break;
      case "text": {
        const length = reader.uint32();
        reader.pos += length;
        break;
      }
      case "message": {
        this.#take(MESSAGE_POINTS);
        const length = reader.uint32();
        this.countMessage(partsOf(value.schema), reader.pos + length, depth + 1);
        break;
      }
      case "entry":
        this.#countEntry(value, depth);
        break;
    }
  }

  /**
   * Count an entry of a map. Like the decoder, this does not skip the value of an unknown field number, but reads it
   * as the next tag.
   */
  #countEntry({ key, value }: Value & { readonly kind: "entry" }, depth: number): void {
    const reader = this.#reader;
    const length = reader.uint32();
    const end = reader.pos + length;
    while (reader.pos < end) {
      const number = reader.uint32() >>> 3;
      this.#take(FIELD_POINTS);
      if (number === 1) this.#countValue(key, depth);
      else if (number === 2) this.#countValue(value, depth);
    }
  }

  #take(points: number): void {
    this.points -= points;
    if (this.points < 0) throw TOO_MANY;
  }
}
