import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { removeBundledLibraries } from "../start/bundled-libraries.ts";
import { workerEnvironment } from "./open-workers.ts";

const ROLE = { number: 2, pools: { poolSize: 3, reservedPoolSize: 1 } };

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rollcall-workers-"));
});
afterEach(() => rmSync(root, { recursive: true }));

describe("workerEnvironment()", () => {
  it("should be the primary's, plus the role of the worker", () => {
    expect(workerEnvironment(ROLE, { PATH: "/bin" }, join(root, "bin/node"))).toEqual({
      PATH: "/bin",
      _ROLLCALL_WORKER: "2",
      _ROLLCALL_WORKER_POOL: JSON.stringify(ROLE.pools),
    });
  });

  it("should restore the libraries of a package, which the primary removed for other programs", () => {
    mkdirSync(join(root, "lib"));
    writeFileSync(join(root, "lib/libatomic.so.1"), "");
    const program = join(root, "bin/node");
    const env: Record<string, string> = { PATH: "/bin", LD_LIBRARY_PATH: join(root, "lib") };
    removeBundledLibraries(env, program);
    const worker = workerEnvironment({ number: 1, pools: undefined }, env, program);
    expect(worker).toMatchObject({ PATH: "/bin", LD_LIBRARY_PATH: join(root, "lib") });
  });
});
