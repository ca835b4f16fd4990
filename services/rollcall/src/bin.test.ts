import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";

const BIN = fileURLToPath(new URL("../../../bin", import.meta.url));
const run = promisify(execFile);

// A copy, since a checkout may have been built or not.
let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "rollcall-bin-"));
  mkdirSync(join(root, "bin"));
  for (const name of ["rollcall", "package.json"]) copyFileSync(join(BIN, name), join(root, "bin", name));
  writeFileSync(join(root, "package.json"), '{"type": "module"}');
});
afterAll(() => rmSync(root, { recursive: true }));

describe("bin/rollcall", () => {
  it("should say what to do when nothing was built", async () => {
    await expect(run(join(root, "bin/rollcall"), ["version"])).rejects.toMatchObject({
      code: 1,
      stderr: "rollcall is not built yet: run `make build` first\n",
    });
  });

  it("should run what was built, with its words", async () => {
    const dist = join(root, "services/rollcall/bundle/src");
    mkdirSync(dist, { recursive: true });
    writeFileSync(join(dist, "start.cjs"), "console.log(process.argv.slice(2).join());");
    expect((await run(join(root, "bin/rollcall"), ["node", "list"])).stdout).toBe("node,list\n");
  });
});
