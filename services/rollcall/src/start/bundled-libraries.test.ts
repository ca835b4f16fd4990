import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { removeBundledLibraries, withBundledLibraries } from "./bundled-libraries.ts";

let root: string;
let execPath: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rollcall-libraries-"));
  execPath = join(root, "bin/node");
  folder = join(root, "lib");
  mkdirSync(folder);
  writeFileSync(join(folder, "libatomic.so.1"), "");
});
afterEach(() => rmSync(root, { recursive: true }));

describe("bundled libraries", () => {
  it.each([
    [{ PATH: "/bin" }],
    [{ PATH: "/bin", LD_LIBRARY_PATH: "/opt/lib" }],
    [{ LD_LIBRARY_PATH: "/opt/lib:/opt/lib64" }],
  ])("should be found by a restarted Node.js, and by no other program: %j", (env) => {
    const started = { ...withBundledLibraries(env, execPath) };
    expect(started.LD_LIBRARY_PATH?.split(":")[0]).toBe(folder);
    removeBundledLibraries(started, execPath);
    expect(started).toEqual(env);
  });

  it("should change nothing for a Node.js without any", () => {
    rmSync(folder, { recursive: true });
    const env = { LD_LIBRARY_PATH: folder };
    expect(withBundledLibraries(env, execPath)).toEqual(env);
    const same = { ...env };
    removeBundledLibraries(same, execPath);
    expect(same).toEqual(env);
  });
});
