import type { Dice } from "./dice.ts";

/**
 * Damage bytes as a bad connection or a bad program would. It flips bits, drops a piece, repeats a piece, or
 * replaces everything.
 */
export function damage(bytes: Uint8Array, dice: Dice): Uint8Array {
  const whole = Buffer.from(bytes);
  const at = dice.int(0, Math.max(0, whole.length - 1));
  const upTo = dice.int(at, Math.min(whole.length, at + 40));
  switch (dice.int(0, 5)) {
    case 0: {
      for (let flips = dice.int(1, 4); flips > 0 && whole.length > 0; flips -= 1) {
        const index = dice.int(0, whole.length - 1);
        whole[index] = (whole[index] ?? 0) ^ (1 << dice.int(0, 7));
      }
      return whole;
    }
    case 1:
      return whole.subarray(0, at);
    case 2:
      return Buffer.concat([whole.subarray(0, upTo), whole.subarray(at)]);
    case 3:
      return Buffer.concat([whole.subarray(0, at), whole.subarray(upTo)]);
    case 4:
      return Buffer.concat([whole.subarray(0, at), dice.bytes(dice.int(1, 8)), whole.subarray(at)]);
    default:
      return dice.bytes(dice.int(0, 200));
  }
}

/** Damage JSON. It nests brackets deeply, uses numbers that are too large, or duplicates keys. */
export function damageJson(text: string, dice: Dice): string {
  const deep = dice.pick([10, 150, 20_000]);
  switch (dice.int(0, 5)) {
    case 0:
      return text.slice(0, dice.int(0, text.length));
    case 1:
      return `{"a":${"[".repeat(deep)}${dice.chance(0.5) ? "]".repeat(deep) : ""}}`;
    case 2:
      return `{"a":`.repeat(deep) + (dice.chance(0.5) ? `1${"}".repeat(deep)}` : "");
    case 3:
      return text.replace(/\d+/, "1e999").replace("{", `{"node":1,"node":"twice",`);
    case 4:
      return dice.pick(["", "null", "[]", '"text"', "1", "{]", "\u0000", "\ufeff{}", "{}{}", "nul"]);
    default:
      return Buffer.from(damage(Buffer.from(text), dice)).toString();
  }
}
