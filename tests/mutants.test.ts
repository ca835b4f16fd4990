import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { evaluateHunt } from "../scripts/evaluate-hunt.mjs";
import { readPatch, takeShard } from "../scripts/mutant-patch.mjs";

const ROOT = resolve(import.meta.dirname, "..");
const FOLDER = join(ROOT, "mutants");
const PROTOCOL = readFileSync(join(ROOT, "docs/session-protocol.md"), "utf8");
const PAGE = readFileSync(join(ROOT, "docs/mutation.md"), "utf8");
const PATCHES = readdirSync(FOLDER).filter((name) => name.endsWith(".patch"));
const readHeader = (name: string) => readPatch(readFileSync(join(FOLDER, name), "utf8"));
/** Packages without handwritten code. */
const GENERATED = ["libs/api"];
/** A file that each package has one of. */
const MANIFESTS = ["package.json", "go.mod", "pyproject.toml", "pom.xml"];
const PACKAGES = ["libs", "services", "sdk"]
  .flatMap((group) => readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`))
  .filter((folder) => MANIFESTS.some((name) => existsSync(join(ROOT, folder, name))) && !GENERATED.includes(folder));

describe("mutants/", () => {
  it("should have at least 100 patches, at most two of which survive", () => {
    const survivors = PATCHES.filter((name) => readHeader(name).survives !== undefined);
    expect(PATCHES.length).toBeGreaterThanOrEqual(100);
    expect(survivors.length).toBeLessThanOrEqual(2);
  });

  it.each(PACKAGES)("should break %s, and docs/mutation.md should count its patches", (folder) => {
    const patches = PATCHES.filter((name) => readHeader(name).folders.includes(folder));
    expect(patches.length).toBeGreaterThan(0);
    expect(PAGE).toMatch(new RegExp(`^\\| ${folder} \\| ${patches.length} \\|`, "m"));
  });

  it.each(PATCHES)("should apply, and name a broken promise and what detects it: %s", (name) => {
    const { breaks, tests } = readHeader(name);
    // The explorer and the simulations detect invariants of the session protocol, and tests any promise.
    if (tests.length === 0) expect(PROTOCOL).toMatch(new RegExp(`^\\| \\*\\*${breaks}[.,]`, "m"));
    expect(breaks).not.toBe("");
    expect(tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    // Throws git's error if the patch does not apply.
    execFileSync("git", ["apply", "--check", join(FOLDER, name)], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
  });
});

describe("takeShard()", () => {
  const names = ["a", "b", "c", "d", "e"];

  it("should put each item in exactly one shard", () => {
    const shards = ["1/3", "2/3", "3/3"].map((shard) => takeShard(names, shard));
    expect(shards).toEqual([["a", "d"], ["b", "e"], ["c"]]);
    expect(takeShard(names, "")).toEqual(names);
  });

  it.each(["0/3", "4/3", "3", "1/0", "a/b"])("should refuse %s", (shard) => {
    expect(() => takeShard(names, shard)).toThrow(`SHARD=${shard} is not a shard such as 2/4`);
  });
});

describe("evaluateHunt()", () => {
  it.each([
    ["what is found", { found: "two run", isTooLong: false }, { isCaught: true, isExpected: true }],
    ["nothing", { found: null, isTooLong: false }, { isCaught: false, isExpected: false }],
    [
      "nothing of a survivor",
      { found: null, isTooLong: false, survives: "why" },
      { isCaught: false, isExpected: true },
    ],
    ["a survivor", { found: "two run", isTooLong: false, survives: "why" }, { isCaught: true, isExpected: false }],
    ["a search that took too long", { found: null, isTooLong: true }, { isCaught: false, isExpected: false }],
    ["one of a survivor", { found: null, isTooLong: true, survives: "why" }, { isCaught: false, isExpected: false }],
    [
      "one of a mutant that hangs",
      { found: null, isTooLong: true, hangs: "why" },
      { isCaught: true, isExpected: true },
    ],
    [
      "one that does not hang",
      { found: "two run", isTooLong: false, hangs: "why" },
      { isCaught: true, isExpected: false },
    ],
  ])("should evaluate %s", (_what, hunt, expected) => {
    expect(evaluateHunt(hunt)).toMatchObject(expected);
  });
});
