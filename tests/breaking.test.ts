import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "./support/workspace.ts";

const CHECK = join(workspaceRoot, "scripts/check-breaking.sh");
const NODE_PROTO = "rollcall/node/v1/node.proto";

describe("check-breaking.sh", () => {
  let schema: string;

  beforeEach(() => {
    schema = mkdtempSync(join(tmpdir(), "rollcall-schema-"));
    cpSync(join(workspaceRoot, "baseline/proto"), schema, { recursive: true });
  });

  afterEach(() => {
    rmSync(schema, { recursive: true });
  });

  it("should pass the schema of the last release itself", () => {
    expect(() => execFileSync("sh", [CHECK, schema])).not.toThrow();
  });

  it.each([
    ["another name for a field", "string hostname = 1 ", "string host_name = 1 ", "host_name"],
    ["another type for a field", "uint32 threads = 4;", "string threads = 4;", "threads"],
    ["a field less", /\n.*\n {2}bool capable = 1;/, "", "VmCapability"],
    ["a value less", /\n.*\n {2}HEALTH_STATE_UNKNOWN = 3;/, "", 'Previously present enum value "3"'],
  ])("should catch %s", (_, released, broken, complaint) => {
    edit(released, broken);
    const check = spawnSync("sh", [CHECK, schema], { encoding: "utf8" });
    expect(check.status).not.toBe(0);
    expect(check.stdout + check.stderr).toContain(complaint);
  });

  it("should allow a new field", () => {
    edit("bool capable = 1;", "bool capable = 1;\n  // New.\n  bool fast = 15;");
    expect(() => execFileSync("sh", [CHECK, schema])).not.toThrow();
  });

  function edit(released: string | RegExp, changed: string): void {
    const file = join(schema, NODE_PROTO);
    const before = readFileSync(file, "utf8");
    const after = before.replace(released, changed);
    expect(after).not.toBe(before);
    writeFileSync(file, after);
  }
});
