import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";
import { trustAndLogin } from "./trust-and-login.ts";
import { followWithBreaks } from "./watch-with-breaks.ts";

const LIMIT_MS = 600_000;
const run = promisify(execFile);

describe("the SDK for Go", () => {
  it("should be generated from the schema as it is", async () => {
    await run("node", ["scripts/sdk/main.mjs", "go", "--check"], { cwd: workspaceRoot, timeout: LIMIT_MS });
    const { stdout } = await run("git", ["status", "--porcelain", "sdk/go"], { cwd: workspaceRoot });
    expect(stdout).toBe("");
  });

  it("should call, follow and keep nodes across crashes of the control plane", async () => {
    const { stdout } = await run("go", ["test", "-count=1", "./..."], {
      cwd: join(workspaceRoot, "sdk/go"),
      timeout: LIMIT_MS,
      env: { ...process.env, ROLLCALL_BIN: join(workspaceRoot, "bin/rollcall") },
    });
    expect(stdout).toMatch(/^ok\s+rollcall\.dev\/go\s/m);
  });

  it("should neither lose nor repeat any of 100,000 events over 50 breaks", async () => {
    const follow = join(workspaceRoot, "node_modules/.cache/rollcall-sdk/go-tools/follow");
    const module = join(workspaceRoot, "sdk/go");
    await run("go", ["build", "-o", follow, "./examples/follow"], { cwd: module, timeout: LIMIT_MS });
    const { breaks, printed, logged } = await followWithBreaks((...words) => [follow, ...words]);
    expect(breaks).toBe(50);
    expect(logged.length).toBeGreaterThan(100_000);
    expect(printed).toEqual(logged);
  });

  it("should trust by fingerprint, and renew the login of a context", async () => {
    const whoami = join(workspaceRoot, "node_modules/.cache/rollcall-sdk/go-tools/whoami");
    await run("go", ["build", "-o", whoami, "./examples/whoami"], { cwd: join(workspaceRoot, "sdk/go") });
    const found = await trustAndLogin([whoami]);
    expect(found.trusted).toMatchObject({ code: 0, out: expect.stringMatching(/^token:/) });
    expect(found.untrusted).toMatchObject({ out: "", err: expect.stringContaining("has the fingerprint") });
    expect(found.untrusted.code).not.toBe(0);
    expect(found.renewed).toMatchObject({ code: 0, out: "user:alice\n" });
    expect(found.again).toMatchObject({ code: 0, out: "user:alice\n" });
    expect(found.isSaved).toBe(true);
    // One token is for the login and one for the renewal. The second program uses the token that the first one has
    // saved.
    expect(found.tokensAsked).toBe(2);
    expect(found.together.map(({ code, out, err }) => (code === 0 ? out : err))).toEqual([
      ...["user:alice\n", "user:alice\n"],
    ]);
    expect(found.unsaved).toMatchObject({ code: 0, out: "user:alice\n" });
    expect(found.misnamed).toMatchObject({ out: "", err: expect.stringMatching(/certificate|altname|127\.0\.0\.2/i) });
    expect(found.misnamed.code).not.toBe(0);
  });
});
