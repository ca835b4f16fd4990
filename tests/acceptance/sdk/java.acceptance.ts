import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";
import { trustAndLogin } from "./trust-and-login.ts";
import { followWithBreaks } from "./watch-with-breaks.ts";

const LIMIT_MS = 600_000;
const run = promisify(execFile);

describe("the SDK for Java", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-java-"));
  /** The command that runs Java. Short programs are faster without the optimizing compiler. */
  let java: readonly [string, ...string[]] = ["java"];

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("should call, follow and keep nodes across crashes of the control plane", async () => {
    const { stdout } = await run("node", ["scripts/sdk/main.mjs", "java", "--check"], {
      cwd: workspaceRoot,
      timeout: LIMIT_MS,
      env: { ...process.env, ROLLCALL_BIN: join(workspaceRoot, "bin/rollcall") },
    });
    const jar = stdout.trim().split("\n").at(-1) ?? "";
    expect(jar).toMatch(/\.jar$/);
    const classpath = `${jar}:${join(workspaceRoot, "dist/sdk/java/*")}`;
    // Compile once for all runs, because `java FILE` compiles each time.
    const examples = ["Follow", "WhoAmI"].map((name) => join(workspaceRoot, `sdk/java/examples/${name}.java`));
    await run("javac", ["-cp", classpath, "-d", folder, ...examples], { timeout: LIMIT_MS });
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", `${folder}:${classpath}`];
  });

  it("should refuse to compile a bare checkout", async () => {
    const checkout = join(folder, "checkout");
    // Copy the sources as in git, without generated files.
    cpSync(join(workspaceRoot, "sdk/java"), checkout, { recursive: true });
    const compile = run("mvn", ["--batch-mode", "compile"], { cwd: checkout, timeout: LIMIT_MS });
    await expect(compile).rejects.toMatchObject({ stdout: expect.stringContaining("make sdk NAME=java") });
  });

  it("should neither lose nor repeat any of 100,000 events over 50 breaks", async () => {
    const { breaks, printed, logged } = await followWithBreaks((...words) => [...java, "Follow", ...words]);
    expect(breaks).toBe(50);
    expect(logged.length).toBeGreaterThan(100_000);
    expect(printed).toEqual(logged);
  });

  it("should trust by fingerprint, and renew the login of a context", async () => {
    const found = await trustAndLogin([...java, "WhoAmI"]);
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
