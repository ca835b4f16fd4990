import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readConfigFile } from "./read-yaml.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rollcall-config-"));
});
afterEach(async () => await rm(folder, { recursive: true }));

describe("readConfigFile()", () => {
  it("should name a file by the requested path", async () => {
    const path = join(folder, "rollcall.yaml");
    await writeFile(path, "Store: {PoolSize: 5}\n");
    expect(await readConfigFile(path)).toEqual({ name: path, text: "Store: {PoolSize: 5}\n" });
  });

  it("should refuse missing and too large files", async () => {
    await expect(readConfigFile(join(folder, "none"))).rejects.toThrow("ENOENT");
    const path = join(folder, "large");
    await writeFile(path, "#".repeat(65_537));
    await expect(readConfigFile(path)).rejects.toThrow("65537 bytes");
  });
});
