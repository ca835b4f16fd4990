import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Dice } from "./dice.ts";
import type { Taste } from "./taste.ts";
import { bytesFor, countFor, enumFor, floatFor, smallFor, textFor, wholeFor } from "./values.ts";

/** A value that JSON can hold. JSON.stringify() converts all other values. */
export type JsonInput = string | number | boolean | null | readonly JsonInput[] | { [key: string]: JsonInput };

const DEEPEST = 6;

/** Create the JSON of a message, mixed with wrong types, unknown keys and values out of range. */
export function jsonMessage(desc: DescMessage, taste: Taste): { [key: string]: JsonInput } {
  return message(desc, taste, 0);
}

function message(desc: DescMessage, taste: Taste, depth: number): { [key: string]: JsonInput } {
  const { dice } = taste;
  const made: { [key: string]: JsonInput } = {};
  const presence = dice.pick([0.3, 0.7, 0.95]);
  const chosen = new Map(desc.oneofs.map((oneof) => [oneof, dice.pick(oneof.fields)]));
  for (const field of desc.fields) {
    if (!dice.chance(presence)) continue;
    // Set two fields of a oneof only rarely, because the server refuses them. Otherwise no case would reach the
    // code after that check.
    const isOther = field.oneof !== undefined && chosen.get(field.oneof) !== field;
    if (isOther && !taste.isNasty(0.1)) continue;
    made[dice.chance(0.2) ? field.name : field.jsonName] = fieldValue(field, taste, depth);
  }
  if (taste.isNasty(0.1)) made[dice.pick(["unknown", "__proto__", "", "@type"])] = 1;
  return made;
}

function fieldValue(field: DescField, taste: Taste, depth: number): JsonInput {
  if (taste.isNasty(0.3)) return otherType(taste.dice);
  switch (field.fieldKind) {
    case "list":
      return Array.from({ length: countFor(taste) }, () => single(field, taste, depth));
    case "map":
      return Object.fromEntries(
        Array.from({ length: countFor(taste) }, () => [textFor(field.name, taste), single(field, taste, depth)]),
      );
    default:
      return single(field, taste, depth);
  }
}

function single(field: DescField, taste: Taste, depth: number): JsonInput {
  const { dice } = taste;
  if (field.message !== undefined) {
    const special = wellKnown(field.message.typeName, taste);
    if (special !== null) return special;
    return depth < DEEPEST ? message(field.message, taste, depth + 1) : {};
  }
  if (field.enum !== undefined) {
    const number = enumFor(field.enum, taste);
    const name = field.enum.value[number]?.name;
    return name === undefined || dice.chance(0.3) ? number : name;
  }
  return scalar(field, taste);
}

function scalar({ scalar: type, name, parent }: DescField, taste: Taste): JsonInput {
  switch (type) {
    case ScalarType.STRING:
      return textFor(name, taste);
    case ScalarType.BYTES:
      return Buffer.from(bytesFor(taste)).toString(taste.dice.pick(["base64", "base64url"]));
    case ScalarType.BOOL:
      return taste.dice.chance(0.5);
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE: {
      const value = floatFor(taste);
      return Number.isFinite(value) ? value : String(value);
    }
    case ScalarType.INT32:
    case ScalarType.UINT32:
    case ScalarType.SINT32:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return smallFor(taste);
    default:
      return String(wholeFor(parent.typeName, taste));
  }
}

/** Return the value of a type that JSON writes as text; null for all other types. */
function wellKnown(typeName: string, taste: Taste): JsonInput | null {
  const { dice } = taste;
  const pick = (nasty: readonly string[], plausible: readonly string[]) =>
    dice.pick(taste.isNasty() ? nasty : plausible);
  switch (typeName) {
    case "google.protobuf.Timestamp":
      return pick(NASTY_TIMES, ["2026-01-01T00:00:00Z", "2026-11-01T12:30:00.5Z"]);
    case "google.protobuf.Duration":
      return pick(NASTY_DURATIONS, ["60s", "300s", "3600s", "86400s", "0.5s"]);
    case "google.protobuf.FieldMask":
      return pick(NASTY_MASKS, ["selector", "priority", "values.unhealthyAfter"]);
    default:
      return null;
  }
}

const NASTY_TIMES = [
  "0000-12-31T23:59:59Z",
  "9999-12-31T23:59:59.999999999Z",
  "10000-01-01T00:00:00Z",
  "2026-13-45T99:99:99Z",
  "2026-01-01",
  "",
  "now",
];
const NASTY_DURATIONS = ["-1s", "315576000001s", "1e9s", "1.0000000001s", "s", "", "1m", "0s"];
const NASTY_MASKS = ["", ",", "Values", "a__b", "values.unhealthy_after", "a\u0000", "x".repeat(5_000)];

function otherType(dice: Dice): JsonInput {
  const nested: JsonInput = { a: [{ b: [[null]] }] };
  return dice.pick<JsonInput>([null, true, -1, 1.5, 1e300, "text", [], {}, [[]], [null], nested, ""]);
}
