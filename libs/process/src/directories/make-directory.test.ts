import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { errorCode } from "../error-code.ts";
import { makeDirectory } from "./make-directory.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "rollcall-make-directory-"));
});
afterEach(() => rm(dir, { recursive: true }));

const codeOf = (path: string) => makeDirectory(path, 0o700).then(() => null, errorCode);

describe("makeDirectory()", () => {
  it("should create missing directories for one user, also concurrently", async () => {
    for (let round = 0; round < 50; round += 1) {
      const path = join(dir, `a${round}`, "b");
      await Promise.all([makeDirectory(path, 0o700), makeDirectory(path, 0o700)]);
      await makeDirectory(path, 0o700);
      expect((await stat(path)).mode & 0o777).toBe(0o700);
    }
  });

  it("should fail where no directory can be created", async () => {
    await writeFile(join(dir, "file"), "");
    expect(await codeOf(join(dir, "file"))).toBe("EEXIST");
    expect(await codeOf(join(dir, "file", "below"))).toBe("ENOTDIR");
    // Only Linux has /proc.
    if (process.platform === "linux") expect(await codeOf("/proc/rollcall/state")).toBe("ENOENT");
  });
});
