/**
 * An agent's keys, as fingerprints. Both keys are on the agent's disk. The next key is written to the disk before this
 * state contains it. The current key is overwritten only after the server has accepted a proof by the next key.
 */
export type AgentKeys =
  | { readonly phase: "settled"; readonly current: string }
  /** A next key exists, but the server may not have it yet: try the current key first. */
  | { readonly phase: "prepared"; readonly current: string; readonly next: string }
  /** The server has the next key, or refuses the current one: try the next key first. */
  | { readonly phase: "offered"; readonly current: string; readonly next: string };

/** The node's keys as the server reports them in its response to an offer. */
export interface RotationAnswer {
  readonly current: string;
  /** The fingerprint of the next key; null if no offer is open. */
  readonly next: string | null;
}

/**
 * The state of an agent that starts, from the keys on its disk. The two keys are equal if the agent stopped just after
 * it made the next key its current one.
 */
export function keysOnDisk(current: string, next: string | null): AgentKeys {
  if (next === null || next === current) return { phase: "settled", current };
  return { phase: "prepared", current, next };
}

/** The key that signs the next proof. */
export function keyToUse(keys: AgentKeys): string {
  return keys.phase === "offered" ? keys.next : keys.current;
}

/** The state after a next key was created and written to the disk. A rotation in progress keeps its next key. */
export function afterNewKey(keys: AgentKeys, next: string): AgentKeys {
  return keys.phase === "settled" ? { phase: "prepared", current: keys.current, next } : keys;
}

/**
 * The state after the server answered an offer. Late answers to earlier offers contain other keys, so they have no
 * effect.
 */
export function afterAnswer(keys: AgentKeys, answer: RotationAnswer): AgentKeys {
  if (keys.phase === "settled") return keys;
  const { current, next } = keys;
  if (answer.current === next) return { phase: "settled", current: next };
  return answer.next === next ? { phase: "offered", current, next } : keys;
}

/** The state after the server accepted a proof by a key. If this is the next key, it becomes the current key. */
export function afterAccepted(keys: AgentKeys, used: string): AgentKeys {
  if (keys.phase === "settled" || used !== keys.next) return keys;
  return { phase: "settled", current: used };
}

/**
 * The state after the server refused a proof by a key. The agent tries the other key next, if there is one. A refusal
 * never discards a key.
 */
export function afterRefused(keys: AgentKeys, used: string): AgentKeys {
  if (keys.phase === "settled") return keys;
  if (used === keys.current) return { ...keys, phase: "offered" };
  return used === keys.next ? { ...keys, phase: "prepared" } : keys;
}
