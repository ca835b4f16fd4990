import type { DescEnum } from "@bufbuild/protobuf";
import type { Dice } from "./dice.ts";

/** What is known of the fleet: texts that mean something to it, by the name of the field that holds such. */
export type Live = ReadonlyMap<string, readonly string[]>;

/** What decides the values of one message. */
export interface Taste {
  readonly dice: Dice;
  readonly live: Live;
  /** The share of values that no client would send. */
  readonly nasty: number;
}

/** Half of a surrogate pair: JSON can carry it. In binary, bytes that are no UTF-8 stand for it. */
const LONE_SURROGATE = "\ud800";

const NASTY_TEXTS: readonly string[] = [
  "",
  "\0",
  "a\0b",
  LONE_SURROGATE,
  "\udc00tail",
  "x".repeat(64),
  "x".repeat(257),
  "x".repeat(5_000),
  "é".repeat(1_024),
  "😀",
  "\u202e\u0007\u001b[31m",
  "'; drop table t; --",
  "%",
  "_%\\",
  "%s%n%x",
  "../..",
  "{}",
  "null",
  "__proto__",
  "constructor",
  "toString",
  " ",
  "\n",
  "-1",
  "9223372036854775808",
  "1e999",
  "NaN",
  "a in (",
  "!!a",
  "a in (x,y),b notin (z),!c,d>1",
  "a>999999999999999999999999",
  "((((((((((",
  "id desc desc",
  "Values.unhealthyAfter",
  "SHA256:",
  "rc_0000_0000000000000000",
];

/** For fields with a grammar of their own; others take a word. */
const PLAUSIBLE: Readonly<Record<string, readonly string[]>> = {
  selector: ["", "zone=a", "zone in (a,b),!spot", "gpu>1", "a!=b"],
  label_selector: ["", "zone=a", "zone in (a,b),!spot", "cores>4"],
  order_by: [
    "",
    "id",
    "id desc",
    "cores desc",
    "created",
    "sequence",
    "sequence desc",
    "time desc",
  ],
  types: ["node.approved", "node.health.changed", "node.registered"],
  paths: ["selector", "priority", "values", "values.unhealthy_after"],
  hash: ["0".repeat(64), "f".repeat(64)],
  group: ["fuzz-group", "racks", ""],
  node_name_pattern: ["", "*", "f?-*"],
  role: ["viewer", "operator", "admin"],
};

const WORDS = ["a", "fuzz", "why not", "zone", "1", "linux"];

/** A text for a field. */
export function textFor(name: string, { dice, live, nasty }: Taste): string {
  if (dice.chance(nasty)) return dice.chance(0.01) ? "y".repeat(900_000) : dice.pick(NASTY_TEXTS);
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

/** A whole number of at most 64 bits, to be cut to its field's size. */
export function wholeFor(name: string, { dice, nasty }: Taste): bigint {
  if (dice.chance(nasty)) return dice.pick(EDGES_64);
  if (name === "seconds") return BigInt(dice.pick([60, 300, 3_600, 86_400, 1_750_000_000]));
  if (name === "nanos") return BigInt(dice.pick([0, 0, 500_000_000]));
  return BigInt(dice.int(0, 20));
}

export function smallFor({ dice, nasty }: Taste): number {
  return dice.chance(nasty) ? dice.pick(EDGES_32) : dice.int(0, 20);
}

export function floatFor({ dice, nasty }: Taste): number {
  return dice.chance(nasty) ? dice.pick(EDGES_FLOAT) : dice.int(0, 100);
}

export function enumFor(desc: DescEnum, { dice, nasty }: Taste): number {
  if (dice.chance(nasty)) return dice.pick([0, 99, -1, 2 ** 31 - 1, -(2 ** 31)]);
  return dice.pick(desc.values).number;
}

export function bytesFor({ dice, nasty }: Taste): Uint8Array {
  if (dice.chance(nasty)) return dice.bytes(dice.pick([0, 1, 31, 33, 63, 65, 257]));
  return dice.bytes(dice.pick([32, 64]));
}

/** How many values a list or a map gets. */
export function countFor({ dice, nasty }: Taste): number {
  if (dice.chance(nasty * 0.2)) return dice.pick([65, 300, 1_100]);
  return dice.int(0, 3);
}
