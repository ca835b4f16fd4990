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

/** Where the keys are kept. */
export type KeyFiles = Pick<StateDirectory, "keyPair" | "nextKeyPair" | "writeNextKey" | "adoptNextKey">;

/**
 * The keys of this agent's node: the one that it has, and the one that it rotates to. What the disk has is always as
 * much as this.
 */
export class NodeKeys {
  readonly #files: KeyFiles;
  readonly #log: Logger;
  readonly #pairs: Map<string, NodeKeyPair>;
  #state: AgentKeys;
  /** Ends when the last change of the keys has. */
  #changed: Promise<unknown> = Promise.resolve();

  /** Read the keys; one is made at the first start ever. Rejects when the node's key cannot be read. */
  static async load(files: KeyFiles, log: Logger): Promise<NodeKeys> {
    const current = await files.keyPair();
    const next = await files.nextKeyPair().catch((error: unknown) => {
      // The server takes the present key until the next one has been used, and will be offered another one.
      log.warn({ err: error }, "next key cannot be read");
      return undefined;
    });
    return new NodeKeys({ files, log, current, next });
  }

  /** @param keys what the files hold. */
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

  /** Whether a key is one of this agent's. */
  has(fingerprint: string): boolean {
    return this.#pairs.has(fingerprint);
  }

  /** The key with which to sign the next proof. */
  toUse(): NodeKeyPair {
    return this.#pair(keyToUse(this.#state));
  }

  /** The key to rotate to, made and written to the disk unless there is one. Rejects when it cannot be written. */
  prepareNext(): Promise<NodeKeyPair> {
    return this.#inTurn(() => this.#prepareNext());
  }

  /** The server answered the offer of the next key. */
  async answered(answer: RotationAnswer): Promise<void> {
    await this.#inTurn(() => this.#become(afterAnswer(this.#state, answer)));
  }

  /** The server took a proof by this key. */
  async accepted(used: NodeKeyPair): Promise<void> {
    await this.#inTurn(() => this.#become(afterAccepted(this.#state, keyFingerprint(used.publicKey))));
  }

  /** The server refused a proof by this key; whether there is another one to try. */
  refused(used: NodeKeyPair): boolean {
    const before = keyToUse(this.#state);
    this.#state = afterRefused(this.#state, keyFingerprint(used.publicKey));
    return keyToUse(this.#state) !== before;
  }

  /** A stream and a rotation hear of the same key at once: each change starts from what the one before it left. */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changed.then(change);
    this.#changed = done.catch(() => {});
    return done;
  }

  async #prepareNext(): Promise<NodeKeyPair> {
    if (this.#state.phase !== "settled") return this.#pair(this.#state.next);
    const next = generateKeyPair();
    // Before the server hears of it: a crash must never leave the server with a key that is nowhere else.
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
        await this.#files.adoptNextKey();
      } catch (error) {
        // Both keys are there still, and the next one is tried first: it is adopted when it is taken again.
        this.#log.error({ err: error }, "next key cannot take the place of the key");
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
