import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { findDataDirectory, readRunFile } from "./data-directory.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rollcall-data-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function find(env: Record<string, string> = {}, userId: number | null = null) {
  return findDataDirectory({ env, cwd: join(root, "work"), home: join(root, "home"), userId });
}

describe("findDataDirectory()", () => {
  it("should prefer ROLLCALL_DATA_DIR, then the working directory, then the home directory", () => {
    expect(find()).toBe(join(root, "home/.rollcall"));
    mkdirSync(join(root, "work/.rollcall"), { recursive: true });
    expect(find()).toBe(join(root, "work/.rollcall"));
    expect(find({ ROLLCALL_DATA_DIR: "../data" })).toBe(join(root, "data"));
  });

  it("should take the system's directory for root, unless root's home has one", () => {
    expect(find({}, 0)).toBe("/var/lib/rollcall");
    mkdirSync(join(root, "home/.rollcall"), { recursive: true });
    expect(find({}, 0)).toBe(process.getuid?.() === 0 ? join(root, "home/.rollcall") : "/var/lib/rollcall");
  });

  it("should ignore a directory of another user, and a file", () => {
    mkdirSync(join(root, "work"));
    writeFileSync(join(root, "work/.rollcall"), "");
    expect(find()).toBe(join(root, "home/.rollcall"));
    rmSync(join(root, "work/.rollcall"));
    mkdirSync(join(root, "work/.rollcall"));
    expect(find({}, 4_242_424)).toBe(join(root, "home/.rollcall"));
  });
});

describe("readRunFile()", () => {
  const file = {
    pid: 7,
    server: "127.0.0.1:7700",
    agents: "127.0.0.1:7701",
    probes: "127.0.0.1:7790",
  };

  it("should read what up wrote", () => {
    writeFileSync(join(root, "run.json"), JSON.stringify(file));
    expect(readRunFile(root)).toEqual(file);
    const reached = { ...file, elsewhere: "10.0.0.7:7700" };
    writeFileSync(join(root, "run.json"), JSON.stringify(reached));
    expect(readRunFile(root)).toEqual(reached);
  });

  it.each([
    ["nothing", null],
    ["half a file", '{"pid": 7, "ser'],
    ["something else", "[]"],
  ])("should find none in %s", (_what, text) => {
    if (text !== null) writeFileSync(join(root, "run.json"), text);
    expect(readRunFile(root)).toBeNull();
  });
});
