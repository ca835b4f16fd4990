import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readInit, readShim } from "./shim.ts";

describe("readShim(), readInit()", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "rollcall-shim-"));
    mkdirSync(join(directory, "run"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("should find nothing before anything was written", async () => {
    expect(await readShim(directory)).toMatchObject({ hasStarted: false, shim: "unknown", child: null, exit: null });
    expect(await readInit(directory)).toBeNull();
  });

  it("should find a recorded exit", async () => {
    writeFileSync(join(directory, "run/exit"), "3\n");
    expect((await readShim(directory)).exit).toEqual({ code: 3, signal: null });
  });

  // A file that cannot be read, for example for lack of descriptors, must not be mistaken for an ended process.
  it.each(["exit", "shim", "child", "status"])("should reject while %s cannot be read", async (name) => {
    writeFileSync(join(directory, "run/started"), "");
    mkdirSync(join(directory, "run", name));
    await expect(readShim(directory)).rejects.toThrow(/EISDIR/);
  });

  it("should reject while the first process of its namespaces cannot be read", async () => {
    mkdirSync(join(directory, "run/init"));
    await expect(readInit(directory)).rejects.toThrow(/EISDIR/);
  });
});
