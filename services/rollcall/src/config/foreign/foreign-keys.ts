import { ForeignIndex } from "@rollcall/config";
import { BACALHAU_KEYS } from "./bacalhau-keys.ts";
import { KOHAKURIVER_KEYS } from "./kohakuriver-keys.ts";

/** The keys of other programs whose files are read: what they mean here, or why they mean nothing. */
export function foreignKeys(): ForeignIndex {
  return new ForeignIndex([...BACALHAU_KEYS, ...KOHAKURIVER_KEYS]);
}
