import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "@jest/globals";

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
