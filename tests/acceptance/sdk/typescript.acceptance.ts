import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";
import { trustAndLogin } from "./trust-and-login.ts";
import { followWithBreaks } from "./watch-with-breaks.ts";

const LIMIT_MS = 600_000;
const run = promisify(execFile);

// Tests the SDK as users have it: the packed package installed in a separate folder, and a control plane in a separate
// process.
describe("the SDK for TypeScript", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-typescript-"));
  const sources = join(workspaceRoot, "sdk/typescript");

  beforeAll(async () => {
    const make = ["scripts/sdk/main.mjs", "typescript", "--check"];
    const { stdout } = await run("node", make, { cwd: workspaceRoot, timeout: LIMIT_MS });
    const tarball = stdout.trim().split("\n").at(-1) ?? "";
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const install = ["install", "--no-audit", "--no-fund", "--prefer-offline", tarball];
    await run("npm", install, { cwd: folder, timeout: LIMIT_MS });
    for (const part of ["tests", "examples"]) cpSync(join(sources, part), join(folder, part), { recursive: true });
    cpSync(join(workspaceRoot, "sdk/vectors"), join(folder, "vectors"), { recursive: true });
  }, LIMIT_MS);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("should call, follow and keep nodes across crashes of the control plane", async () => {
    const env = { ...process.env, ROLLCALL_BIN: join(workspaceRoot, "bin/rollcall"), NODE_OPTIONS: "" };
    const files = readdirSync(join(folder, "tests")).filter((name) => name.endsWith(".test.mjs"));
    const paths = files.map((name) => join("tests", name));
    const tests = ["--test", "--test-reporter=tap", "--test-concurrency=1", ...paths];
    const { stdout } = await run("node", tests, { cwd: folder, timeout: LIMIT_MS, env });
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(stdout).toMatch(/^# skipped 0$/m);
  });

  it("should refuse to install a bare checkout", async () => {
    const user = mkdtempSync(join(tmpdir(), "rollcall-typescript-"));
    const checkout = join(user, "checkout");
    // Copy the sources as in git, without generated and built files.
    cpSync(sources, checkout, { recursive: true });
    writeFileSync(join(user, "package.json"), JSON.stringify({ private: true }));
    try {
      const install = run("npm", ["install", "--no-audit", "--no-fund", checkout], { cwd: user, timeout: LIMIT_MS });
      await expect(install).rejects.toMatchObject({ stderr: expect.stringContaining("make sdk NAME=typescript") });
    } finally {
      rmSync(user, { recursive: true, force: true });
    }
  });

  it("should neither lose nor repeat any of 100,000 events over 50 breaks", async () => {
    const example = join(folder, "examples/follow.mjs");
    const { breaks, printed, logged } = await followWithBreaks((...words) => ["node", example, ...words]);
    expect(breaks).toBe(50);
    expect(logged.length).toBeGreaterThan(100_000);
    expect(printed).toEqual(logged);
  });

  it("should load nothing of Node in a browser", async () => {
    const page = join(folder, "page.js");
    writeFileSync(page, 'import { Client } from "@rollcall/client";\nglobalThis.client = new Client();\n');
    const outfile = join(folder, "bundle.js");
    const esbuild = join(workspaceRoot, "services/rollcall/node_modules/.bin/esbuild");
    await run(esbuild, [page, "--bundle", "--platform=browser", "--format=esm", `--outfile=${outfile}`]);
    expect(readFileSync(outfile, "utf8")).not.toMatch(/from "(node:|http2)/);
  });

  it("should trust by fingerprint, and renew the login of a context", async () => {
    const found = await trustAndLogin(["node", join(folder, "examples/whoami.mjs")]);
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
