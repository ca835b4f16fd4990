import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../support/workspace.ts";

const LIMIT_MS = 300_000;
const BUS = "00000000:01:00.0";

/** A fake nvidia-smi that reports two GPUs, for machines without GPUs. */
const TOOL = `#!/bin/sh
ids="GPU-5f3c0c1e-0000-4000-8000-000000000001 GPU-5f3c0c1e-0000-4000-8000-000000000002"
index=0
for id in $ids; do
  case "$*" in
    -L) echo "GPU $index: NVIDIA H200 (UUID: $id)" ;;
    *utilization*) echo "$index, 3, 500, 143771, 31" ;;
    *) echo "$index, NVIDIA H200, $id, 570.86.15, ${BUS}, 143771, Disabled" ;;
  esac
  index=$((index + 1))
done
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-fake-gpus-"));
  writeFileSync(join(folder, "nvidia-smi"), TOOL);
  chmodSync(join(folder, "nvidia-smi"), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("make probes", () => {
  it(
    "should pass with a tool that is slow or hangs",
    async () => {
      const script = join(workspaceRoot, "scripts/check-probes.mjs");
      const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
      const options = { cwd: workspaceRoot, env, timeout: LIMIT_MS };
      const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=source", script], options);
      expect(stdout).toContain("nvidia-smi lists 2 GPUs\n");
      for (const what of ["hangs", "hangs in a child process"]) {
        expect(stdout).toContain(`nvidia-smi ${what}: the GPUs are unknown, and the last known ones are shown\n`);
      }
      expect(stdout).toMatch(/^all probes agree with nvidia-smi/m);
    },
    LIMIT_MS,
  );
});
