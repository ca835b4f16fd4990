import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";
import { trustAndLogin } from "./trust-and-login.ts";
import { followWithBreaks } from "./watch-with-breaks.ts";

const LIMIT_MS = 600_000;
const run = promisify(execFile);

// Tests the SDK as users have it: the wheel in a separate environment, and a control plane in a separate process.
describe("the SDK for Python", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-python-"));
  const python = join(folder, "bin/python");

  beforeAll(async () => {
    const { stdout } = await run("node", ["scripts/sdk/main.mjs", "python", "--check"], {
      cwd: workspaceRoot,
      timeout: LIMIT_MS,
    });
    const wheel = stdout.trim().split("\n").at(-1) ?? "";
    await run("python3", ["-m", "venv", folder], { timeout: LIMIT_MS });
    await run(python, ["-m", "pip", "install", "--quiet", `${wheel}[agent]`, "pytest==8.4.2"], { timeout: LIMIT_MS });
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("should call, follow and keep nodes across crashes of the control plane", async () => {
    const sources = join(workspaceRoot, "sdk/python");
    const { stdout } = await run(
      python,
      ["-m", "pytest", "-p", "no:cacheprovider", "--rootdir", sources, join(sources, "tests")],
      { cwd: folder, timeout: LIMIT_MS, env: { ...process.env, ROLLCALL_BIN: join(workspaceRoot, "bin/rollcall") } },
    );
    expect(stdout).toMatch(/100%/);
  });

  it("should neither lose nor repeat any of 100,000 events over 50 breaks", async () => {
    const example = join(workspaceRoot, "sdk/python/examples/follow.py");
    const { breaks, printed, logged } = await followWithBreaks((...words) => [python, example, ...words]);
    expect(breaks).toBe(50);
    expect(logged.length).toBeGreaterThan(100_000);
    expect(printed).toEqual(logged);
  });

  it("should trust by fingerprint, and renew the login of a context", async () => {
    const found = await trustAndLogin([python, join(workspaceRoot, "sdk/python/examples/whoami.py")]);
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
