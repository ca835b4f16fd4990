import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";
import { trustAndLogin } from "./trust-and-login.ts";
import { followWithBreaks } from "./watch-with-breaks.ts";

const LIMIT_MS = 600_000;
const run = promisify(execFile);

describe("the SDK for Java", () => {
  let classpath = "";

  it("should call, follow and keep nodes over crashes of the control plane", async () => {
    const { stdout } = await run("node", ["scripts/sdk/main.mjs", "java", "--check"], {
      cwd: workspaceRoot,
      timeout: LIMIT_MS,
      env: { ...process.env, ROLLCALL_BIN: join(workspaceRoot, "bin/rollcall") },
    });
    const jar = stdout.trim().split("\n").at(-1) ?? "";
    expect(jar).toMatch(/\.jar$/);
    classpath = `${jar}:${join(workspaceRoot, "dist/sdk/java/*")}`;
  });

  it("should lose and double none of 100,000 events over 50 breaks", async () => {
    const example = join(workspaceRoot, "sdk/java/examples/Follow.java");
    const command = ["java", "-cp", classpath, example] as const;
    const { breaks, printed, logged } = await followWithBreaks((...words) => [...command, ...words]);
    expect(breaks).toBe(50);
    expect(logged.length).toBeGreaterThan(100_000);
    expect(printed).toEqual(logged);
  });

  it("should trust by fingerprint, and renew the login of a context", async () => {
    const found = await trustAndLogin(["java", "-cp", classpath, join(workspaceRoot, "sdk/java/examples/WhoAmI.java")]);
    expect(found.trusted).toMatchObject({ code: 0, out: expect.stringMatching(/^token:/) });
    expect(found.untrusted).toMatchObject({ out: "", err: expect.stringContaining("has the fingerprint") });
    expect(found.untrusted.code).not.toBe(0);
    expect(found.renewed).toMatchObject({ code: 0, out: "user:alice\n" });
    expect(found.again).toMatchObject({ code: 0, out: "user:alice\n" });
    expect(found.isSaved).toBe(true);
    // The login's, and one renewal: the second program takes what the first has saved.
    expect(found.tokensAsked).toBe(2);
    expect(found.together).toMatchObject(Array(2).fill({ code: 0, out: "user:alice\n" }));
    expect(found.unsaved).toMatchObject({ code: 0, out: "user:alice\n" });
    expect(found.misnamed).toMatchObject({ out: "", err: expect.stringMatching(/certificate|altname|127\.0\.0\.2/i) });
    expect(found.misnamed.code).not.toBe(0);
  });
});
