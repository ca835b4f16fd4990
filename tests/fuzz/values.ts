import type { DescEnum } from "@bufbuild/protobuf";
import { A_FEW, type Taste } from "./taste.ts";

/** Half of a surrogate pair. JSON can contain it; binary messages contain invalid UTF-8 instead. */
const LONE_SURROGATE = "\ud800";

/** Invalid and unusual strings, grouped by their defect. Each group is equally likely. */
const NASTY_TEXTS: readonly (readonly string[])[] = [
  ["\0", "a\0b", "fuzz-1\0", "\0\0\0"],
  [LONE_SURROGATE, "\udc00tail"],
  ["", " ", "\n", "x".repeat(64), "x".repeat(257), "x".repeat(5_000), "é".repeat(1_024)],
  ["😀", "\u202e\u0007\u001b[31m", "%s%n%x", "../..", "{}", "null", "'; drop table t; --"],
  ["__proto__", "constructor", "toString", "hasOwnProperty"],
  ["-1", "9223372036854775808", "1e999", "NaN", "0x10"],
  ["a in (", "!!a", "a in (x,y),b notin (z),!c,d>1", "a>99999999999999999999", "((((((("],
  ["id desc desc", "Values.unhealthyAfter", "%", "_%\\", "SHA256:", "rc_0000_0000000000000000"],
];

/** Valid strings for fields with a specific syntax, keyed by field name. Other fields get a word. */
const PLAUSIBLE: Readonly<Record<string, readonly string[]>> = {
  selector: ["", "zone=a", "zone in (a,b),!spot", "gpu>1", "a!=b"],
  label_selector: ["", "zone=a", "zone in (a,b),!spot", "cores>4"],
  order_by: ["", "id", "id desc", "cores desc", "created", "sequence", "sequence desc", "time desc"],
  types: ["node.approved", "node.health.changed", "node.registered"],
  paths: ["selector", "priority", "values", "values.unhealthy_after"],
  hash: ["0".repeat(64), "f".repeat(64)],
  group: ["fuzz-group", "racks", ""],
  node_name_pattern: ["", "*", "f?-*"],
  role: ["viewer", "operator", "admin"],
};

const WORDS = ["a", "fuzz", "why not", "zone", "1", "linux"];

/** Choose a string for a field. */
export function textFor(name: string, taste: Taste): string {
  const { dice, live } = taste;
  if (taste.isNasty()) {
    return dice.chance(0.01) ? "y".repeat(900_000) : dice.pick(dice.pick(NASTY_TEXTS));
  }
  const known = live.get(name) ?? [];
  if (known.length > 0 && dice.chance(0.7)) return dice.pick(known);
  return dice.pick(PLAUSIBLE[name] ?? WORDS);
}

const EDGES_32 = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 2 ** 32 - 1, 1_000, 1_001];
const EDGES_64 = [
  0n,
  1n,
  -1n,
  2n ** 31n,
  2n ** 53n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  2n ** 64n - 1n,
  253_402_300_800n,
  -62_135_596_801n,
  315_576_000_001n,
];
const EDGES_FLOAT = [0, -0, 1e308, -1e308, 5e-324, Number.NaN, Infinity, -Infinity];

/** Valid seconds of the well-known types, keyed by type. Their limits differ. */
const SECONDS: Readonly<Record<string, readonly bigint[]>> = {
  "google.protobuf.Timestamp": [1_750_000_000n, 1_790_000_000n],
  "google.protobuf.Duration": [60n, 300n, 3_600n, 86_400n],
};

/**
 * Choose an integer of at most 64 bits. The caller truncates it to the size of the field. `type` is the
 * message type that contains the field.
 */
export function wholeFor(type: string, taste: Taste): bigint {
  const { dice } = taste;
  if (taste.isNasty()) return dice.pick(EDGES_64);
  const seconds = SECONDS[type];
  return seconds === undefined ? BigInt(dice.int(0, 20)) : dice.pick(seconds);
}

export function smallFor(taste: Taste): number {
  const { dice } = taste;
  return taste.isNasty() ? dice.pick(EDGES_32) : dice.int(0, 20);
}

export function floatFor(taste: Taste): number {
  const { dice } = taste;
  return taste.isNasty() ? dice.pick(EDGES_FLOAT) : dice.int(0, 100);
}

export function enumFor(desc: DescEnum, taste: Taste): number {
  const { dice } = taste;
  if (taste.isNasty()) return dice.pick([0, 99, -1, 2 ** 31 - 1, -(2 ** 31)]);
  return dice.pick(desc.values.slice(1)).number;
}

export function bytesFor(taste: Taste): Uint8Array {
  const { dice } = taste;
  if (taste.isNasty()) return dice.bytes(dice.pick([0, 1, 31, 33, 63, 65, 257]));
  return dice.bytes(dice.pick([32, 64]));
}

/** Choose the number of values in a list or a map. */
export function countFor(taste: Taste): number {
  const { dice } = taste;
  return taste.items(taste.isNasty(0.2) ? dice.pick([65, 300, 1_100]) : dice.int(0, A_FEW));
}
