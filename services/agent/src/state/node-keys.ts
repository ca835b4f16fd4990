import {
  type AgentKeys,
  afterAccepted,
  afterAnswer,
  afterNewKey,
  afterRefused,
  keysOnDisk,
  keyToUse,
  type RotationAnswer,
} from "@rollcall/domain";
import { generateKeyPair, keyFingerprint, type NodeKeyPair } from "@rollcall/identity";
import type { Logger } from "@rollcall/process";
import type { StateDirectory } from "./state-directory.ts";

/** The part of a state directory that keeps the keys. */
export type KeyFiles = Pick<StateDirectory, "keyPair" | "nextKeyPair" | "writeNextKey" | "adoptNextKey">;

/**
 * The keys of this agent's node: the current key, and the key that it rotates to. Both are on the disk before they
 * are used.
 */
export class NodeKeys {
  readonly #files: KeyFiles;
  readonly #log: Logger;
  readonly #pairs: Map<string, NodeKeyPair>;
  #state: AgentKeys;
  /** Resolves when the last change to the keys has been applied. */
  #changed: Promise<unknown> = Promise.resolve();

  /** Read the keys; the first start creates one. Rejects if the node's key cannot be read. */
  static async load(files: KeyFiles, log: Logger): Promise<NodeKeys> {
    const current = await files.keyPair();
    const next = await files.nextKeyPair().catch((error: unknown) => {
      // Continue without the next key: the server accepts the current key until the next key has been used, and the
      // rotation offers a new one.
      log.warn({ err: error }, "next key cannot be read");
      return undefined;
    });
    return new NodeKeys({ files, log, current, next });
  }

  /** @param keys the content of the files. */
  constructor(keys: {
    readonly files: KeyFiles;
    readonly log: Logger;
    readonly current: NodeKeyPair;
    readonly next: NodeKeyPair | undefined;
  }) {
    const { files, log, current, next } = keys;
    this.#files = files;
    this.#log = log;
    const pairs = next === undefined ? [current] : [current, next];
    this.#pairs = new Map(pairs.map((pair) => [keyFingerprint(pair.publicKey), pair]));
    const nextFingerprint = next === undefined ? null : keyFingerprint(next.publicKey);
    this.#state = keysOnDisk(keyFingerprint(current.publicKey), nextFingerprint);
  }

  get phase(): AgentKeys["phase"] {
    return this.#state.phase;
  }

  /** Fingerprint of the node's key, as far as this agent knows. */
  get fingerprint(): string {
    return this.#state.current;
  }

  /** Whether this agent has the key. */
  has(fingerprint: string): boolean {
    return this.#pairs.has(fingerprint);
  }

  /** The key for signing the next proof. */
  toUse(): NodeKeyPair {
    return this.#pair(keyToUse(this.#state));
  }

  /** The key to rotate to, created and written to disk if there is none. Rejects if it cannot be written. */
  prepareNext(): Promise<NodeKeyPair> {
    return this.#inTurn(() => this.#prepareNext());
  }

  /** Handle the server's response to the offer of the next key. */
  async answered(answer: RotationAnswer): Promise<void> {
    await this.#inTurn(() => this.#become(afterAnswer(this.#state, answer)));
  }

  /** Record that the server accepted a proof with this key. */
  async accepted(used: NodeKeyPair): Promise<void> {
    await this.#inTurn(() => this.#become(afterAccepted(this.#state, keyFingerprint(used.publicKey))));
  }

  /** Record that the server refused a proof with this key. Returns whether there is another key to try. */
  refused(used: NodeKeyPair): boolean {
    const before = keyToUse(this.#state);
    this.#state = afterRefused(this.#state, keyFingerprint(used.publicKey));
    return keyToUse(this.#state) !== before;
  }

  /**
   * Run changes one after the other. A stream and a rotation can report the same key at the same time, and each
   * change must start from the result of the previous one.
   */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changed.then(change);
    this.#changed = done.catch(() => {});
    return done;
  }

  async #prepareNext(): Promise<NodeKeyPair> {
    if (this.#state.phase !== "settled") return this.#pair(this.#state.next);
    const next = generateKeyPair();
    // Write the key before the server receives it, because after a crash, the server must not know a key that the
    // disk lacks.
    await this.#files.writeNextKey(next);
    const fingerprint = keyFingerprint(next.publicKey);
    this.#pairs.set(fingerprint, next);
    this.#state = afterNewKey(this.#state, fingerprint);
    return next;
  }

  async #become(state: AgentKeys): Promise<void> {
    const before = this.#state;
    if (state.phase === "settled" && before.phase !== "settled" && state.current === before.next) {
      try {
        await this.#files.adoptNextKey(state.current);
      } catch (error) {
        // Both keys still exist, and the next key is tried first. When the server accepts the next key again, its
        // adoption is retried.
        this.#log.error({ err: error }, "next key cannot replace the node's key");
        this.#state = { ...before, phase: "offered" };
        return;
      }
      this.#pairs.delete(before.current);
      const fields = { key_fingerprint: state.current, retired_fingerprint: before.current };
      this.#log.info(fields, "key rotated");
    }
    this.#state = state;
  }

  #pair(fingerprint: string): NodeKeyPair {
    const pair = this.#pairs.get(fingerprint);
    if (pair === undefined) throw new Error(`no key ${fingerprint}`);
    return pair;
  }
}
