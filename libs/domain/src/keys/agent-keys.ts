/**
 * The keys that an agent has, as fingerprints. All of them are on its disk: a next key is written before this state
 * knows it, and the current one is overwritten only after the server has taken a proof by the next one.
 */
export type AgentKeys =
  | { readonly phase: "settled"; readonly current: string }
  /** There is a next key, which the server may not have yet: the current one is tried first. */
  | { readonly phase: "prepared"; readonly current: string; readonly next: string }
  /** The server has the next key, or refuses the current one: the next one is tried first. */
  | { readonly phase: "offered"; readonly current: string; readonly next: string };

/** What a server says about a node's keys when it has been offered one. */
export interface RotationAnswer {
  readonly current: string;
  /** Null when no offer is open. */
  readonly next: string | null;
}

/** What an agent knows when it starts: what is on its disk. Equal ones are one that was adopted just before the end. */
export function keysOnDisk(current: string, next: string | null): AgentKeys {
  if (next === null || next === current) return { phase: "settled", current };
  return { phase: "prepared", current, next };
}

/** The key with which to sign the next proof. */
export function keyToUse(keys: AgentKeys): string {
  return keys.phase === "offered" ? keys.next : keys.current;
}

/** A next key has been made and is on the disk. A rotation that is under way goes on with the key that it has. */
export function afterNewKey(keys: AgentKeys, next: string): AgentKeys {
  return keys.phase === "settled" ? { phase: "prepared", current: keys.current, next } : keys;
}

/** The server answered an offer. Late answers to earlier offers name other keys, and change nothing. */
export function afterAnswer(keys: AgentKeys, answer: RotationAnswer): AgentKeys {
  if (keys.phase === "settled") return keys;
  const { current, next } = keys;
  if (answer.current === next) return { phase: "settled", current: next };
  return answer.next === next ? { phase: "offered", current, next } : keys;
}

/** The server took a proof by this key. If it is the next one, it is the only one that counts from now on. */
export function afterAccepted(keys: AgentKeys, used: string): AgentKeys {
  if (keys.phase === "settled" || used !== keys.next) return keys;
  return { phase: "settled", current: used };
}

/**
 * The server refused a proof by this key: the other one is tried next, if there is one. No key is given up for a
 * refusal.
 */
export function afterRefused(keys: AgentKeys, used: string): AgentKeys {
  if (keys.phase === "settled") return keys;
  if (used === keys.current) return { ...keys, phase: "offered" };
  return used === keys.next ? { ...keys, phase: "prepared" } : keys;
}
