import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { compiledCodeDirectory } from "./compiled-code.ts";

const USER = process.getuid?.() ?? 0;
/** A user that is neither root nor the user who runs the test. */
const OTHER_USER = 54_321;

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "rollcall-code-"));
});
afterEach(() => rmSync(home, { recursive: true }));

const directoryOf = (env: Readonly<Record<string, string>> = {}, userId = USER) =>
  compiledCodeDirectory({ env, home, userId });

describe("compiledCodeDirectory()", () => {
  it("should be below ~/.cache, or below XDG_CACHE_HOME if that is absolute", () => {
    expect(directoryOf()).toBe(join(home, ".cache/rollcall"));
    expect(directoryOf({ XDG_CACHE_HOME: join(home, "named") })).toBe(join(home, "named/rollcall"));
    expect(directoryOf({ XDG_CACHE_HOME: "relative" })).toBe(join(home, ".cache/rollcall"));
  });

  it("should not be one that another user owns, can write to, or has linked", () => {
    const directory = directoryOf() ?? "";
    expect(directoryOf({}, USER + 1)).toBeNull();
    chmodSync(directory, 0o777);
    expect(directoryOf()).toBeNull();
    chmodSync(directory, 0o700);
    expect(directoryOf()).toBe(directory);
    rmSync(directory, { recursive: true });
    mkdirSync(join(home, "elsewhere"));
    symlinkSync(join(home, "elsewhere"), directory);
    expect(directoryOf()).toBeNull();
  });

  it("should not be created in the home of another user, which sudo may leave to root", () => {
    // The home directory belongs neither to the current user nor to root.
    const userId = USER === 0 ? 0 : USER + 1;
    if (USER === 0) chownSync(home, OTHER_USER, OTHER_USER);
    expect(directoryOf({}, userId)).toBeNull();
    expect(readdirSync(home)).toEqual([]);
  });

  it("should be missing if it cannot be created", () => {
    writeFileSync(join(home, ".cache"), "no directory");
    expect(directoryOf()).toBeNull();
  });
});
