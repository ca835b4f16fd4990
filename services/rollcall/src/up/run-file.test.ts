import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readRunFile } from "@rollcall/cli";
import { removeRunFile, writeRunFile } from "./run-file.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "rollcall-run-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const RUN = {
  pid: 7,
  server: "127.0.0.1:7700",
  agents: "127.0.0.1:7701",
  probes: "127.0.0.1:7790",
};

describe("writeRunFile()", () => {
  it("should write what clients read, and replace the old content", async () => {
    await writeRunFile(directory, { ...RUN, pid: 6 });
    await writeRunFile(directory, RUN);
    expect(readRunFile(directory)).toEqual(RUN);
  });
});

describe("removeRunFile()", () => {
  it("should remove its own, and leave that of another process", async () => {
    await writeRunFile(directory, RUN);
    await removeRunFile(directory, 77);
    expect(readRunFile(directory)).toEqual(RUN);
    await removeRunFile(directory, 7);
    expect(readRunFile(directory)).toBeNull();
    await removeRunFile(directory, 7);
  });
});
