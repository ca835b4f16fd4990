import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Taste } from "./taste.ts";
import { bytesFor, countFor, enumFor, floatFor, smallFor, textFor, wholeFor } from "./values.ts";

const DEEPEST = 6;
const MOST_BYTES = 1_200_000;
const NOT_UTF8 = Uint8Array.from([0xc3, 0x28, 0xff]);

/**
 * Encode a message as no library would, with repeated fields, wrong types, unknown fields and values out of range.
 */
export function binaryMessage(desc: DescMessage, taste: Taste): Uint8Array {
  // Truncate large messages. The server refuses all of them early in the same way, so a few are enough.
  return message(desc, taste, 0).subarray(0, MOST_BYTES);
}

function message(desc: DescMessage, taste: Taste, depth: number): Uint8Array {
  const { dice } = taste;
  const writer = new BinaryWriter();
  const presence = dice.pick([0.3, 0.7, 0.95]);
  for (const field of desc.fields) {
    if (!dice.chance(presence)) continue;
    writeField(writer, field, taste, depth);
    if (taste.isNasty(0.2)) writeField(writer, field, taste, depth);
  }
  if (taste.isNasty(0.3)) writeUnknown(writer, taste);
  return writer.finish();
}

function writeField(writer: BinaryWriter, field: DescField, taste: Taste, depth: number): void {
  if (taste.isNasty(0.1)) {
    writeOther(writer, field.number, taste);
    return;
  }
  const times = field.fieldKind === "list" || field.fieldKind === "map" ? countFor(taste) : 1;
  for (let time = 0; time < times; time += 1) {
    const nested = nestedOf(field);
    if (field.fieldKind === "map") writeEntry(writer, field, taste, depth);
    else if (nested !== null) writeNested(writer, field.number, nested, taste, depth);
    else writePlain(writer, field.number, field, taste);
  }
}

function nestedOf(field: DescField): DescMessage | null {
  if (field.fieldKind === "message") return field.message;
  return field.fieldKind === "list" && field.listKind === "message" ? field.message : null;
}

function writeNested(writer: BinaryWriter, number: number, desc: DescMessage, taste: Taste, depth: number): void {
  const bytes = depth < DEEPEST ? message(desc, taste, depth + 1) : new Uint8Array();
  writer.tag(number, WireType.LengthDelimited).bytes(bytes);
}

function writeEntry(
  writer: BinaryWriter,
  field: DescField & { readonly fieldKind: "map" },
  taste: Taste,
  depth: number,
): void {
  const entry = new BinaryWriter();
  writeScalar(entry, 1, { scalar: field.mapKey, name: field.name, type: "" }, taste);
  if (field.mapKind === "message") writeNested(entry, 2, field.message, taste, depth);
  else writePlain(entry, 2, field, taste);
  writer.tag(field.number, WireType.LengthDelimited).bytes(entry.finish());
}

/** Write a value of a field that contains no messages. */
function writePlain(writer: BinaryWriter, number: number, field: DescField, taste: Taste): void {
  if (field.enum !== undefined) {
    writer.tag(number, WireType.Varint).int32(enumFor(field.enum, taste));
  } else if (field.scalar !== undefined) {
    const { scalar, name, parent } = field;
    writeScalar(writer, number, { scalar, name, type: parent.typeName }, taste);
  }
}

/** A scalar type, and where it is used. */
interface ScalarPlace {
  readonly scalar: ScalarType;
  readonly name: string;
  readonly type: string;
}

function writeScalar(writer: BinaryWriter, number: number, { scalar, name, type }: ScalarPlace, taste: Taste): void {
  switch (scalar) {
    case ScalarType.STRING:
      writer.tag(number, WireType.LengthDelimited).bytes(utf8(textFor(name, taste)));
      return;
    case ScalarType.BYTES:
      writer.tag(number, WireType.LengthDelimited).bytes(bytesFor(taste));
      return;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      writer.tag(number, WireType.Bit32).raw(fixed(Math.fround(floatFor(taste)), 4));
      return;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      writer.tag(number, WireType.Bit64).raw(fixed(floatFor(taste), 8));
      return;
    case ScalarType.BOOL:
    case ScalarType.INT32:
    case ScalarType.UINT32:
    case ScalarType.SINT32:
      writer.tag(number, WireType.Varint).int32(smallFor(taste) | 0);
      return;
    default:
      writer.tag(number, WireType.Varint).uint64(BigInt.asUintN(64, wholeFor(type, taste)));
  }
}

/** Encode text. A lone surrogate has no UTF-8 encoding, so it is replaced by invalid bytes. */
function utf8(text: string): Uint8Array {
  return /\p{Surrogate}/u.test(text) ? NOT_UTF8 : Buffer.from(text);
}

function fixed(value: number, size: 4 | 8): Uint8Array {
  const bytes = Buffer.alloc(size);
  if (size === 4) bytes.writeFloatLE(value);
  else bytes.writeDoubleLE(value);
  return bytes;
}

/** Write a field with the wrong wire type. */
function writeOther(writer: BinaryWriter, number: number, taste: Taste): void {
  const { dice } = taste;
  switch (dice.int(0, 3)) {
    case 0:
      writer.tag(number, WireType.Varint).uint64(BigInt.asUintN(64, wholeFor("", taste)));
      return;
    case 1:
      writer.tag(number, WireType.Bit32).raw(dice.bytes(4));
      return;
    case 2:
      writer.tag(number, WireType.Bit64).raw(dice.bytes(8));
      return;
    default:
      writer.tag(number, WireType.LengthDelimited).bytes(dice.bytes(dice.int(0, 20)));
  }
}

function writeUnknown(writer: BinaryWriter, taste: Taste): void {
  const { dice } = taste;
  const depth = dice.pick([1, 3, 90, 150, 5_000]);
  switch (dice.int(0, 2)) {
    case 0:
      writeOther(writer, dice.pick([99, 1_000, 19_000, 536_870_911]), taste);
      return;
    case 1:
      // Write groups, some of which are never closed.
      for (let level = 0; level < depth; level += 1) writer.tag(99, WireType.StartGroup);
      for (let level = dice.int(0, 1); level < depth; level += 1) writer.tag(99, WireType.EndGroup);
      return;
    default:
      for (let index = 0; index < depth; index += 1) writer.tag(100 + index, WireType.Varint).bool(true);
  }
}
