import { generateKeyPair, type NodeKeyPair } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { type KeyFiles, NodeKeys } from "../state/node-keys.ts";

/** The keys of a node with a single key, for tests where keys do not matter. */
export function settledKeys(current: NodeKeyPair = generateKeyPair()): NodeKeys {
  const files = new MemoryKeyFiles(current);
  return new NodeKeys({ files, log: silentLogger, current, next: undefined });
}

/**
 * The key files of a state directory, in memory. They are still there after a test has
 * killed the agent.
 */
export class MemoryKeyFiles implements KeyFiles {
  current: NodeKeyPair;
  next: NodeKeyPair | undefined;

  constructor(current: NodeKeyPair, next?: NodeKeyPair) {
    this.current = current;
    this.next = next;
  }

  async keyPair(): Promise<NodeKeyPair> {
    return this.current;
  }

  async nextKeyPair(): Promise<NodeKeyPair | undefined> {
    return this.next;
  }

  async writeNextKey(next: NodeKeyPair): Promise<void> {
    this.next = next;
  }

  async adoptNextKey(): Promise<void> {
    if (this.next === undefined) throw new Error("there is no next key");
    this.current = this.next;
    this.next = undefined;
  }
}
