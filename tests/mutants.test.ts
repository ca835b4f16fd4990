import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { judgeHunt } from "../scripts/judge-hunt.mjs";

const ROOT = resolve(import.meta.dirname, "..");
const FOLDER = join(ROOT, "mutants");
const PROTOCOL = readFileSync(join(ROOT, "docs/session-protocol.md"), "utf8");
const PATCHES = readdirSync(FOLDER).filter((name) => name.endsWith(".patch"));

describe("mutants/", () => {
  it("should have 25 patches at least, of which two survive at most", () => {
    const survivors = PATCHES.filter((name) => /^Survives: /m.test(readFileSync(join(FOLDER, name), "utf8")));
    expect(PATCHES.length).toBeGreaterThanOrEqual(25);
    expect(survivors.length).toBeLessThanOrEqual(2);
  });

  it.each(PATCHES)("should apply, and name an invariant of the session protocol: %s", (name) => {
    const text = readFileSync(join(FOLDER, name), "utf8");
    const invariant = text.match(/^Breaks: (.+)$/m)?.[1] ?? "";
    expect(PROTOCOL).toMatch(new RegExp(`^\\| \\*\\*${invariant}[.,]`, "m"));
    // Throws with what git says when it does not.
    execFileSync("git", ["apply", "--check", join(FOLDER, name)], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
  });
});

describe("judgeHunt()", () => {
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
  ])("should judge %s", (_what, hunt, expected) => {
    expect(judgeHunt(hunt)).toMatchObject(expected);
  });
});
