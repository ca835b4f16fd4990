import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createCodeCache } from "./code-cache.ts";

const USER = process.getuid?.() ?? 0;
const CODE = Buffer.from("code");

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "rollcall-code-"));
});
afterEach(() => rmSync(home, { recursive: true }));

const cacheOf = (env: Readonly<Record<string, string>> = {}, userId = USER, most = 8) =>
  createCodeCache({ env, home, userId, most });

describe("createCodeCache()", () => {
  it("should read what was written, below ~/.cache or where XDG_CACHE_HOME says", () => {
    expect(cacheOf().read("one")).toBeUndefined();
    cacheOf().write("one", CODE);
    expect(cacheOf().read("one")).toEqual(CODE);
    expect(readdirSync(join(home, ".cache/rollcall"))).toEqual(["one.code"]);
    const named = { XDG_CACHE_HOME: join(home, "named") };
    expect(cacheOf(named).read("one")).toBeUndefined();
    cacheOf(named).write("one", CODE);
    expect(readdirSync(join(home, "named/rollcall"))).toEqual(["one.code"]);
    expect(cacheOf({ XDG_CACHE_HOME: "relative" }).read("one")).toEqual(CODE);
  });

  it("should read nothing that another user could have written", () => {
    cacheOf().write("one", CODE);
    const directory = join(home, ".cache/rollcall");
    expect(cacheOf({}, USER + 1).read("one")).toBeUndefined();
    for (const path of [directory, join(directory, "one.code")]) {
      chmodSync(path, 0o777);
      expect(cacheOf().read("one")).toBeUndefined();
      chmodSync(path, 0o700);
      expect(cacheOf().read("one")).toEqual(CODE);
    }
    symlinkSync(join(directory, "one.code"), join(directory, "two.code"));
    expect(cacheOf().read("two")).toBeUndefined();
  });

  it("should make nothing in the home of another user, which sudo may leave to root", () => {
    // The home belongs neither to the user of the cache nor to root, whichever user runs this.
    const userId = USER === 0 ? 0 : USER + 1;
    if (USER === 0) chownSync(home, 54_321, 54_321);
    cacheOf({}, userId).write("one", CODE);
    expect(readdirSync(home)).toEqual([]);
    mkdirSync(join(home, ".cache"), { recursive: true });
    chownSync(join(home, ".cache"), USER === 0 ? 54_321 : USER, -1);
    cacheOf({}, userId).write("one", CODE);
    expect(readdirSync(join(home, ".cache"))).toEqual([]);
  });

  it("should write nothing into a directory of another user, and do without one that cannot be made", () => {
    mkdirSync(join(home, ".cache/rollcall"), { recursive: true, mode: 0o700 });
    cacheOf({}, USER + 1).write("one", CODE);
    expect(readdirSync(join(home, ".cache/rollcall"))).toEqual([]);
    rmSync(join(home, ".cache"), { recursive: true });
    writeFileSync(join(home, ".cache"), "no directory");
    cacheOf().write("one", CODE);
    expect(cacheOf().read("one")).toBeUndefined();
  });

  it("should keep the newest files, drafts that were left behind included, and nothing else", () => {
    const directory = join(home, ".cache/rollcall");
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const [index, name] of ["a.code", "b.code", "c.code.17"].entries()) {
      writeFileSync(join(directory, name), CODE);
      utimesSync(join(directory, name), index, index);
    }
    cacheOf({}, USER, 2).write("new", CODE);
    expect(readdirSync(directory).sort()).toEqual(["c.code.17", "new.code"]);
  });
});
