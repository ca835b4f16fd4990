import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { needsRoot } from "@rollcall/testkit/needs";
import { homeDirectory, workingDirectory } from "./own-directories.ts";

/** A user id without an account on any usual machine. */
const NO_ACCOUNT = 987_654_321;
const { it: itForRoot } = needsRoot();

describe("homeDirectory()", () => {
  itForRoot("should be the root directory for a user id without an account and without HOME", () => {
    const { HOME: home } = process.env;
    delete process.env.HOME;
    process.seteuid?.(NO_ACCOUNT);
    try {
      expect(homeDirectory()).toBe("/");
    } finally {
      process.seteuid?.(0);
      if (home !== undefined) process.env.HOME = home;
    }
  });
});

describe("workingDirectory()", () => {
  it("should be the root directory if the directory was removed", () => {
    const before = process.cwd();
    const removed = mkdtempSync(join(tmpdir(), "rollcall-removed-"));
    process.chdir(removed);
    rmdirSync(removed);
    try {
      expect(workingDirectory()).toBe("/");
    } finally {
      process.chdir(before);
    }
    expect(workingDirectory()).toBe(before);
  });
});
