import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { MemoryKeyFiles } from "../testing/memory-key-files.ts";
import { NodeKeys } from "./node-keys.ts";

/** Key files that cannot be written while `isFull` is set. */
class FullDisk extends MemoryKeyFiles {
  isFull = true;

  override async writeNextKey(...[next]: Parameters<MemoryKeyFiles["writeNextKey"]>): Promise<void> {
    if (this.isFull) throw new Error("no space left on device");
    await super.writeNextKey(next);
  }
}

/**
 * Key files that block each adoption until the test releases it. As on a disk, the same key cannot be
 * adopted twice.
 */
class BlockedDisk extends MemoryKeyFiles {
  /** The waiting adoptions, in order. */
  readonly held: (() => void)[] = [];

  override async adoptNextKey(): Promise<void> {
    await new Promise<void>((resolve) => this.held.push(resolve));
    await super.adoptNextKey();
  }
}

describe("NodeKeys", () => {
  it("should have no next key that is not on disk", async () => {
    const files = new FullDisk(generateKeyPair());
    const keys = await NodeKeys.load(files, silentLogger);
    await expect(keys.prepareNext()).rejects.toThrow("no space left");
    expect(keys.phase).toBe("settled");
    expect(keys.toUse()).toBe(files.current);
    files.isFull = false;
    const next = await keys.prepareNext();
    expect(files.next).toBe(next);
    expect(keys.has(keyFingerprint(next.publicKey))).toBe(true);
  });

  it("should continue with the next key of an earlier run", async () => {
    const files = new MemoryKeyFiles(generateKeyPair(), generateKeyPair());
    const keys = await NodeKeys.load(files, silentLogger);
    expect(await keys.prepareNext()).toBe(files.next);
  });

  it("should adopt the next key once if a stream and a rotation report it together", async () => {
    const files = new BlockedDisk(generateKeyPair(), generateKeyPair());
    const keys = await NodeKeys.load(files, silentLogger);
    const next = await keys.prepareNext();
    const fingerprint = keyFingerprint(next.publicKey);
    const heard = [keys.accepted(next), keys.answered({ current: fingerprint, next: null })];
    await setImmediate();
    files.held.shift()?.();
    await heard[0];
    files.held.shift()?.();
    await heard[1];
    expect(keys.phase).toBe("settled");
    expect(keys.fingerprint).toBe(fingerprint);
    expect(keys.toUse()).toBe(next);
  });

  it("should change the keys after a change that failed", async () => {
    const files = new FullDisk(generateKeyPair());
    const keys = await NodeKeys.load(files, silentLogger);
    const refused = expect(keys.prepareNext()).rejects.toThrow("no space left");
    const waiting = keys.prepareNext().catch((error: unknown) => error);
    await refused;
    await waiting;
    files.isFull = false;
    expect(await keys.prepareNext()).toBe(files.next);
  });
});
