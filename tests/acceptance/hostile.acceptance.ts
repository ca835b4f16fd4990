import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../support/workspace.ts";

const DRILLS = join(workspaceRoot, "bench/dist/drills/main.js");
const LIMIT_MS = 840_000;

// At full length, but not judged by the clock: other work on the machine is nobody's fault. `make drill NAME=hostile` judges that as well.
describe("the drill of hostile peers", () => {
  it("should let no well-behaved agent and no operator notice", async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [DRILLS, "hostile", "--no-clock"],
      { timeout: LIMIT_MS, maxBuffer: 16 * 1_048_576 },
    );
    expect(stdout).toContain("PASSED: 50 agents");
  });
});
