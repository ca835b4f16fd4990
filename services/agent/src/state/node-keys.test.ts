import { describe, expect, it } from "@jest/globals";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { MemoryKeyFiles } from "../testing/memory-key-files.ts";
import { NodeKeys } from "./node-keys.ts";

/** Keys whose files fail to be written while `isFull` is set. */
class FullDisk extends MemoryKeyFiles {
  isFull = true;

  override async writeNextKey(...[next]: Parameters<MemoryKeyFiles["writeNextKey"]>): Promise<void> {
    if (this.isFull) throw new Error("no space left on device");
    await super.writeNextKey(next);
  }
}

describe("NodeKeys", () => {
  it("should know no next key that is not on the disk", async () => {
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

  it("should go on with the next key that an earlier run left", async () => {
    const files = new MemoryKeyFiles(generateKeyPair(), generateKeyPair());
    const keys = await NodeKeys.load(files, silentLogger);
    expect(await keys.prepareNext()).toBe(files.next);
  });
});
