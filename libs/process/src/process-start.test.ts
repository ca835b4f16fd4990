import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { processStart } from "./process-start.ts";

describe("processStart()", () => {
  it("should always return the same value for a process", async () => {
    const first = await processStart(process.pid);
    expect(first).toMatch(/\d/);
    expect(await processStart(process.pid)).toBe(first);
  });

  it("should return null for an ended process and an unused id", async () => {
    const child = spawn("true", { stdio: "ignore" });
    await once(child, "exit");
    expect(await processStart(child.pid ?? 0)).toBeNull();
    expect(await processStart(4_194_304)).toBeNull();
  });
});
