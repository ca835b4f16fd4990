import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";

const LIMIT_MS = 600_000;
const run = promisify(execFile);

describe("the SDK for Go", () => {
  it("should be generated from the schema as it is", async () => {
    await run("node", ["scripts/sdk/main.mjs", "go", "--check"], { cwd: workspaceRoot, timeout: LIMIT_MS });
    const { stdout } = await run("git", ["status", "--porcelain", "sdk/go"], { cwd: workspaceRoot });
    expect(stdout).toBe("");
  });

  it("should call, follow and keep nodes over crashes of the control plane", async () => {
    const { stdout } = await run("go", ["test", "-count=1", "./..."], {
      cwd: join(workspaceRoot, "sdk/go"),
      timeout: LIMIT_MS,
      env: { ...process.env, ROLLCALL_BIN: join(workspaceRoot, "bin/rollcall") },
    });
    expect(stdout).toMatch(/^ok\s+rollcall\.dev\/go\s/m);
  });
});
