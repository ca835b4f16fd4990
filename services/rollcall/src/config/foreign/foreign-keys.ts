import { ForeignIndex } from "@rollcall/config";
import { BACALHAU_KEYS } from "./bacalhau-keys.ts";
import { KOHAKURIVER_KEYS } from "./kohakuriver-keys.ts";

/**
 * The keys of other programs whose files Rollcall accepts. Each has its meaning in Rollcall, or the
 * reason why it has no effect.
 */
export function foreignKeys(): ForeignIndex {
  return new ForeignIndex([...BACALHAU_KEYS, ...KOHAKURIVER_KEYS]);
}
